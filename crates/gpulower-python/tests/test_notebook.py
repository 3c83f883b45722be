"""What notebooks show: its text, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import gpulower
from conftest import BROKEN, SAXPY, run
from gpulower import _html


def parsed(html: str) -> str:
    """All of its text; it has to be well formed."""
    return "".join(ElementTree.fromstring(html.replace("<br>", "<br/>")).itertext())


def test_artifacts_errors_and_the_doctor() -> None:
    artifact = gpulower.compile(SAXPY, "sm_90", name="<saxpy>")
    text = parsed(artifact._repr_html_())
    assert "kernels for sm_90: cubin" in text
    assert "100%" in text
    occupancy = artifact.kernels[0].occupancy()
    assert occupancy is not None
    assert "the limit" in parsed(occupancy._repr_html_())
    with pytest.raises(gpulower.Error) as raised:
        gpulower.compile(BROKEN, "sm_90")
    html = raised.value._repr_html_()
    assert '<span class="marked">arith.nonsense</span>' in html
    assert "E0101" in parsed(html)
    assert "ptxas" in parsed(gpulower.doctor()._repr_html_())


def test_code_has_colours_and_its_source_beside() -> None:
    artifact = gpulower.compile(SAXPY, "sm_90", debug="line-tables")
    html = _html.code(artifact.ptx, "ptx", SAXPY)
    assert "%ax = arith.mulf %a, %xi : f32" in parsed(html)
    assert '<span class="k">.visible</span>' in html
    assert "fma" in parsed(html) or "mul" in parsed(html)
    for language, text in (("llvm", artifact.llvm), ("asm", gpulower.compile(SAXPY, "gfx942").assembly)):
        assert parsed(_html.code(text, language)).endswith("\n".join(text.splitlines()))


def test_llvm_ir_has_its_source_beside() -> None:
    artifact = gpulower.compile(SAXPY, "sm_90", debug="line-tables")
    lines = parsed(_html.code(artifact.llvm, "llvm", SAXPY)).splitlines()
    [at] = [number for number, line in enumerate(lines) if "%sum = arith.addf" in line or "%ax = arith.mulf" in line][
        :1
    ]
    assert re.search(r"\bf(mul|add|ma)\b|fmuladd", lines[at + 1]), lines[at : at + 2]


#: Tells what of a page lies outside of it, what has no size, and how marks look.
LOOK = """<script>addEventListener("load", () => {
  const all = [...document.querySelectorAll(".gpulower, .gpulower table, .gpulower pre, .gpulower svg")];
  const size = (each) => each.getBoundingClientRect();
  const wide = all.filter((each) => size(each).right > innerWidth + 1).length;
  const empty = all.filter((each) => size(each).width < 5 || size(each).height < 5).length;
  const mark = getComputedStyle(document.querySelector(".marked")).backgroundColor;
  const keyword = getComputedStyle(document.querySelector(".k")).color;
  const drawn = document.querySelectorAll(".gpulower svg").length;
  document.title = JSON.stringify({wide, empty, mark, keyword, drawn});
})</script>"""


def test_a_browser_shows_it(tmp_path: Path) -> None:
    artifact = gpulower.compile(SAXPY, "sm_90", debug="line-tables")
    occupancy = artifact.kernels[0].occupancy()
    assert occupancy is not None
    with pytest.raises(gpulower.Error) as raised:
        gpulower.compile(BROKEN, "sm_90")
    shown: list[Any] = [artifact, occupancy, raised.value, gpulower.doctor()]
    shown += [_html.Code(artifact.ptx, "ptx", SAXPY), _html.Code(artifact.llvm, "llvm", SAXPY)]
    page = tmp_path / "page.html"
    body = "<hr>".join(each._repr_html_() for each in shown)
    page.write_text(f"<!doctype html><meta charset=utf-8><body style='max-width: 1000px'>{LOOK}{body}")
    browser = shutil.which("chromium")
    assert browser, "this test needs chromium: apt-get install chromium"
    flags = ["--headless", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"]
    flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    flags += ["--window-size=1040,2000"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    seen = run(browser, *flags, profile, "--dump-dom", page.as_uri()).stdout
    found = re.search("<title>(.*?)</title>", seen)
    assert found, seen[:1000]
    looks = json.loads(found[1])
    assert (looks["wide"], looks["empty"]) == (0, 0), looks
    assert looks["drawn"] == 1
    assert looks["mark"] == "rgba(192, 57, 43, 0.2)"
    assert looks["keyword"] == "rgb(36, 113, 163)"


@pytest.fixture
def shell() -> Any:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "gpulower")
    return shell


def test_the_magic(shell: Any) -> None:
    made = shell.run_cell_magic("mlir", "saxpy --target sm_90", SAXPY)
    assert shell.user_ns["saxpy"] is made
    assert made.kernels[0].name == "saxpy"
    shown = shell.run_cell_magic("mlir", "saxpy --target sm_90 --show ptx -o max_registers=32", SAXPY)
    assert ".maxnreg 32" in str(shown)
    assert "arith.mulf" in parsed(shown._repr_html_())
    sass = shell.run_cell_magic("mlir", "saxpy --target sm_90 --show sass", SAXPY)
    assert "EXIT" in str(sass)
    assert "memref.store" in parsed(sass._repr_html_())
    assert shell.run_cell_magic("mlir", "broken --target sm_90", BROKEN) is None
