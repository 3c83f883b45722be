"""The code of the documentation is run, page by page."""

from __future__ import annotations

import linecache
import re
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest

PAGES = [Path(__file__).parents[3] / "docs" / name for name in ("python.md", "farms.md")]


def blocks(page: Path) -> list[tuple[int, str, str]]:
    """Lines, marks (`<!-- gpu -->` above a block; `ipython` for cells of notebooks) and texts of the blocks of Python."""
    text = page.read_text()
    found = re.finditer(r"(?:<!-- (\w+) -->\n)?```(i?python)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    cell = {"ipython": "ipython", "python": ""}
    return [(text.count("\n", 0, match.start(3)) + 1, match[1] or cell[match[2]], match[3]) for match in found]


def run(page: Path, marks: set[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the blocks without a mark, and those with these."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "documentation"}
    ran = 0
    for line, mark, text in blocks(page):
        if mark and mark not in marks:
            continue
        title = f"{page}:{line}"
        linecache.cache[title] = (len(text), None, text.splitlines(keepends=True), title)
        exec(compile(text, title, "exec"), names)
        ran += 1
    assert ran > 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_the_pages(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, set(), tmp_path, monkeypatch)


def test_the_cells_of_the_page() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell: Any = InteractiveShell.instance()
    cells = [text for _, mark, text in blocks(PAGES[0]) if mark == "ipython"]
    shown = [shell.run_cell(text) for text in cells]
    for done in shown:
        done.raise_error()
    assert shell.user_ns["fill"].kernels[0].name == "fill"
    assert ".maxnreg 32" in str(shown[-1].result)


def test_what_pip_is_told() -> None:
    """What nothing but a network can run is at least there: extras."""
    named = set(re.findall(r"gpulower\[(\w+)\]|or \[(\w+)\]", PAGES[0].read_text()))
    extras = metadata("gpulower").get_all("Provides-Extra")
    assert {one or other for one, other in named} == set(extras or ())


def test_every_block_is_run() -> None:
    """Any other block of code is a command for a shell."""
    for page in PAGES:
        kinds = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)[::2]
        assert set(kinds) <= {"python", "ipython", "sh"}
        assert kinds.count("sh") == (page.name == "python.md")


@pytest.mark.gpu
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_for_gpus(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, {"gpu"}, tmp_path, monkeypatch)


@pytest.mark.large
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_for_clusters(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, {"large"}, tmp_path, monkeypatch)
