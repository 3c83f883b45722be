"""The package itself: what its library shows, needs and is named, and who it lives beside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import gpulower
from gpulower import _native

LIBRARY = Path(str(_native.__file__))

USE = '''
import gpulower
source = """gpu.module @m { gpu.func @k(%v: f32, %p: memref<?xf32>) kernel {
  %s = math.sin %v : f32
  %c = arith.constant 0 : index
  memref.store %s, %p[%c] : memref<?xf32>
  gpu.return } }"""
for target in ("sm_90", "gfx942"):
    assert gpulower.compile(source, target, cache=False).kernels
try:
    gpulower.compile("define ptx_kernel void @k() { unreachable", "sm_90")
except gpulower.Error:
    pass
'''


def tool(name: str) -> str:
    folder = os.environ.get("GPULOWER_TOOLS", "")
    return os.path.join(folder, name)


@pytest.fixture
def wheel() -> Path:
    folder = os.environ.get("GPULOWER_WHEELS")
    assert folder, "`cargo xtask test python` makes the wheel and says where it is: GPULOWER_WHEELS"
    [path] = Path(folder).glob("*.whl")
    return path


def dynamic(*flags: str) -> str:
    return subprocess.run(["readelf", "-W", *flags, LIBRARY], capture_output=True, text=True, check=True).stdout


def test_one_symbol_is_exported() -> None:
    """Besides what crc-fast, which comes with S3, marks as exported: functions of C without a state."""
    defined = [line.split()[-1] for line in dynamic("--dyn-syms").splitlines()[4:] if " UND " not in line]
    assert [name for name in defined if name and not name.startswith("crc_fast_")] == ["PyInit__native"]


def test_it_can_be_loaded_at_any_time() -> None:
    """Static thread-local storage is what there is no more of when a process has begun."""
    assert "STATIC_TLS" not in dynamic("-d")
    assert " R_X86_64_TPOFF64 " not in dynamic("-r")


def test_what_it_needs() -> None:
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic("-d")))
    assert not [name for name in needed if re.search("LLVM|MLIR|lld|python|cuda|zstd", name)], needed


def test_the_wheel_is_what_its_name_says(wheel: Path) -> None:
    [platform] = re.findall(r"-cp310-abi3-(manylinux_\d+_\d+_x86_64)\.whl$", wheel.name)
    shown = subprocess.run([tool("auditwheel"), "show", wheel], capture_output=True, text=True, check=True).stdout
    assert f'"{platform}"' in " ".join(shown.split())
    audit = subprocess.run([tool("abi3audit"), "--strict", wheel], capture_output=True, text=True, check=False)
    assert audit.returncode == 0, audit.stdout + audit.stderr
    names = zipfile.ZipFile(wheel).namelist()
    assert "gpulower/py.typed" in names
    assert "gpulower/_native.pyi" in names
    assert len([name for name in names if name.endswith("_native.abi3.so")]) == 1
    scripts = zipfile.ZipFile(wheel).read("gpulower-0.1.0.dist-info/entry_points.txt").decode()
    assert re.findall(r"^[\w-]+(?==)", scripts, re.MULTILINE) == ["gpulower", "gpulower-opt"]


def test_what_the_stub_declares_is_there() -> None:
    stub = Path(gpulower.__file__).with_name("_native.pyi").read_text()
    declared = set(re.findall(r"^(?:def|class) (\w+)", stub, re.MULTILINE))
    there = {name for name in vars(_native) if not name.startswith("__")}
    assert declared == there
    methods = set(re.findall(r"^    def (\w+)", stub, re.MULTILINE))
    for kind in (_native.Compiler, _native.Token):
        assert {name for name in vars(kind) if not name.startswith("__")} <= methods


def beside(module: str, first: bool) -> None:
    parts = [f"import {module}", USE] if first else [USE, f"import {module}", USE]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(parts)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("module", ["numba_cuda_mlir", "numpy"])
def test_beside_others(module: str, first: bool) -> None:
    """The library of numba-cuda-mlir exports all of MLIR 23."""
    beside(module, first)


@pytest.mark.large
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("module", ["llvmlite.binding", "torch", "triton._C.libtriton", "jax.numpy"])
def test_beside_larger_ones(module: str, first: bool) -> None:
    beside(module, first)
