"""What notebooks show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._errors import Error, escaped

if TYPE_CHECKING:
    from ._artifact import Artifact, Kernel
    from ._files import Doctor

_STYLE = """<style>
.gpulower { font-family: system-ui, sans-serif; font-size: 13px; }
.gpulower table { border-collapse: collapse; margin: 4px 0; font-size: inherit; }
.gpulower th, .gpulower td { text-align: right; padding: 2px 10px; border-bottom: 1px solid #8884; }
.gpulower th:first-child, .gpulower td:first-child { text-align: left; }
.gpulower pre { line-height: 1.35; margin: 4px 0; padding: 6px 10px; background: #8881; overflow: auto; max-height: 40em; }
.gpulower .warning { color: #b36b00; }
.gpulower .wrong { color: #c0392b; font-weight: 600; }
.gpulower .marked { background: #c0392b33; border-bottom: 2px solid #c0392b; }
.gpulower .number { color: #777; user-select: none; }
.gpulower .c { color: #6a8759; } .gpulower .k { color: #2471a3; font-weight: 600; }
.gpulower .v { color: #8e44ad; } .gpulower .n { color: #b9770e; } .gpulower .l { color: #777; }
</style>"""


def _box(*parts: str) -> str:
    return f'<div class="gpulower">{_STYLE}{"".join(parts)}</div>'


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def picture(kernel: Kernel) -> str:
    """How full a multiprocessor is, as a bar."""
    filled = kernel.occupancy()
    return "" if filled is None else f"{filled.bar} {filled.fraction:.0%}"


def of_kernels(kernels: Sequence[Kernel]) -> str:
    """A table of kernels."""
    return _box(_kernels(kernels))


def _kernels(kernels: Sequence[Kernel]) -> str:
    if not kernels:
        return ""
    head = "".join(
        f"<th>{name}</th>" for name in ("kernel", "target", "registers", "shared", "spills", "code", "occupancy")
    )
    rows = []
    for kernel in kernels:
        spills = _number(kernel.spills)
        spilling = ' class="warning"' if kernel.spills else ""
        rows.append(
            f"<tr><td>{escaped(kernel.name)}</td><td>{escaped(kernel.target)}</td><td>{_number(kernel.registers)}</td>"
            f"<td>{_number(kernel.shared)}</td><td{spilling}>{spills}</td><td>{_number(kernel.code_bytes)}</td>"
            f"<td>{picture(kernel)}</td></tr>"
        )
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def of_artifact(artifact: Artifact) -> str:
    """An artifact: what it is, its kernels, its warnings."""
    title = f"<b>{escaped(artifact.module)}</b> for {escaped(artifact.target)}: "
    title += f"{escaped(str(artifact.report['title']))}, {len(artifact):,} bytes"
    if artifact.tool:
        title += f" <span class='l'>{escaped(artifact.tool)}</span>"
    warnings = "".join(f'<div class="warning">{escaped(str(warning))}</div>' for warning in artifact.warnings)
    return _box(f"<div>{title}</div>", _kernels(artifact.kernels), warnings)


def of_error(error: Error) -> str:
    """An error: the message, and the source with the place marked."""
    parts = []
    for each in error.errors:
        parts.append(f'<div><span class="wrong">{escaped(each.code)}</span> {_lines(str(each.args[0]))}</div>')
        if each.excerpt and each.line is not None and each.column is not None:
            line = each.excerpt.splitlines()[0].split(" | ", 1)[1]
            parts.append(f"<pre>{_marked(line, each.line, each.column)}</pre>")
    return _box(*parts)


def _lines(text: str) -> str:
    return escaped(text).replace("\n", "<br>")


def _marked(line: str, number: int, column: int) -> str:
    word = re.match(r"[\w.%@#!]+|.", line[column - 1 :])
    end = column - 1 + (len(word[0]) if word else 1)
    before, at, after = line[: column - 1], line[column - 1 : end] or " ", line[end:]
    marked = f'{escaped(before)}<span class="marked">{escaped(at)}</span>{escaped(after)}'
    return f'<span class="number">{number:>4} </span>{marked}'


def of_doctor(doctor: Doctor) -> str:
    """The parts of the toolkits."""
    rows = []
    for part in doctor.report["parts"]:
        found = part["found"]
        state = escaped(part["version"] or "found") if found else '<span class="warning">missing</span>'
        what = escaped(found) if found else escaped(part["advice"] or "")
        rows.append(
            f"<tr><td>{escaped(part['name'])}</td><td>{state}</td><td style='text-align: left'>{what}</td></tr>"
        )
    title = f"gpulower {escaped(doctor.report['gpulower'])}, LLVM {escaped(doctor.report['llvm'])}"
    return _box(f"<div><b>{title}</b></div>", f"<table>{''.join(rows)}</table>")


_PATTERNS = {
    "ptx": r"(?P<c>//[^\n]*)|(?P<k>\.[a-zA-Z_]\w*|\b[a-z]{2,}\d*(?:\.[\w:]+)+)|(?P<v>%\w+)"
    r"|(?P<n>\b0[xfdF][0-9A-Fa-f]+|\b\d+\b)",
    "llvm": r"(?P<c>;[^\n]*)|(?P<k>\b(?:define|declare|call|load|store|br|ret|add|mul|f?add|f?mul|getelementptr|icmp|fcmp|phi"
    r"|select|tail|fast|align|ptr|void|float|double|half|bfloat|i\d+)\b)|(?P<v>[%@#!][\w.$]+)|(?P<n>\b\d[\d.e+-]*)",
    "sass": r"(?P<c>/\*.*?\*/|//[^\n]*)|(?P<k>\b[A-Z][A-Z0-9]+(?:\.[A-Z0-9]+)*\b)"
    r"|(?P<v>\b[UR]?P?R\d+|\bP[T\d]\b)|(?P<n>\b0x[0-9a-f]+)",
}
_PATTERNS["asm"] = (
    r"(?P<c>;[^\n]*)|(?P<k>\b[sv]_\w+|\b(?:global|flat|ds|buffer)_\w+)|(?P<v>\b[sv]\[?[\d:]+\]?)|(?P<n>\b\d+\b)"
)


def highlighted(text: str, language: str) -> str:
    """Code as HTML."""
    parts, end = [], 0
    for found in re.finditer(_PATTERNS[language], text):
        parts.append(escaped(text[end : found.start()]))
        parts.append(f'<span class="{found.lastgroup}">{escaped(found[0])}</span>')
        end = found.end()
    return "".join([*parts, escaped(text[end:])])


def code(text: str, language: str, source: str | None = None) -> str:
    """Code, each part with the line of the source that it comes from, as far as directives and metadata say it."""
    lines = (source or "").splitlines()
    locations = dict(re.findall(r"^(!\d+) = !DILocation\(line: (\d+)", text, re.MULTILINE))
    shown, before = [], 0
    for line in text.splitlines():
        directive = re.match(r'\s*(?:\.loc\s+\d+|//## File ".*", line)\s+(\d+)', line)
        metadata = re.search(r", !dbg (!\d+)", line)
        number = int(directive[1] if directive else locations.get(metadata[1], 0) if metadata else 0)
        is_known = 1 <= number <= len(lines)
        if is_known and number != before:
            shown.append(f'<span class="l">{number:>4} {escaped(lines[number - 1].strip())}</span>')
            before = number
        if not (is_known and directive):
            shown.append(highlighted(line, language))
    return _box("<pre>" + "\n".join(shown) + "</pre>")


class Code:
    """Code that a notebook shows with colours."""

    def __init__(self, text: str, language: str, source: str | None = None) -> None:
        self.text, self.language, self.source = text, language, source

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return code(self.text, self.language, self.source)
