"""One source at a time."""

from __future__ import annotations

import array
import asyncio
import mmap
import os
import pickle
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gpulower
from conftest import BROKEN, SAXPY, kernel, run
from gpulower import _native
from gpulower._compiler import usual


def test_a_cubin_with_what_its_kernel_needs() -> None:
    artifact = gpulower.compile(SAXPY, target="sm_90")
    assert artifact.format == "cubin"
    assert artifact[:4] == b"\x7fELF"
    assert artifact.module == "kernels"
    assert artifact.target == "sm_90"
    [saxpy] = artifact.kernels
    assert saxpy.name == "saxpy"
    assert saxpy.registers
    assert saxpy.shared == 0
    assert saxpy.spills == 0
    assert saxpy.code_bytes
    occupancy = saxpy.occupancy(threads=1024)
    assert occupancy is not None
    assert (occupancy.blocks, occupancy.warps, occupancy.fraction) == (2, 64, 1.0)
    assert artifact.tool
    assert dict(artifact.parameters) == {"saxpy": "(index, f32, memref<?xf32>, memref<?xf32>) -> ()"}


def test_the_other_forms_come_from_the_same_source() -> None:
    artifact = gpulower.compile(SAXPY, "sm_80")
    assert ".target sm_80" in artifact.ptx
    assert ".entry saxpy" in artifact.ptx
    assert "define" in artifact.llvm
    assert artifact.ptx == gpulower.compile(SAXPY, "sm_80", emit="ptx").bytes.decode()
    amd = gpulower.compile(SAXPY, "gfx942")
    assert "s_endpgm" in amd.assembly
    with pytest.raises(ValueError, match="PTX is NVIDIA's"):
        _ = amd.ptx


def test_amd_as_well() -> None:
    artifact = gpulower.compile(SAXPY, "gfx90a")
    assert artifact.format == "hsaco"
    [saxpy] = artifact.kernels
    assert saxpy.registers == saxpy.details["vgprs"]
    occupancy = saxpy.occupancy()
    assert str(occupancy) == "32/32 waves in 8 blocks, limited by waves"


def test_several_targets_are_one_container() -> None:
    fat = gpulower.compile(SAXPY, ["sm_80", "sm_90"])
    assert fat.format == "fatbin"
    assert gpulower.compile(SAXPY, "sm_80,sm_90") == fat
    assert {kernel.target for kernel in fat.kernels} == {"sm_80", "sm_90"}
    assert gpulower.compile(SAXPY, ["gfx90a", "gfx942"]).format == "bundle"
    assert gpulower.compile(SAXPY, ["sm_80", "gfx942"]).format == "offload"


def test_an_artifact_is_bytes_with_a_hash_of_its_content(tmp_path: Path) -> None:
    one, other = gpulower.compile(SAXPY, "sm_90"), gpulower.compile(SAXPY, "sm_90", cache=False)
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    assert memoryview(one)[:4].tobytes() == b"\x7fELF"
    assert type(one.bytes) is bytes
    assert isinstance(one[0], int)
    again = pickle.loads(pickle.dumps(one))
    assert (again, again.kernels, again.ptx) == (one, one.kernels, one.ptx)
    assert one.write(tmp_path).name == "kernels.sm_90.cubin"
    path = one.write(tmp_path / "k.cubin")
    assert path.read_bytes() == one
    with pytest.raises(KeyError, match="no kernel is called 'axpy': there are saxpy"):
        one["axpy"]
    assert repr(one) == f"<gpulower.Artifact kernels for sm_90: cubin, {len(one)} bytes>"


def test_sources_of_every_kind(tmp_path: Path) -> None:
    class Module:
        def __str__(self) -> str:
            return SAXPY

    text = gpulower.compile(SAXPY, "sm_90", emit="ptx")
    path = tmp_path / "saxpy.mlir"
    path.write_text(SAXPY)
    for source in (SAXPY.encode(), bytearray(SAXPY.encode()), memoryview(SAXPY.encode()), path, Module()):
        assert gpulower.compile(source, "sm_90", emit="ptx") == text
    # PTX is a source, too; so is LLVM IR.
    assert gpulower.compile(text, "sm_90").format == "cubin"
    assert ".entry saxpy" in gpulower.compile(text, "sm_90").ptx
    assert gpulower.compile(gpulower.compile(SAXPY, "sm_90", emit="bitcode"), "sm_90").kernels[0].name == "saxpy"
    with pytest.raises(
        TypeError, match="a source is text, bytes, a path or an object that prints MLIR, and not object"
    ):
        gpulower.compile(object(), "sm_90")
    with pytest.raises(gpulower.InputError, match=r"looks like the name of a file; pass pathlib.Path\('k.mlir'\)"):
        gpulower.compile("k.mlir", "sm_90")
    with pytest.raises(gpulower.InputError, match="No such file"):
        gpulower.compile(tmp_path / "none.mlir", "sm_90")


def test_sources_that_are_no_text(tmp_path: Path) -> None:
    ptx = gpulower.compile(SAXPY, "sm_90", emit="ptx")
    odd = bytearray(b"-".join(bytes([byte]) for byte in SAXPY.encode()))
    path = tmp_path / os.fsdecode("grö\u00dfe-\u4e2d-".encode() + b"\xff.mlir")
    path.write_text(SAXPY)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for source in (memoryview(odd)[::2], array.array("B", SAXPY.encode()), mapped, path, Text(SAXPY)):
            assert gpulower.compile(source, "sm_90", emit="ptx") == ptx
    path.write_text(BROKEN)
    with pytest.raises(gpulower.InputError, match="-\u4e2d-\ufffd\\.mlir:3:5"):
        gpulower.compile(path, "sm_90")
    for nothing in ("", b"", "  \n", "// nothing\n"):
        with pytest.raises(gpulower.InputError):
            gpulower.compile(nothing, "sm_90")
    with pytest.raises(gpulower.InputError, match="half a character at 3"):
        gpulower.compile("// \ud800", "sm_90")
    for wrong in (None, 5, 1.5, [SAXPY], {"a": SAXPY}):
        with pytest.raises(TypeError, match="a source is text, bytes, a path or an object that prints MLIR"):
            gpulower.compile(wrong, "sm_90")


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "nothing of the kind"


def test_targets_of_the_module_itself() -> None:
    source = SAXPY.replace("@kernels {", '@kernels [#nvvm.target<chip = "sm_86">] {')
    assert gpulower.compile(source).target == "sm_86"


def test_modules_beside_each_other() -> None:
    source = kernel(1) + kernel(2)
    with pytest.raises(gpulower.InputError, match=r"2 artifacts come of source \(m1, m2\)"):
        gpulower.compile(source, "sm_90")
    compiler = gpulower.Compiler()
    assert [artifact.module for artifact in compiler.compile_all(source, "sm_90")] == ["m1", "m2"]
    joined = gpulower.compile(source, "sm_90", device_link=True)
    assert {kernel.name for kernel in joined.kernels} == {"k1", "k2"}


def test_options() -> None:
    assert ".maxnreg 32" in gpulower.compile(SAXPY, "sm_90", emit="ptx", max_registers=32).bytes.decode()
    names = [name for option in gpulower.options() for name in option["names"]]
    assert {"O", "max_registers", "fast", "isolation"} <= set(names)
    with pytest.raises(gpulower.OptionError, match="did you mean max-registers") as raised:
        gpulower.compile(SAXPY, "sm_90", max_register=32)
    assert raised.value.code == "E0202"
    with pytest.raises(gpulower.OptionError, match="'O' cannot be '7'"):
        gpulower.Compiler(O=7)
    with pytest.raises(gpulower.TargetError):
        gpulower.compile(SAXPY, "sm_999")


def test_a_compiler_can_be_sent(compiler: gpulower.Compiler) -> None:
    again = pickle.loads(pickle.dumps(compiler))
    assert again == compiler
    assert again.cache_directory == compiler.cache_directory
    assert again.compile(SAXPY, "sm_90") == compiler.compile(SAXPY, "sm_90")
    assert again.with_options(fast=True) != compiler


def test_a_cache_answers_the_second_time(compiler: gpulower.Compiler) -> None:
    compiler.compile(SAXPY, "sm_90")
    before = compiler.cache_statistics()
    assert before is not None
    assert before.stored
    compiler.compile(SAXPY, "sm_90")
    after = compiler.cache_statistics()
    assert after is not None
    assert after.hits > before.hits
    assert after.stored == before.stored
    assert gpulower.Compiler(cache=False).cache_statistics() is None
    assert compiler.cache_directory is not None
    root = Path(compiler.cache_directory).parent
    usage = gpulower.cache_usage(root)
    assert usage.entries
    assert gpulower.cache_clear(root) == usage
    assert gpulower.cache_usage(root).entries == 0


def test_a_worker_out_of_the_box() -> None:
    compiler = gpulower.Compiler(isolation="worker", cache=False, memory_limit=4096)
    assert compiler.compile(SAXPY, "sm_90") == gpulower.compile(SAXPY, "sm_90")
    [process] = compiler._native.worker_ids()
    os.kill(process, signal.SIGKILL)
    assert compiler.compile(SAXPY, "gfx942") == gpulower.compile(SAXPY, "gfx942")
    with pytest.raises(gpulower.InputError):
        compiler.compile(BROKEN, "sm_90")


def test_progress() -> None:
    told: list[tuple[str, str, str, str | None]] = []
    gpulower.compile(SAXPY, "sm_90", cache=False, progress=lambda *step: told.append(step))
    assert told[0] == ("begun", "kernels", "sm_90", None)
    assert ("stage", "kernels", "sm_90", "optimize") in told
    assert told[-1] == ("finished", "kernels", "sm_90", None)


def test_other_threads_run_while_one_compiles() -> None:
    """A thread that counts in Python gets on while LLVM is at work in this one."""
    counted, compiling = 0, threading.Event()
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        compiling.wait()
        while not done.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = 0

    def progress(event: str, *_: object) -> None:
        nonlocal before
        if event == "begun":
            before = counted
            compiling.set()

    gpulower.compile(SAXPY, "sm_90", cache=False, progress=progress)
    during = counted
    done.set()
    thread.join()
    assert during > before


def test_two_compile_at_a_time() -> None:
    """Neither gets further before the other has begun as well."""
    both = threading.Barrier(2)
    met: list[int] = []

    def progress(event: str, *_: object) -> None:
        if event == "begun":
            # What this raises is printed, and ends nothing.
            met.append(both.wait(60))

    def compiled(number: int) -> gpulower.Artifact:
        return gpulower.compile(kernel(number), "sm_90", cache=False, threads=1, progress=progress)

    with ThreadPoolExecutor(2) as threads:
        assert [artifact.module for artifact in threads.map(compiled, (1, 2))] == ["m1", "m2"]
    assert sorted(met) == [0, 1]


def test_options_of_a_call_in_many_threads() -> None:
    """Compilers behind the functions are made when they are first wanted, by whoever comes first."""
    together = threading.Barrier(8)

    def compiled(number: int) -> str:
        together.wait(60)
        return gpulower.compile(SAXPY, "sm_90", emit="ptx", max_registers=number).bytes.decode()

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for number in range(16, 32):
                assert all(f".maxnreg {number}" in ptx for ptx in threads.map(compiled, [number] * 8))
    finally:
        sys.setswitchinterval(switching)


def test_the_compiler_that_was_used_last_is_kept() -> None:
    first = usual({"max_registers": 32})
    for number in range(33, 33 + 40):
        usual({"max_registers": number})
        assert usual({"max_registers": 32}) is first


def test_a_relative_cache_is_that_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        gpulower.compile(SAXPY, "gfx942", cache="cache")
        assert gpulower.cache_usage(tmp_path / name / "cache").entries


def test_asyncio() -> None:
    async def several() -> list[gpulower.Artifact]:
        return await asyncio.gather(*(gpulower.compile_async(kernel(number), "sm_90") for number in range(4)))

    assert [artifact.module for artifact in asyncio.run(several())] == ["m0", "m1", "m2", "m3"]

    async def cancelled() -> None:
        task = asyncio.create_task(gpulower.compile_async(SAXPY, "sm_90", cache=False))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())


CTRL_C = """
import signal, sys, threading, os
import gpulower
sys.path.insert(0, sys.argv[1])
from conftest import kernel
# Whoever runs the tests in the background ignores it, and programs started there inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        for artifact in gpulower.compile_many(map(kernel, range(1000)), "sm_90", cache=False):
            pass
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_it() -> None:
    done = run(sys.executable, "-c", CTRL_C, Path(__file__).parent)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


FORKED = """
import multiprocessing, sys
import gpulower
sys.path.insert(0, sys.argv[1])
from conftest import SAXPY
def child():
    for target in ("sm_90", "gfx942"):
        assert gpulower.compile(SAXPY, target, cache=False).kernels
for target in ("sm_90", "gfx942"):
    gpulower.compile(SAXPY, target, cache=False)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(60)
print(process.exitcode)
process.kill()
"""


def test_a_forked_process_compiles() -> None:
    done = run(sys.executable, "-W", "ignore", "-c", FORKED, Path(__file__).parent)
    assert (done.stdout, done.stderr) == ("0\n", "")


FORKED_DURING = """
import os, signal, sys, threading, time
import gpulower
sys.path.insert(0, sys.argv[1])
from conftest import SAXPY
from gpulower._compiler import Compiler
making = Compiler._made_native
inside, forked = threading.Event(), threading.Event()
def made(self, threads):
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        forked.wait(60)
    return making(self, threads)
compilers = [gpulower.Compiler(cache=False) for _ in range(2)]
Compiler._made_native = made
USE = {
    "construct": lambda: gpulower.Compiler(cache=False),
    "first use": lambda: compilers[0]._single_threaded,
    "again": lambda: (compilers[0]._forget(), compilers[0]._native),
}
thread = threading.Thread(target=USE[sys.argv[2]])
thread.start()
inside.wait(60)
Compiler._made_native = making
child = os.fork()
signal.alarm(60)
if child:
    print(os.waitpid(child, 0)[1])
    forked.set()
    thread.join()
for compiler in (*compilers, gpulower.Compiler(cache=False)):
    assert compiler.compile(SAXPY, "gfx942").kernels
    assert compiler._single_threaded
if not child:
    os._exit(0)
"""


@pytest.mark.parametrize("what", ["construct", "first use", "again"])
def test_a_fork_while_another_thread_makes_a_compiler(what: str) -> None:
    done = run(sys.executable, "-W", "ignore", "-c", FORKED_DURING, Path(__file__).parent, what)
    assert (done.stdout, done.stderr) == ("0\n", "")


FORKED_WITH_A_COMPILER = """
import asyncio, os, signal, sys
import gpulower
sys.path.insert(0, sys.argv[1])
from conftest import SAXPY, kernel
compilers = gpulower.Compiler(cache=False), gpulower.Compiler(cache=False, isolation="worker")
def use(number):
    for compiler in compilers:
        assert compiler.compile(SAXPY, "gfx942").kernels
        assert asyncio.run(compiler.compile_async(SAXPY, "gfx942")).kernels
        sources = [kernel(number + each) for each in range(8)]
        modules = [artifact.module for artifact in compiler.compile_many(sources, "gfx942")]
        assert modules == [f"m{number + each}" for each in range(8)], modules
use(0)
child = os.fork()
signal.alarm(120)
use(100 if child else 200)
if child:
    print(os.waitpid(child, 0)[1])
    use(300)
"""


def test_a_compiler_is_used_on_both_sides_of_a_fork() -> None:
    done = run(sys.executable, "-W", "ignore", "-c", FORKED_WITH_A_COMPILER, Path(__file__).parent)
    assert (done.stdout, done.stderr) == ("0\n", "")


ENDING = """
import sys, threading, time
import gpulower
sys.path.insert(0, sys.argv[1])
from conftest import kernel
begun = threading.Event()
def work():
    try:
        for number in range(10**9):
            gpulower.compile(kernel(number), "sm_90", cache=False, progress=lambda *_: begun.set())
    except gpulower.CancelledError:
        pass
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
results = gpulower.compile_many(map(kernel, range(1000)), "sm_90", cache=False)
next(results)
begun.wait()
print("the end")
"""


def test_a_process_ends_in_the_middle_of_work() -> None:
    for _ in range(5):
        done = run(sys.executable, "-c", ENDING, Path(__file__).parent)
        assert (done.stdout, done.stderr) == ("the end\n", "")


INTERRUPTED = """
import os, signal, sys, threading, time
import gpulower
sys.path.insert(0, sys.argv[1])
from conftest import SAXPY
signal.signal(signal.SIGINT, signal.default_int_handler)
begun = threading.Event()
def progress(event, *_):
    if event == "begun":
        begun.set()
        # As a stage of LLVM's that takes long.
        time.sleep(4)
        print("the stage ended", flush=True)
def interrupt():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    gpulower.compile(SAXPY, "sm_90", cache=False, progress=progress)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_a_process_ends_after_what_was_interrupted() -> None:
    """The call gives up waiting after two seconds; the end of the interpreter does not."""
    done = run(sys.executable, "-c", INTERRUPTED, Path(__file__).parent)
    assert (done.stdout, done.stderr) == ("interrupted\nthe stage ended\n", "")


def test_the_end_of_the_interpreter_knows_of_all_work() -> None:
    done, until = threading.Event(), time.monotonic() + 60

    def work() -> None:
        while not done.is_set():
            gpulower.doctor()

    thread = threading.Thread(target=work)
    thread.start()
    while not _native.working() and time.monotonic() < until:
        time.sleep(0)
    seen = _native.working()
    done.set()
    thread.join()
    while _native.working() and time.monotonic() < until:
        time.sleep(0)
    assert (seen > 0, _native.working()) == (True, 0)


def test_a_signal_with_a_handler_of_its_own() -> None:
    """The handler runs while a compilation is under way, and what it raises comes out."""

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(Stop):
            gpulower.compile(
                SAXPY,
                "sm_90",
                cache=False,
                progress=lambda event, *_: os.kill(os.getpid(), signal.SIGUSR1) if event == "begun" else None,
            )
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_linking() -> None:
    user = """
    module {
      gpu.module @user {
        func.func private @helper(f32) -> f32
        gpu.func @k(%x: memref<?xf32>) kernel {
          %i = gpu.thread_id x
          %v = memref.load %x[%i] : memref<?xf32>
          %w = func.call @helper(%v) : (f32) -> f32
          memref.store %w, %x[%i] : memref<?xf32>
          gpu.return
        }
      }
    }"""
    helper = """
    define float @helper(float %x) {
      %y = fadd float %x, 1.0
      ret float %y
    }"""
    with pytest.raises(gpulower.SymbolError) as raised:
        gpulower.compile(user, "sm_90")
    assert raised.value.symbols == ("helper",)
    assert raised.value.kernels == ("k",)
    assert gpulower.compile(user, "gfx942", libraries=[helper.encode()]).kernels[0].name == "k"
    objects = [gpulower.compile(kernel(number), "sm_90", emit="object") for number in range(2)]
    linked = gpulower.link(objects, "sm_90")
    assert {kernel.name for kernel in linked.kernels} == {"k0", "k1"}
