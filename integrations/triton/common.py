"""Compiling a case for a target that need not be here."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from typing import Any

import triton
from gpulower_triton import stages
from kernels import Case
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
    "gfx1100": GPUTarget("hip", "gfx1100", 32),
}


@contextlib.contextmanager
def finished_by(who: str, folder: str) -> Iterator[None]:
    """Triton's settings for one of the two, with an empty cache of its own."""
    before = knobs.runtime.add_stages_inspection_hook, knobs.nvidia.mock_ptx_version
    knobs.cache.dir = tempfile.mkdtemp(dir=folder)
    if who == "gpulower":
        stages.install(knobs)
    try:
        yield
    finally:
        knobs.runtime.add_stages_inspection_hook, knobs.nvidia.mock_ptx_version = before


def compiled(case: Case, target: str) -> Any:
    """The kernel, compiled by whom `TRITON_CODEGEN` says."""
    signature: dict[str, str] = {}
    constants: dict[str, int] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for index, (name, kind) in enumerate(case.arguments.items()):
        if isinstance(kind, int):
            signature[name] = "constexpr"
            constants[name] = kind
            continue
        signature[name] = kind
        if kind.startswith("*") or name in case.aligned:
            attributes[(index,)] = [["tt.divisibility", 16]]
        if kind.startswith("*") and target.startswith("gfx"):
            # As Triton itself says of tensors of less than 2 GiB: they are reached by buffer operations.
            attributes[(index,)].append(["tt.pointer_range", 32])
    source = ASTSource(case.function, signature, constants, attributes)
    options = {"num_warps": case.warps, "num_stages": case.stages}
    return triton.compile(source, target=TARGETS[target], options=options)
