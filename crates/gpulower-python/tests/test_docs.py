"""The code of the documentation is run, page by page."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import pytest

PAGES = [Path(__file__).parents[3] / "docs" / name for name in ("python.md", "farms.md")]


def blocks(page: Path) -> list[tuple[int, str, str]]:
    """Lines, marks (`<!-- gpu -->` above a block) and texts of the blocks of Python."""
    text = page.read_text()
    found = re.finditer(r"(?:<!-- (\w+) -->\n)?```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, match.start(2)) + 1, match[1] or "", match[2]) for match in found]


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


@pytest.mark.gpu
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_for_gpus(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, {"gpu"}, tmp_path, monkeypatch)


@pytest.mark.large
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_for_clusters(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, {"large"}, tmp_path, monkeypatch)
