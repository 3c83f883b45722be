"""What the GPU checks share: how a check is said and counted, the command line, programs that are packed and run, arrays as arguments.

Each file of this folder is one check: `python3 FILE run FOLDER` where the GPU is, and before that, where it needs more than kernels that
`cargo xtask gpu make` compiles, `python3 FILE make FOLDER` where the compiler is.
Needs nothing but Python itself; what finds a GPU by cupy is `gpu`.
"""

from __future__ import annotations

import argparse
import importlib
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent
# For `make`, which runs in the repository alone.
ROOT = HERE.parent.parent
GPULOWER = Path(os.environ.get("GPULOWER", ROOT / "target/debug/gpulower")).absolute()
CUDA = Path(os.environ.get("CUDA_HOME", ROOT / ".toolkit/cuda")).absolute()
LLVM = Path(os.environ.get("GPULOWER_LLVM_BIN", "/usr/lib/llvm-22/bin"))

Word = str | Path


class Checks:
    """Says each check in a line, and counts."""

    def __init__(self, what: str = "checks", width: int = 32) -> None:
        self.what, self.width = what, width
        self.count = self.failed = 0

    def check(self, name: str, right: bool, detail: str = "") -> bool:
        """Says one. Further lines of the detail are indented."""
        self.count += 1
        self.failed += not right
        detail = detail.rstrip().replace("\n", "\n    ")
        print(f"{'ok' if right else 'FAILED':6} {name:{self.width}} {detail}".rstrip(), flush=True)
        return right

    def expect(self, name: str, command: Sequence[Word], status: int = 0, text: str = "", printed: str | None = None, **more: Any) -> bool:
        """Runs a program: its exit status, a text in what it says, and all of its output, where these are given."""
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, **more)
        except (OSError, subprocess.TimeoutExpired) as error:
            return self.check(name, False, str(error))
        said = (done.stdout + done.stderr).strip()
        if done.returncode == status and text in said and printed in (None, done.stdout.strip()):
            return self.check(name, True, said)
        wanted = f", and {printed or text!r}" if printed or text else ""
        return self.check(name, False, f"exit status {done.returncode} (expected {status}{wanted}), said: {said}")

    def status(self) -> int:
        """Says how many are right; the exit status."""
        print(f"{self.count - self.failed} of {self.count} {self.what} are right")
        return int(self.failed > 0 or self.count == 0)


def command_line(
    documentation: str | None,
    run: Callable[[argparse.Namespace], int],
    make: Callable[[argparse.Namespace], None] | None = None,
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None,
    takes_wheel: bool = False,
) -> NoReturn:
    """`make FOLDER` and `run FOLDER`, with the options that `run` has, and for `make` the Python package if it is taken along."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runner = verbs.add_parser("run")
    runner.add_argument("folder", type=Path)
    options(runner)
    if make:
        maker = verbs.add_parser("make")
        maker.add_argument("folder", type=Path)
        maker.add_argument("--target", default="sm_90")
        if takes_wheel:
            maker.add_argument("--wheel", type=Path, required=True, help="the Python package")
    chosen = parser.parse_args()
    if chosen.verb == "make" and make:
        chosen.folder.mkdir(parents=True, exist_ok=True)
        chosen.folder = chosen.folder.resolve()
        make(chosen)
        sys.exit()
    if not chosen.folder.is_dir():
        sys.exit(f"there is no folder {chosen.folder}: `cargo xtask gpu make` makes it")
    chosen.folder = chosen.folder.resolve()
    sys.exit(run(chosen))


def made(command: Sequence[Word], **more: Any) -> str:
    """What a program prints that has to succeed."""
    done: subprocess.CompletedProcess[str] = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def shell(commands: str, **more: Any) -> str:
    """The same for what is printed to be pasted into a shell."""
    return made(["sh", "-ec", commands], **more)


def pack(program: Path, to: Path) -> None:
    """Leaves a program in TO.xz, without symbols."""
    made(["strip", "-o", to, program])
    made(["xz", "-f", "-T0", to])


def unpacked(path: Path, folder: Path) -> Path:
    """A program of a file that ends in .xz."""
    program = folder / path.stem
    with lzma.open(path) as source, program.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    program.chmod(0o755)
    return program


def pack_site(chosen: argparse.Namespace) -> None:
    """Leaves the Python package beside FOLDER, for all parts, unless what is there is newer."""
    archive = chosen.folder.parent / "site.tar.xz"
    if archive.exists() and archive.stat().st_mtime > chosen.wheel.stat().st_mtime:
        return
    with tempfile.TemporaryDirectory() as work:
        made([sys.executable, "-m", "zipfile", "-e", chosen.wheel, f"{work}/site"])
        made(["strip", "--strip-unneeded", *Path(work).glob("site/gpulower/_native*.so")])
        made(["tar", "-C", work, "-cJf", archive, "site"], env={"XZ_OPT": "-T0", **os.environ})


def unpacked_site(folder: Path, work: str) -> dict[str, str]:
    """The environment in which Python finds it, and writes to a folder of its own alone."""
    site = folder.parent / "site.tar.xz"
    if not site.exists():
        sys.exit(f"there is no {site}: `cargo xtask gpu make` makes it")
    with tarfile.open(site) as archive:
        archive.extractall(work)
    caches = {"XDG_CACHE_HOME": f"{work}/cache", "TRITON_CACHE_DIR": f"{work}/triton", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **caches, "PYTHONPATH": f"{work}/site"}


def need(name: str) -> Any:
    """A package that Python does not bring along."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        sys.exit(f"needs {name}, which does not import: {error}")


def gpu() -> Any:
    """cupy, where it finds a GPU, which is said."""
    cupy = need("cupy")
    runtime = cupy.cuda.runtime
    try:
        found = runtime.getDeviceProperties(0)
    except runtime.CUDARuntimeError as error:
        sys.exit(f"cupy finds no NVIDIA GPU: {error}")
    driver, capability = runtime.driverGetVersion(), f"{found['major']}.{found['minor']}"
    print(f"{found['name'].decode()}, {capability}, driver for CUDA {driver // 1000}.{driver % 1000 // 10}", flush=True)
    return cupy


def memref(array: Any) -> list[Any]:
    """The kernel parameters of a memref: allocated and aligned pointer, offset, sizes, strides in elements."""
    np = need("numpy")
    pointer = np.uint64(array.data.ptr)
    strides = [stride // array.itemsize for stride in array.strides]
    return [pointer, pointer, np.int64(0), *(np.int64(value) for value in (*array.shape, *strides))]


def launch(function: Any, grid: tuple[int, ...], block: tuple[int, ...], *arguments: Any) -> None:
    """Runs a kernel to its end; arrays are memrefs."""
    cupy = need("cupy")
    parameters = [part for one in arguments for part in (memref(one) if isinstance(one, cupy.ndarray) else [one])]
    function(grid, block, tuple(parameters))
    cupy.cuda.Device().synchronize()
