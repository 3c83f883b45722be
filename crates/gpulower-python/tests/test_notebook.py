"""What notebooks show, as far as a test can see: docs/python.md has a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

import gpulower
from conftest import BROKEN, SAXPY
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
