"""Kernels, and compilers, that the tests share."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import gpulower

SAXPY = """
gpu.module @kernels {
  gpu.func @saxpy(%n: index, %a: f32, %x: memref<?xf32>, %y: memref<?xf32>) kernel {
    %block = gpu.block_id x
    %size = gpu.block_dim x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %size : index
    %i = arith.addi %base, %thread : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %xi = memref.load %x[%i] : memref<?xf32>
      %yi = memref.load %y[%i] : memref<?xf32>
      %ax = arith.mulf %a, %xi : f32
      %sum = arith.addf %ax, %yi : f32
      memref.store %sum, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
}
"""

#: What no dialect has.
BROKEN = "gpu.module @broken {\n  gpu.func @k() kernel {\n    arith.nonsense\n    gpu.return\n  }\n}\n"


def kernel(number: int) -> str:
    """A kernel that differs from others."""
    return f"""gpu.module @m{number} {{
  gpu.func @k{number}(%out: memref<?xi64>) kernel {{
    %i = gpu.thread_id x
    %c = arith.constant {number} : i64
    memref.store %c, %out[%i] : memref<?xi64>
    gpu.return
  }}
}}
"""


def run(
    *command: str | Path,
    status: int = 0,
    given: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Runs a program, which has to end with this status: where it does not, the failure shows what it printed. What it started
    ends with it when it takes too long."""
    pipe = subprocess.PIPE
    program = subprocess.Popen(
        command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    try:
        done = subprocess.CompletedProcess(command, 0, *program.communicate(given, timeout=limit))
    except BaseException:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        raise
    done.returncode = program.returncode
    assert done.returncode == status, (
        f"{' '.join(map(str, command))} ended with {done.returncode}\n"
        f"--- standard output\n{done.stdout}\n--- standard error\n{done.stderr}"
    )
    return done


@pytest.fixture
def compiler(tmp_path: Path) -> gpulower.Compiler:
    """A compiler with a cache of its own."""
    return gpulower.Compiler(cache=tmp_path / "cache")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees, or fills, the user's cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()
