"""Compiling a case for a target that need not be here."""

from __future__ import annotations

from typing import Any

import triton
from kernels import Case
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
    "gfx1100": GPUTarget("hip", "gfx1100", 32),
}


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
    source = ASTSource(case.function, signature, constants, attributes)
    options = {"num_warps": case.warps, "num_stages": case.stages}
    return triton.compile(source, target=TARGETS[target], options=options)
