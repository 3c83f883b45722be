"""Many sources: here on threads, or on a farm of somebody else's workers."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Union

from . import _native
from ._artifact import Artifact, single
from ._errors import CrashError, Error
from ._sources import Source, read

if TYPE_CHECKING:
    from ._compiler import Compiler, Targets

#: What comes of a job. Errors are values until their turn comes.
Outcome = Union[Artifact, Error]


@dataclass(frozen=True)
class Job:
    """One source for one target, or for the targets of one container. It can be pickled."""

    name: str
    source: bytes
    targets: tuple[str, ...]
    emit: str


def jobs(
    sources: Iterable[Source] | Mapping[str, Source],
    targets: Targets | Sequence[Targets] | None,
    emit: str | None,
) -> list[Job]:
    """The work in the order of the results."""
    from ._compiler import emitted, listed

    if targets is None:
        each: list[list[str]] = [[]]
    elif isinstance(targets, str):
        each = [[target] for target in listed(targets)]
    else:
        each = [listed(target) for target in targets]
    named: list[tuple[str | None, Source]]
    if isinstance(sources, Mapping):
        named = [(str(name), source) for name, source in sources.items()]
    else:
        named = [(None, source) for source in sources]
    made = []
    for index, (name, source) in enumerate(named):
        title, content = read(source, name)
        title = f"source {index}" if name is None and title == "source" else title
        made += [Job(title, content, tuple(names), emitted(emit, names)) for names in each]
    return made


@dataclass(frozen=True)
class Answer:
    """What comes back of a job. There are farms that send whatever is a `bytes` as nothing more than that."""

    outcome: Outcome


def compile_job(compiler: Compiler, job: Job) -> Answer:
    """Does a job with a compiler that came with it. A process keeps the compilers that it was sent."""
    ours = _COMPILERS.setdefault(compiler, compiler)
    return Answer(_compiled(ours, job, None))


_COMPILERS: dict[Compiler, Compiler] = {}


def _compiled(compiler: Compiler, job: Job, token: _native.Token | None) -> Outcome:
    try:
        inputs = [(job.name, job.source)]
        # Whoever sends jobs decides how many are done at a time.
        native = compiler._single_threaded
        return single(compiler._made(inputs, list(job.targets), job.emit, token=token, native=native), job.name)
    except Error as error:
        return error


class Results(Iterator[Artifact]):
    """Artifacts in the order of the jobs. The work begins with the first that is asked for; `close()` ends it, and so does the
    end of a `with` block, an exception, or Ctrl-C."""

    def __init__(
        self,
        compiler: Compiler,
        work: list[Job],
        on_error: Literal["raise", "return"],
        progress: Callable[[int, int], object] | bool | None,
        executor: Executor | Callable[[], Executor] | None,
    ) -> None:
        self._length = len(work)
        self._returns = on_error == "return"
        done = _progress(progress, len(work))
        outcomes = _here(compiler, work, done) if executor is None else _elsewhere(compiler, work, done, executor)
        self._outcomes: Generator[Outcome, None, None] = outcomes

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Results:
        return self

    def __next__(self) -> Artifact:
        outcome = next(self._outcomes)
        if isinstance(outcome, Error):
            if self._returns:
                # Whoever asks for errors in the place of artifacts looks at what it is.
                return outcome  # type: ignore[return-value]
            self.close()
            raise outcome
        return outcome

    def close(self) -> None:
        """Ends what is under way, and does not begin the rest."""
        self._outcomes.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _progress(progress: Callable[[int, int], object] | bool | None, total: int) -> Callable[[], None]:
    """What is called whenever a job is done."""
    if not progress:
        return lambda: None
    if progress is True:
        # Typed in some versions and not in others.
        import tqdm  # type: ignore[import-untyped, unused-ignore]

        bar = tqdm.tqdm(total=total, unit="kernel")

        def step() -> None:
            bar.update()
            if bar.n == total:
                bar.close()

        return step
    told, count = progress, iter(range(1, total + 1))

    def tell() -> None:
        told(next(count), total)

    return tell


def _here(compiler: Compiler, work: list[Job], done: Callable[[], None]) -> Generator[Outcome, None, None]:
    """On threads of this process, which the interpreter leaves alone while they compile."""
    token = _native.Token()
    threads = ThreadPoolExecutor(compiler.threads, thread_name_prefix="gpulower")
    waiting: collections.deque[Future[Outcome]] = collections.deque()
    rest = iter(work)

    def submit() -> None:
        job = next(rest, None)
        if job is not None:
            future = threads.submit(_compiled, compiler, job, token)
            future.add_done_callback(lambda future: None if future.cancelled() else done())
            waiting.append(future)

    try:
        # Enough that no thread waits for the one whose turn it is.
        for _ in range(4 * compiler.threads):
            submit()
        while waiting:
            outcome = waiting[0].result()
            waiting.popleft()
            submit()
            yield outcome
    finally:
        token.cancel()
        threads.shutdown(wait=False, cancel_futures=True)


#: Jobs that are sent before the first result is back.
IN_FLIGHT = 64


class _Pool:
    """An executor, and how to have another when it is broken."""

    def __init__(self, executor: Executor | Callable[[], Executor]) -> None:
        self._make: Callable[[], Executor] | None = None
        self._own = not isinstance(executor, Executor)
        if isinstance(executor, Executor):
            self.executor = executor
            if isinstance(executor, ProcessPoolExecutor):
                self._make = functools.partial(_like, executor)
        else:
            self._make = executor
            self.executor = executor()

    def renew(self) -> bool:
        """Another executor in the place of a broken one; False where nobody said how to make one."""
        if self._make is None:
            return False
        self.end()
        self.executor, self._own = self._make(), True
        return True

    def end(self) -> None:
        """Ends an executor that nobody else has."""
        if self._own:
            self.executor.shutdown(wait=False, cancel_futures=True)


def _like(executor: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """A pool of processes like one that is broken."""
    settings = vars(executor)
    return ProcessPoolExecutor(
        max_workers=settings.get("_max_workers"),
        mp_context=settings.get("_mp_context"),
        initializer=settings.get("_initializer"),
        initargs=settings.get("_initargs", ()),
    )


def _elsewhere(
    compiler: Compiler,
    work: list[Job],
    done: Callable[[], None],
    executor: Executor | Callable[[], Executor],
) -> Generator[Outcome, None, None]:
    """On somebody else's workers. What was under way when one died is tried once more, each job alone, so that it is known
    which of them it dies of."""
    pool = _Pool(executor)
    waiting: collections.deque[tuple[Job, Future[Answer] | Outcome]] = collections.deque()
    rest = iter(work)

    def submit(job: Job) -> Future[Answer]:
        return pool.executor.submit(compile_job, compiler, job)

    def advance() -> None:
        job = next(rest, None)
        if job is not None:
            waiting.append((job, submit(job)))

    try:
        for _ in range(IN_FLIGHT):
            advance()
        while waiting:
            job, future = waiting[0]
            if not isinstance(future, (Artifact, Error)):
                try:
                    outcome = future.result().outcome
                except BrokenExecutor as broken:
                    _recover(pool, waiting, submit, broken)
                    continue
                except Exception as failure:
                    outcome = _again(submit, job, failure)
            else:
                outcome = future
            waiting.popleft()
            done()
            advance()
            yield outcome
    finally:
        for _, future in waiting:
            if not isinstance(future, (Artifact, Error)):
                future.cancel()
        pool.end()


def _crashed(job: Job, cause: BaseException) -> CrashError:
    what = "the worker that compiled it ended" if isinstance(cause, BrokenExecutor) else "the executor could not do it"
    message = f"{what}, twice: {type(cause).__name__}: {cause}"
    details = {"code": "E1201", "stage": "plan", "module": job.name, "message": message}
    details["target"] = ",".join(job.targets)
    error = CrashError({**details, "text": f"{job.name}: {message}"})
    error.__cause__ = cause
    return error


def _again(submit: Callable[[Job], Future[Answer]], job: Job, failure: Exception) -> Outcome:
    """Once more, after what the farm itself could not do, such as keep a worker alive."""
    del failure
    try:
        return submit(job).result().outcome
    except BrokenExecutor as broken:
        return _crashed(job, broken)
    except Exception as failed:
        return _crashed(job, failed)


def _recover(
    pool: _Pool,
    waiting: collections.deque[tuple[Job, Any]],
    submit: Callable[[Job], Future[Answer]],
    broken: BrokenExecutor,
) -> None:
    """Goes on with another pool. Every job that the broken one had not answered is either begun again, or tried alone if it
    may be the one that broke it."""
    jobs = list(waiting)
    waiting.clear()
    answered: dict[int, Outcome] = {}
    unanswered: list[int] = []
    for index, (_, future) in enumerate(jobs):
        if not isinstance(future, Future):
            answered[index] = future
        elif future.done() and future.exception() is None:
            answered[index] = future.result().outcome
        else:
            unanswered.append(index)
    # A pool of processes does not tell which of its jobs had begun: those that it was given first.
    suspects = unanswered[: _suspects(pool.executor)]
    for index in suspects:
        job = jobs[index][0]
        if not pool.renew():
            answered[index] = _crashed(job, broken)
            continue
        try:
            answered[index] = submit(job).result().outcome
        except BrokenExecutor as again:
            answered[index] = _crashed(job, again)
    if len(suspects) < len(unanswered) and not pool.renew():
        for index in unanswered:
            answered.setdefault(index, _crashed(jobs[index][0], broken))
    for index, (job, _) in enumerate(jobs):
        waiting.append((job, answered[index] if index in answered else submit(job)))


def _suspects(executor: Executor) -> int:
    """How many jobs may have been under way: one for each worker."""
    workers = vars(executor).get("_max_workers")
    return workers if isinstance(workers, int) else IN_FLIGHT


class RayExecutor(Executor):
    """Ray's tasks as an executor. `options` go to `ray.remote`, such as `num_cpus=2`."""

    def __init__(self, **options: Any) -> None:
        # An optional package, without types.
        import ray  # type: ignore[import-not-found, unused-ignore]

        self._ray = ray
        self._options = {"max_retries": 1, **options}

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Sends a call."""
        task = self._ray.remote(**self._options)(_call)
        future: Future[Any] = task.remote(function, arguments, named).future()
        return future


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return function(*arguments, **named)
