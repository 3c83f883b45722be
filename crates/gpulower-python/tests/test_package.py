"""The package itself: what its library shows, needs and is named, and who it lives beside."""

from __future__ import annotations

import os
import re
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.tags import cpython_tags
from packaging.utils import parse_wheel_filename

import gpulower
from conftest import run
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


def made(pattern: str) -> Path:
    folder = os.environ.get("GPULOWER_WHEELS")
    assert folder, "`cargo xtask test python` makes the wheel and the sources and says where they are: GPULOWER_WHEELS"
    [path] = Path(folder).glob(pattern)
    return path


@pytest.fixture
def wheel() -> Path:
    return made("*.whl")


def dynamic(*flags: str) -> str:
    return run("readelf", "-W", *flags, LIBRARY).stdout


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


def test_the_oldest_system_that_it_is_for() -> None:
    """As docs/python.md says: glibc 2.34 and the libstdc++ of GCC 11."""
    needed = re.findall(r"Name: (GLIBC|GLIBCXX)_([\d.]+)", dynamic("-V"))
    versions = [(library, tuple(map(int, version.split(".")))) for library, version in needed]
    newest = {library: max(each for its, each in versions if its == library) for library, _ in versions}
    assert newest["GLIBC"] <= (2, 34)
    assert newest["GLIBCXX"] <= (3, 4, 29)


def test_the_wheel_is_what_its_name_says(wheel: Path) -> None:
    [platform] = re.findall(r"-cp310-abi3-(manylinux_\d+_\d+_x86_64)\.whl$", wheel.name)
    # It unpacks the wheel into the folder for temporary files, which may be small: here is room, since the wheel was made here.
    shown = run(tool("auditwheel"), "show", wheel, env={**os.environ, "TMPDIR": str(wheel.parent)}).stdout
    assert f'"{platform}"' in " ".join(shown.split())
    run(tool("abi3audit"), "--strict", wheel)
    names = zipfile.ZipFile(wheel).namelist()
    assert "gpulower/py.typed" in names
    assert "gpulower/_native.pyi" in names
    assert len([name for name in names if name.endswith("_native.abi3.so")]) == 1
    scripts = zipfile.ZipFile(wheel).read("gpulower-0.1.0.dist-info/entry_points.txt").decode()
    assert re.findall(r"^[\w-]+(?==)", scripts, re.MULTILINE) == ["gpulower", "gpulower-opt"]


def test_a_python_without_a_lock_does_not_take_it(wheel: Path) -> None:
    """Such builds have no stable interface: pip finds no wheel, and takes the sources."""
    tags = parse_wheel_filename(wheel.name)[3]
    platforms = {tag.platform for tag in tags}
    assert tags & set(cpython_tags((3, 13), ["cp313"], platforms))
    assert not tags & set(cpython_tags((3, 13), ["cp313t"], platforms))


def test_the_sources_are_all_that_the_build_reads(wheel: Path, tmp_path: Path) -> None:
    run("tar", "-xzf", made("*.tar.gz"), "-C", tmp_path)
    [root] = tmp_path.iterdir()
    # Cargo writes down what it read, scripts of the build and C++ included.
    read = Path(os.environ["GPULOWER_DEP_INFO"]).read_text().partition(": ")[2]
    files = [Path(name.replace("\\ ", " ")) for name in re.split(r"(?<!\\)\s+", read.strip())]
    checkout = Path(__file__).parents[3]
    own = {file.relative_to(checkout) for file in files if file.is_relative_to(checkout)}
    needed = {file for file in own if file.parts[0] != "target"}
    assert Path("src/lib.rs") in needed
    assert Path("crates/gpulower-python/src/lib.rs") in needed
    assert not {file for file in needed if not (root / file).exists()}
    packaged = [name for name in zipfile.ZipFile(wheel).namelist() if re.match(r"gpulower/.*\.(py|pyi|typed)$", name)]
    assert not [name for name in packaged if not (root / "python" / name).exists()]
    assert {path.name for path in root.iterdir() if path.name.startswith(".")} == set()
    # As a build reads the manifests: `cargo metadata` passes over targets whose files are not there.
    cargo = Path(os.environ["CARGO"])
    environment = {**os.environ, "RUSTC": str(cargo.with_name("rustc"))}
    run(cargo, "fetch", "--offline", "--target=x86_64-unknown-linux-gnu", cwd=root, env=environment)


def test_what_the_stub_declares_is_there() -> None:
    stub = Path(gpulower.__file__).with_name("_native.pyi").read_text()
    declared = set(re.findall(r"^(?:def|class) (\w+)", stub, re.MULTILINE))
    there = {name for name in vars(_native) if not name.startswith("__")}
    assert declared == there
    methods = set(re.findall(r"^    def (\w+)", stub, re.MULTILINE))
    for kind in (_native.Compiler, _native.Token):
        assert {name for name in vars(kind) if not name.startswith("__")} <= methods


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import gpulower
run = getattr(interpreters, "exec", None) or interpreters.run_string
try:
    print(run(interpreters.create(), "import gpulower").formatted)
except RuntimeError as error:
    print(error)
gpulower.compile("gpu.module @m { gpu.func @k() kernel { gpu.return } }", "gfx942", cache=False)
"""


def test_an_interpreter_below_another_is_refused() -> None:
    done = run(sys.executable, "-c", SUBINTERPRETER)
    assert re.search("ImportError.* does not support loading in subinterpreters", done.stdout), done.stdout
    assert done.stderr == ""


def test_a_python_without_subinterpreters() -> None:
    run(sys.executable, "-c", "import sys; sys.modules['_xxsubinterpreters'] = None; import gpulower")


def beside(module: str, first: bool) -> None:
    parts = [f"import {module}", USE] if first else [USE, f"import {module}", USE]
    run(sys.executable, "-c", "\n".join(parts))


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
