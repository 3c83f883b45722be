"""Small kernels in assembly, for the tests of the executor."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Buffer, Pointer, execute

Array = Any
LLVM = Path(os.environ.get("GPULOWER_LLVM_BIN", "/usr/lib/llvm-22/bin"))

_HEAD = {
    "gfx9": """
  s_load_dwordx2 s[8:9], s[4:5], 0x0
  s_load_dwordx2 s[10:11], s[4:5], 0x8
  s_waitcnt lgkmcnt(0)
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 4, v0
  global_load_dwordx4 v[4:7], v1, s[8:9]
  v_lshlrev_b32 v1, 5, v0
  s_waitcnt vmcnt(0)
""",
    "gfx11": """
  s_load_b64 s[8:9], s[4:5], 0x0
  s_load_b64 s[10:11], s[4:5], 0x8
  s_waitcnt lgkmcnt(0)
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 4, v0
  global_load_b128 v[4:7], v1, s[8:9]
  v_lshlrev_b32 v1, 5, v0
  s_waitcnt vmcnt(0)
""",
    "gfx12": """
  s_load_b64 s[8:9], s[4:5], 0x0
  s_load_b64 s[10:11], s[4:5], 0x8
  s_wait_kmcnt 0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 4, v0
  global_load_b128 v[4:7], v1, s[8:9]
  v_lshlrev_b32 v1, 5, v0
  s_wait_loadcnt 0
""",
}
_STORE = {"gfx9": "global_store_dwordx4", "gfx11": "global_store_b128", "gfx12": "global_store_b128"}


def _generation(target: str) -> str:
    return next(key for key in ("gfx11", "gfx12", "gfx9") if target.startswith(key))


def _kernel(target: str, name: str, body: str, lds: int, scratch: int, mode: int) -> str:
    generation = _generation(target)
    store = _STORE[generation]
    wave32 = "  .amdhsa_wavefront_size32 1\n" if generation != "gfx9" else ""
    accumulators = "  .amdhsa_accum_offset 64\n" if generation == "gfx9" else ""
    defined = "\n".join(f"  v_mov_b32 v{register}, 0" for register in range(8, 16))
    return f"""
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{_HEAD[generation]}
{defined}
{body}
  {store} v1, v[8:11], s[10:11]
  {store} v1, v[12:15], s[10:11] offset:16
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {name}
  .amdhsa_group_segment_fixed_size {lds}
  .amdhsa_private_segment_fixed_size {scratch}
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_user_sgpr_dispatch_ptr 1
  .amdhsa_user_sgpr_queue_ptr 1
  .amdhsa_next_free_vgpr 64
  .amdhsa_next_free_sgpr 32
  .amdhsa_float_round_mode_32 {mode & 3}
  .amdhsa_float_round_mode_16_64 {mode >> 2 & 3}
  .amdhsa_float_denorm_mode_32 {mode >> 4 & 3}
  .amdhsa_float_denorm_mode_16_64 {mode >> 6 & 3}
{wave32}{accumulators}.end_amdhsa_kernel
"""


def _metadata(target: str, names: list[str]) -> str:
    kernels = "".join(
        f"""  - .name: {name}
    .symbol: {name}.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: {64 if _generation(target) == "gfx9" else 32}
    .sgpr_count: 32
    .vgpr_count: 64
    .max_flat_workgroup_size: 256
    .args:
      - {{.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}}
"""
        for name in names
    )
    head = f"---\namdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--{target}\namdhsa.kernels:\n"
    return f".amdgpu_metadata\n{head}{kernels}...\n.end_amdgpu_metadata\n"


@cache
def assemble(target: str, bodies: tuple[str, ...], lds: int = 0, scratch: int = 0, mode: int = 0xF0) -> codeobject.CodeObject:
    """Kernels test0, test1, ... with two pointers: x, four words for each thread, is in v[4:7], the address of y in s[10:11], and v1 is
    32 times the thread's number. A body ends the program itself, or falls through to the store of v[8:15] to y."""
    names = [f"test{number}" for number in range(len(bodies))]
    text = f'.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n'
    text += "".join(_kernel(target, name, body, lds, scratch, mode) for name, body in zip(names, bodies, strict=True))
    text += f".text\n.fill 64, 4, 0xBF9F0000\n{_metadata(target, names)}"
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "test.s", Path(folder) / "test.hsaco"
        source.write_text(text)
        command = [str(LLVM / "clang"), "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AssertionError(f"{' '.join(command)}\n{done.stderr}")
        return codeobject.read(made)


def run_all(
    target: str,
    bodies: Sequence[str],
    x: Array,
    *,
    threads: int | None = None,
    lds: int = 0,
    scratch: int = 0,
    mode: int = 0xF0,
    seed: int = 0,
) -> list[Array]:
    """y of each body as [thread, word]: eight words of 32 bits for each thread, from v[8:15]."""
    code = assemble(target, tuple(bodies), lds, scratch, mode)
    return [run_assembled(code, number, x, threads=threads, seed=seed) for number in range(len(bodies))]


def run_assembled(code: codeobject.CodeObject, number: int, x: Array, *, threads: int | None = None, seed: int = 0) -> Array:
    """One of several."""
    count = threads or len(x)
    buffers = [Buffer("x", np.ascontiguousarray(x).view(np.uint32)), Buffer("y", np.zeros((count, 8), np.uint32), writable=True)]
    geometry = Geometry((1, 1, 1), (count, 1, 1))
    result = execute(code, f"test{number}", geometry, buffers, [Pointer("x"), Pointer("y")], seed=seed, fuel=200_000)
    return result.outputs["y"]


def run(target: str, body: str, x: Array, **more: int) -> Array:
    """One body."""
    return run_all(target, [body], x, **more)[0]
