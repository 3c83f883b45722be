"""Compiling: one source, several, many."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import dataclasses
import functools
import json
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, Union

from . import _host, _native
from ._artifact import Artifact, Origin, single
from ._errors import CancelledError, raised_here
from ._once import once
from ._sources import Source, read

if TYPE_CHECKING:
    from ._files import Doctor, Exported, Target
    from ._many import Results
    from ._native import Compiler as Native
    from ._native import Token

#: One target, or several.
Targets = Union[str, Sequence[str]]

#: Told of each step: `begun`, `stage`, `finished`, `cached` or `failed`; the module; the target; the stage.
Progress = Callable[[str, str, str, Union[str, None]], object]

Library = Union[bytes, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Cache:
    """Where results are kept."""

    #: The directory; None for that of the command line, `gpulower` below `XDG_CACHE_HOME` or `~/.cache`.
    directory: str | os.PathLike[str] | None = None
    #: Most bytes on disk and in memory.
    size: int | None = None
    memory: int | None = None
    #: Compile in spite of a hit, and fail if the results differ.
    verify: bool = False
    #: Where machines share results: `redis://HOST/DB/PREFIX`, `s3://BUCKET/PREFIX`, `webdavs://HOST/FOLDER`; otherwise what
    #: `GPULOWER_CACHE_REMOTE` says. It may have a password in it, and is not shown.
    remote: str | None = dataclasses.field(default=None, repr=False)
    #: The file of a key to sign them with, and keys that have to have signed them: `gpulower cache keygen`.
    #: With the latter alone, nothing is uploaded: it would take the place of what is signed.
    sign_key: str | os.PathLike[str] | None = None
    accept_keys: tuple[str, ...] = ()
    #: Whose entries the directory may have: `group:NAME` or `user:NAME`.
    shared_with: str | None = None


@dataclasses.dataclass(frozen=True)
class CacheStatistics:
    """How often a cache was asked, and what it had."""

    memory_hits: int
    disk_hits: int
    misses: int
    stored: int
    #: What went wrong with it since this was last asked.
    problems: tuple[str, ...] = ()
    #: What other machines had, and had not; what was asked during an outage, which is no miss; entries that were damaged, or
    #: not signed by an accepted key; uploads that arrived, and that did not.
    remote_hits: int = 0
    remote_misses: int = 0
    remote_failures: int = 0
    remote_refused: int = 0
    remote_uploads: int = 0
    remote_lost_uploads: int = 0

    @property
    def hits(self) -> int:
        """Answers, from wherever."""
        return self.memory_hits + self.disk_hits + self.remote_hits


def text_of(value: object) -> str:
    """An option's value as the options' table reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={entry}" for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return str(value)


def listed(targets: Targets | None) -> list[str]:
    """Targets one by one."""
    if targets is None:
        return []
    if isinstance(targets, str):
        targets = targets.split(",")
    names = [target.strip() for target in targets]
    if "native" in names:
        from ._launch import native_target

        names = [native_target() if name == "native" else name for name in names]
    return names


def emitted(emit: str | None, targets: list[str]) -> str:
    """What is made when nothing is said: machine code for one target, a container for several."""
    if emit is not None:
        return emit
    if len(targets) < 2:
        return "binary"
    amd = [target.startswith("gfx") for target in targets]
    return "bundle" if all(amd) else "offload" if any(amd) else "fatbin"


def _library(library: Library | str) -> tuple[str, bytes | None]:
    if isinstance(library, (str, os.PathLike)):
        return os.fspath(library), None
    return "library", bytes(library)


#: What is uploaded has to be done before the process ends. By number: compilers with the same settings are equal.
_compilers: weakref.WeakValueDictionary[int, Compiler] = weakref.WeakValueDictionary()


#: What is under way, by call. No thread may come back from it into an interpreter that is gone.
_under_way: dict[object, Token] = {}
_ending = threading.Event()

#: How long the end of the process waits for what was cancelled, in seconds: LLVM ends with the stage that it is in.
_PATIENCE = 10.0


@contextlib.contextmanager
def _working(token: Token | None = None) -> Iterator[Token]:
    call, token = object(), token or _native.Token()
    _under_way[call] = token
    try:
        if _ending.is_set():
            raise CancelledError({"message": "the process is ending", "stage": "plan"})
        yield token
    finally:
        _under_way.pop(call, None)


@atexit.register
def _end() -> None:
    _ending.set()
    until = time.monotonic() + _PATIENCE
    # What Ctrl-C interrupted nobody waits for any more, and it may still be at work.
    while (_under_way or _native.working()) and time.monotonic() < until:
        for token in list(_under_way.values()):
            token.cancel()
        time.sleep(0.005)
    for compiler in list(_compilers.values()):
        compiler.finish_cache()


def _forget_all() -> None:
    _under_way.clear()
    _native.forget_work()
    for compiler in list(_compilers.values()):
        compiler._forget()


os.register_at_fork(after_in_child=_forget_all)


class Compiler:
    """Compiles with the same options again and again, from any thread. It can be pickled; a copy is made anew where it
    arrives, from the same settings.

    Options are those of the command line, with underscores: `O=2`, `fast=True`, `max_registers=64`, `debug="line-tables"`,
    `isolation="worker"`, `time_limit=30`; `gpulower.options()` lists them.
    """

    def __init__(
        self,
        *,
        cache: bool | str | os.PathLike[str] | Cache = True,
        cuda: str | os.PathLike[str] | None = None,
        rocm: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        libraries: Iterable[Library | str] = (),
        device_link: bool = False,
        objects: Iterable[Library | str] = (),
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self._settings: dict[str, Any] = {
            "cache": cache,
            "cuda": cuda,
            "rocm": rocm,
            "threads": threads,
            "libraries": tuple(libraries),
            "device_link": device_link,
            "objects": tuple(objects),
            "environment": None if environment is None else dict(environment),
            **options,
        }
        self._options = [
            (name.replace("_", "-"), text_of(value)) for name, value in options.items() if value is not None
        ]
        self._lock = threading.Lock()
        # A wrong option is refused here, and not with the first compilation.
        _ = self._native
        _compilers[id(self)] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_again, (self._settings,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compiler) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(json.dumps(self._settings, sort_keys=True, default=repr))

    def __repr__(self) -> str:
        given = ", ".join(f"{name.replace('-', '_')}={value!r}" for name, value in self._options)
        return f"gpulower.Compiler({given})"

    def with_options(self, **changes: Any) -> Compiler:
        """A compiler with other settings."""
        return Compiler(**{**self._settings, **changes}) if changes else self

    def _made_native(self, threads: int | None) -> Native:
        settings = self._settings
        variables = dict(os.environ) if settings["environment"] is None else settings["environment"]
        cache = settings["cache"]
        if not isinstance(cache, (bool, Cache)):
            cache = Cache(directory=cache)
        kept = cache if isinstance(cache, Cache) else Cache()
        cached = cache is not False and variables.get("GPULOWER_CACHE") != "off"
        worker = _host.worker()
        passed = {name: variables[name] for name in _host.FOR_WORKERS if variables.get(name)}
        configuration = {
            "options": self._options,
            "variables": variables,
            "site_packages": _host.site_packages(),
            "cuda": None if settings["cuda"] is None else os.path.abspath(settings["cuda"]),
            "rocm": None if settings["rocm"] is None else os.path.abspath(settings["rocm"]),
            "threads": threads,
            "cached": cached,
            "cache_directory": None if kept.directory is None else os.path.abspath(kept.directory),
            "cache_bytes": kept.size,
            "cache_memory_bytes": kept.memory,
            "cache_verify": kept.verify,
            "cache_remote": kept.remote or variables.get("GPULOWER_CACHE_REMOTE") or None,
            "cache_sign_key": os.fspath(kept.sign_key or variables.get("GPULOWER_CACHE_SIGN_KEY") or "") or None,
            "cache_accept_keys": [
                *(kept.accept_keys or filter(None, variables.get("GPULOWER_CACHE_ACCEPT_KEYS", "").split(",")))
            ],
            "cache_shared_with": kept.shared_with or variables.get("GPULOWER_CACHE_SHARED_WITH") or None,
            "of_environment": settings["environment"] is None,
            "worker": None if worker is None else (*worker, passed),
            "device_link": settings["device_link"],
        }
        with raised_here():
            return _native.Compiler(
                json.dumps(configuration),
                [_library(library) for library in settings["libraries"]],
                [_library(library) for library in settings["objects"]],
            )

    def _forget(self) -> None:
        """In a process that was forked: threads and workers are the other process's, and so are never ended here."""
        for name in ("_native", "_single_threaded", "_threads"):
            left = self.__dict__.pop(name, None)
            if left is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(left))
        self._lock = threading.Lock()

    @once
    def _native(self) -> Native:
        with self._lock:
            return self.__dict__.get("_native") or self._made_native(self._settings["threads"])

    @once
    def _single_threaded(self) -> Native:
        """For callers who have threads of their own."""
        with self._lock:
            return self.__dict__.get("_single_threaded") or self._made_native(1)

    def _made(
        self,
        inputs: list[tuple[str, bytes]],
        targets: list[str],
        emit: str,
        *,
        token: Token | None = None,
        progress: Progress | None = None,
        native: Native | None = None,
    ) -> list[Artifact]:
        with raised_here(dict(inputs)), _working(token) as token:
            made, said = (native or self._native).compile(inputs, targets, emit, token, progress)
        artifacts = []
        for content, report in made:
            details = json.loads(report)
            index = details.get("input")
            its = inputs if index is None else [inputs[index]]
            artifacts.append(Artifact(content, details, Origin(self, tuple(its), tuple(targets))))
        general = json.loads(said)
        if artifacts and general:
            artifacts[0]._report["warnings"].extend(general)
        return artifacts

    def compile(
        self,
        source: Source,
        target: Targets | None = None,
        *,
        emit: str | None = None,
        name: str | None = None,
        progress: Progress | None = None,
    ) -> Artifact:
        """Compiles a source that holds one module, or modules that `device_link` joins, into one artifact.

        Without a target, MLIR is compiled for the targets that its modules name; `native` is the GPU of this machine. `emit`
        is what is made: `binary` (a cubin or an hsaco), `ptx`, `asm`, `object`, `llvm`, `bitcode`, `mlir`, or for several
        targets the containers `fatbin`, `bundle` or `offload`. `name` is what messages call the source.
        """
        title, content = read(source, name)
        targets = listed(target)
        made = self._made([(title, content)], targets, emitted(emit, targets), progress=progress)
        return single(made, title)

    def compile_all(
        self,
        sources: Source | Sequence[Source],
        targets: Targets | None = None,
        *,
        emit: str | None = None,
        progress: Progress | None = None,
    ) -> list[Artifact]:
        """Compiles every module of one source or several for every target, all or nothing."""
        several = sources if isinstance(sources, (list, tuple)) else [sources]
        names = listed(targets)
        return self._made([read(source) for source in several], names, emit or "binary", progress=progress)

    async def compile_async(
        self,
        source: Source,
        target: Targets | None = None,
        *,
        emit: str | None = None,
        name: str | None = None,
    ) -> Artifact:
        """As `compile`, on a thread; cancelling the task ends it."""
        title, content = read(source, name)
        targets = listed(target)
        token = _native.Token()
        work = functools.partial(
            self._made,
            [(title, content)],
            targets,
            emitted(emit, targets),
            token=token,
            native=self._single_threaded,
        )
        try:
            made = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            token.cancel()
            raise
        return single(made, title)

    @once
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix="gpulower")

    @property
    def threads(self) -> int:
        """How many threads it uses."""
        return self._settings["threads"] or len(os.sched_getaffinity(0))

    def compile_many(
        self,
        sources: Iterable[Source] | Mapping[str, Source],
        targets: Targets | Sequence[Targets] | None = None,
        *,
        emit: str | None = None,
        on_error: Literal["raise", "return"] = "raise",
        progress: Callable[[int, int], object] | bool | None = None,
        executor: Executor | Callable[[], Executor] | None = None,
    ) -> Results:
        """Compiles many sources, each for itself, for each of the targets: an iterator over artifacts, in the order of the
        sources, and of the targets for each of them. It knows its length.

        A mapping gives names to sources. A tuple among the targets is one artifact for all of it. With
        `on_error="return"`, an `Error` takes the place of the artifact; otherwise it is raised when its turn comes, and
        what was not begun is not. `progress` is called with how many are done, and how many there are, from any
        thread; `True` shows tqdm's bar. `executor` does the work elsewhere: any of `concurrent.futures`, Dask's
        `client.get_executor()`, `gpulower.RayExecutor()`, or a function that makes one, with which a pool is replaced
        that a crash has broken.
        """
        from ._many import Results, jobs

        if on_error not in ("raise", "return"):
            raise ValueError(f"on_error is 'raise' or 'return', and not {on_error!r}")
        return Results(self, jobs(sources, targets, emit), on_error, progress, executor)

    def link(self, sources: Sequence[Source], target: str) -> Artifact:
        """Links relocatable code into one cubin or hsaco: PTX, relocatable cubins, LTO-IR, fat binaries, AMDGPU objects,
        archives; MLIR and LLVM IR are compiled, joined before they are optimised."""
        inputs = [read(source) for source in sources]
        ir = [entry for entry in inputs if is_ir(*entry)]
        objects = [entry for entry in inputs if not is_ir(*entry)]
        with raised_here(dict(inputs)), _working() as token:
            content, report = self._native.link(objects, ir, target, token)
        return Artifact(content, json.loads(report))

    def export(
        self,
        source: Source,
        targets: Targets | None = None,
        *,
        form: str = "obj",
        finish_with: str | None = None,
        triple: str = "x86_64-unknown-linux-gnu",
        keep_names: bool = False,
        file: str = "app.o",
        name: str | None = None,
    ) -> Exported:
        """A whole program, host code and kernels, as one file that somebody's clang finishes: docs/export.md."""
        from ._files import Exported

        title, content = read(source, name)
        with raised_here({title: content}), _working() as token:
            made, report = self._native.export(
                title, content, listed(targets), form, finish_with, triple, keep_names, file, token
            )
        return Exported(made, json.loads(report))

    def targets(self) -> list[Target]:
        """Every chip that can be compiled for, and what finishes it here."""
        from ._files import Target

        with raised_here():
            return [Target.of(row) for row in json.loads(self._native.targets())]

    def doctor(self) -> Doctor:
        """Which parts of CUDA and ROCm are here, where they were looked for, and how to get what is missing."""
        from ._files import Doctor

        with raised_here():
            return Doctor(json.loads(self._native.doctor()))

    def cache_statistics(self) -> CacheStatistics | None:
        """How often its cache was asked, by all of its threads; None where there is none."""
        counts = self._native.cache_statistics()
        if counts is None:
            return None
        total, problems = counts
        further = self.__dict__.get("_single_threaded")
        if further is not None and (more := further.cache_statistics()) is not None:
            total = [one + other for one, other in zip(total, more[0])]
            problems = problems + more[1]
        memory_hits, disk_hits, misses, stored, *remote = total
        return CacheStatistics(memory_hits, disk_hits, misses, stored, tuple(problems), *remote)

    def finish_cache(self) -> None:
        """Waits until what was compiled is where other machines find it. The end of the process does so too."""
        for name in ("_native", "_single_threaded"):
            if name in self.__dict__:
                self.__dict__[name].finish_cache()

    @property
    def cache_directory(self) -> str | None:
        """Where results are kept."""
        directory = self._native.cache_directory()
        return None if directory is None else os.fspath(directory)


def _again(settings: dict[str, Any]) -> Compiler:
    return Compiler(**settings)


def is_ir(name: str, content: bytes) -> bool:
    """Whether a source is to be compiled before it is linked. Any text might be MLIR: it has to be called so."""
    if content[:4] in (b"ML\xefR", b"BC\xc0\xde"):
        return True
    head = content[:4096].lstrip()
    named = name.endswith((".mlir", ".ll"))
    return named or head.startswith((b"module", b"gpu.module", b"builtin.module", b"#", b"; ModuleID"))


#: The compilers behind the functions of the package, the one that was used last at the end. No lock: a process may be forked
#: while another thread has it.
_USUAL: OrderedDict[tuple[object, ...], Compiler] = OrderedDict()


def usual(options: Mapping[str, Any]) -> Compiler:
    """The compiler behind the functions of the package, with options of a call: one for each choice of options, made anew
    when the environment says something else, and in another folder."""
    if "libraries" in options or "objects" in options:
        # Their contents are no part of how they are printed.
        return Compiler(**options)
    folder = os.getcwd() if options.keys() & {"cache", "cuda", "rocm"} else None
    key = (folder, repr(sorted(options.items())), *os.environ.items())
    compiler = _USUAL.get(key) or Compiler(**options)
    _USUAL[key] = compiler
    with contextlib.suppress(KeyError):  # Another thread may have put it away.
        _USUAL.move_to_end(key)
    for oldest in list(_USUAL)[:-32]:
        _USUAL.pop(oldest, None)
    return compiler
