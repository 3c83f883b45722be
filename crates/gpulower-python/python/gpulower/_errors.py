"""What goes wrong, as exceptions by code: docs/errors.md lists the codes, with what to do."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from . import _native


@dataclass(frozen=True)
class Note:
    """A further remark of the compiler about a failure."""

    location: str
    message: str


class Error(Exception):
    """A failure: the stage, the module, the target, the place in the source, and what is wrong.

    Where a call fails for several modules or targets, this is the first failure, and `errors` has all of them.
    """

    def __init__(
        self, details: Mapping[str, Any] | str, excerpt: str | None = None, errors: Sequence[Error] = ()
    ) -> None:
        fields: dict[str, Any] = dict(details) if not isinstance(details, str) else {"message": details}
        place = fields.get("place") or {}
        self._details = fields
        #: `E0301` and its like; the same in all releases.
        self.code: str = fields.get("code") or _CODES.get(type(self), "E9901")
        #: The stage that failed: `input`, `plan`, `lower`, and so on.
        self.stage: str | None = fields.get("stage")
        #: The `gpu.module`, or the name of the input.
        self.module: str | None = fields.get("module")
        #: The target that was compiled for.
        self.target: str | None = fields.get("target")
        #: The kernels concerned, where that is known.
        self.kernels: tuple[str, ...] = tuple(fields.get("kernels") or ())
        #: Symbols that nothing defines, where that is what is wrong.
        self.symbols: tuple[str, ...] = tuple(fields.get("symbols") or ())
        #: What is wrong, without the rest.
        self.message: str = fields["message"]
        #: The place as MLIR writes it.
        self.location: str | None = place.get("mlir")
        self.file: str | None = place.get("file")
        self.line: int | None = place.get("line")
        self.column: int | None = place.get("column")
        self.notes: tuple[Note, ...] = tuple(
            Note(note["place"]["shown"], note["message"]) for note in fields.get("notes") or ()
        )
        #: The line of the source with a caret below the place, where the source is at hand.
        self.excerpt = excerpt
        self._others = tuple(errors)
        super().__init__(fields.get("text") or self.message)

    @property
    def errors(self) -> tuple[Error, ...]:
        """Everything that failed in the same call, this one first."""
        return (self, *self._others)

    def __str__(self) -> str:
        parts = []
        for error in self.errors:
            parts.append(str(error.args[0]))
            if error.excerpt:
                parts.append(error.excerpt)
        return "\n".join(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (type(self), self._details, self.excerpt, self._others))

    def _repr_html_(self) -> str:
        from ._html import of_error

        return of_error(self)


def _again(kind: type[Error], details: Mapping[str, Any], excerpt: str | None, others: Sequence[Error]) -> Error:
    return kind(details, excerpt, others)


class InputError(Error):
    """E0101: the input cannot be read, or holds nothing to compile."""


class TargetError(Error):
    """E0201: the target does not exist, or cannot do what is asked."""


class OptionError(Error):
    """E0202: an option cannot be read, or not be honoured."""


class LoweringError(Error):
    """E0301: something in the MLIR cannot be lowered."""


class SymbolError(Error):
    """E0401: symbols that no library defines, or several modules."""


class LinkError(Error):
    """E0402: code could not be linked."""


class CodeGenerationError(Error):
    """E0501: LLVM has no code for something."""


class AssemblyError(Error):
    """E0502: the vendor's compiler refused the code."""


class ToolkitError(Error):
    """E0601: a part of CUDA or ROCm is missing, or too old."""


class ImageError(Error):
    """E0701: an image cannot be read, or not be put into a container."""


class ExportError(Error):
    """E0801: a program cannot be exported."""


class CacheError(Error):
    """E0901: what was compiled differs from what the cache has; the cache's directory cannot be used."""


class ListenerError(Error):
    """E1001: a listener ended it."""


class CancelledError(Error):
    """E1101: it was cancelled."""


class TimeLimitError(Error, TimeoutError):
    """E1102: it was not done within its time limit."""


class MemoryLimitError(Error, MemoryError):
    """E1103: there was not enough memory."""


class CrashError(Error):
    """E1201: a compiler crashed, in this process, in a worker, or on a farm."""


class WorkerError(Error):
    """E1202: the worker program cannot be used."""


class InternalError(Error):
    """E9901: a bug in gpulower."""


KINDS: dict[str, type[Error]] = {
    "E0101": InputError,
    "E0201": TargetError,
    "E0202": OptionError,
    "E0301": LoweringError,
    "E0401": SymbolError,
    "E0402": LinkError,
    "E0501": CodeGenerationError,
    "E0502": AssemblyError,
    "E0601": ToolkitError,
    "E0701": ImageError,
    "E0801": ExportError,
    "E0901": CacheError,
    "E1001": ListenerError,
    "E1101": CancelledError,
    "E1102": TimeLimitError,
    "E1103": MemoryLimitError,
    "E1201": CrashError,
    "E1202": WorkerError,
    "E9901": InternalError,
}
_CODES: dict[type[Error], str] = {kind: code for code, kind in KINDS.items()}


def excerpt(text: str, line: int, column: int) -> str | None:
    """A line of a source, and a caret below."""
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return None
    shown = lines[line - 1].expandtabs(1)
    number = str(line)
    return f" {number} | {shown}\n {' ' * len(number)} | {' ' * (column - 1)}^"


def _excerpt(details: Mapping[str, Any], sources: Mapping[str, bytes]) -> str | None:
    place = details.get("place") or {}
    source = sources.get(place.get("file") or "")
    if source is None or place.get("line") is None:
        return None
    try:
        return excerpt(source.decode(), place["line"], place["column"])
    except UnicodeDecodeError:
        return None


def of_failure(failure: _native.Failure, sources: Mapping[str, bytes]) -> Error:
    """The exception for a failure of the native half."""
    try:
        entries = json.loads(failure.args[0])
    except ValueError:
        return InternalError(str(failure))
    made: list[Error] = []
    for details in reversed(entries):
        kind = KINDS.get(details["code"], Error)
        others = tuple(reversed(made)) if details is entries[0] else ()
        made.append(kind(details, _excerpt(details, sources), others))
    return made[-1] if made else InternalError("a failure without errors")


@contextmanager
def raised_here(sources: Mapping[str, bytes] | None = None) -> Iterator[None]:
    """Turns failures of the native half into exceptions of this module."""
    try:
        yield
    except _native.Failure as failure:
        raise of_failure(failure, sources or {}) from None


def escaped(text: str) -> str:
    """Text for HTML."""
    return html.escape(text)
