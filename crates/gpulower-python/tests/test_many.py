"""Many sources, here and on farms."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tqdm

import gpulower
from conftest import BROKEN, kernel
from gpulower import _many

SPAWN = multiprocessing.get_context("spawn")


def test_results_come_in_the_order_of_the_input(compiler: gpulower.Compiler) -> None:
    results = compiler.compile_many([kernel(number) for number in range(20)], ["sm_80", "gfx942"])
    assert len(results) == 40
    got = [(artifact.module, artifact.target) for artifact in results]
    assert got == [(f"m{number}", target) for number in range(20) for target in ("sm_80", "gfx942")]


def test_names_and_containers(compiler: gpulower.Compiler) -> None:
    sources = {"first": kernel(1), "second": BROKEN}
    results = compiler.compile_many(sources, [("sm_80", "sm_90"), "gfx90a"], on_error="return")
    fat, hsaco, wrong, also_wrong = results
    assert (fat.format, hsaco.format) == ("fatbin", "hsaco")
    for error in (wrong, also_wrong):
        assert isinstance(error, gpulower.InputError)
        assert error.file == "second"


def test_an_error_is_raised_when_its_turn_comes(compiler: gpulower.Compiler) -> None:
    results = compiler.compile_many([kernel(1), BROKEN, kernel(2)], "sm_90")
    assert next(results).module == "m1"
    with pytest.raises(gpulower.InputError, match="source 1:3:5"):
        next(results)
    with pytest.raises(StopIteration):
        next(results)


def test_progress_and_tqdm(compiler: gpulower.Compiler, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    lock = threading.Lock()

    def progress(done: int, total: int) -> None:
        with lock:
            told.append((done, total))

    sources = [kernel(number) for number in range(5)]
    assert len(list(compiler.compile_many(sources, "sm_90", emit="ptx", progress=progress))) == 5
    assert sorted(told) == [(done, 5) for done in range(1, 6)]
    list(tqdm.tqdm(compiler.compile_many(sources, "sm_90", emit="ptx")))
    list(compiler.compile_many(sources, "sm_90", emit="ptx", progress=True))
    assert capsys.readouterr().err.count("5/5") >= 2


def test_leaving_early_ends_the_rest(compiler: gpulower.Compiler) -> None:
    with compiler.compile_many((kernel(number) for number in range(500)), "sm_90") as results:
        assert next(results).module == "m0"
    with pytest.raises(StopIteration):
        next(results)
    statistics = compiler.cache_statistics()
    assert statistics is not None
    assert statistics.stored < 500


def test_processes(compiler: gpulower.Compiler) -> None:
    sources = [kernel(number) for number in range(6)] + [BROKEN]
    here = list(compiler.compile_many(sources, "sm_90", on_error="return"))
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        there = list(compiler.compile_many(sources, "sm_90", on_error="return", executor=executor))
    assert there[:-1] == here[:-1]
    assert [artifact.kernels for artifact in there[:-1]] == [artifact.kernels for artifact in here[:-1]]
    assert isinstance(there[-1], gpulower.InputError)
    # A shared cache: what was compiled here is not compiled there.
    assert compiler.cache_directory is not None
    entries = gpulower.cache_usage(Path(compiler.cache_directory).parent).entries
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        list(compiler.compile_many(sources, "sm_90", on_error="return", executor=executor))
    assert gpulower.cache_usage(Path(compiler.cache_directory).parent).entries == entries


def deadly(compiler: gpulower.Compiler, job: _many.Job) -> Any:
    """Does a job, unless its source says what the process is to die of."""
    text = job.source.decode()
    if "die always" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    for line in text.splitlines():
        _, _, flag = line.partition("die once ")
        if flag and not Path(flag).exists():
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return _many.compile_job(compiler, job)


def test_a_worker_that_is_killed(compiler: gpulower.Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [kernel(number) for number in range(10)]
    sources[3] += f"// die once {tmp_path / 'flag'}\n"
    sources[7] += "// die always\n"
    original = ProcessPoolExecutor.submit

    def submit(self: Any, function: Any, /, *arguments: Any) -> Any:
        return original(self, deadly if function is _many.compile_job else function, *arguments)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        results = list(compiler.compile_many(sources, "sm_90", on_error="return", executor=executor))
    assert (tmp_path / "flag").exists()
    assert isinstance(results[7], gpulower.CrashError)
    assert results[7].code == "E1201"
    good = [artifact for artifact in results if isinstance(artifact, gpulower.Artifact)]
    assert [artifact.module for artifact in good] == [f"m{number}" for number in range(10) if number != 7]


def test_any_executor(compiler: gpulower.Compiler) -> None:
    with ThreadPoolExecutor(2) as executor:
        results = list(compiler.compile_many(map(kernel, range(100)), "sm_90", emit="ptx", executor=executor))
    assert [artifact.module for artifact in results] == [f"m{number}" for number in range(100)]
    made = list(compiler.compile_many([kernel(1)], "sm_90", executor=lambda: ThreadPoolExecutor(1)))
    assert made[0].module == "m1"


@pytest.mark.large
def test_dask(compiler: gpulower.Compiler) -> None:
    from dask.distributed import Client, LocalCluster

    sources = [kernel(number) for number in range(20)] + [BROKEN]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        results = list(compiler.compile_many(sources, "sm_90", on_error="return", executor=client.get_executor()))
        assert [artifact.module for artifact in results[:-1]] == [f"m{number}" for number in range(20)]
        assert isinstance(results[-1], gpulower.InputError)
        # A worker that is killed in the middle.
        processes = [int(info["id"]) for info in client.run(lambda: {"id": os.getpid()}).values()]
        further = compiler.compile_many(map(kernel, range(100, 150)), "sm_90", executor=client.get_executor())
        assert next(further).module == "m100"
        os.kill(processes[0], signal.SIGKILL)
        assert [artifact.module for artifact in further] == [f"m{number}" for number in range(101, 150)]


@pytest.mark.large
def test_ray(compiler: gpulower.Compiler) -> None:
    import ray

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        sources = [kernel(number) for number in range(20)] + [BROKEN]
        executor = gpulower.RayExecutor()
        results = list(compiler.compile_many(sources, "sm_90", on_error="return", executor=executor))
        assert [artifact.module for artifact in results[:-1]] == [f"m{number}" for number in range(20)]
        assert isinstance(results[-1], gpulower.InputError)
        # Sent as it is: workers do not find this file.
        process = ray.remote(lambda: os.getpid())
        processes = ray.get([process.remote() for _ in range(4)])
        further = compiler.compile_many(map(kernel, range(100, 150)), "sm_90", executor=executor)
        assert next(further).module == "m100"
        os.kill(processes[0], signal.SIGKILL)
        assert [artifact.module for artifact in further] == [f"m{number}" for number in range(101, 150)]
    finally:
        ray.shutdown()


FAULTS = """
import resource, sys
import gpulower
from conftest import kernel
compiler = gpulower.Compiler(cache=False)
if sys.argv[1] == "keep":
    assert gpulower.keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for number in range(20):
    if number == 10:
        before = faults()
    compiler.compile(kernel(number), "sm_90")
print(faults() - before)
"""


def test_freed_memory_is_kept_for_the_next_kernel() -> None:
    def faults(word: str) -> int:
        command = [sys.executable, "-c", FAULTS, word]
        ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent)
        return int(ran.stdout)

    assert faults("keep") < faults("give back") / 4
