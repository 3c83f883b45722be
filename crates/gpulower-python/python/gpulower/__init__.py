"""GPU kernels in MLIR, LLVM IR and PTX to machine code for NVIDIA and AMD.

    artifact = gpulower.compile(source, target="sm_90")
    artifact.write("kernels.cubin")
    artifact["saxpy"](grid, block, stream)(a, x, y)

docs/python.md in the repository is a tutorial.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

if sys.version_info < (3, 12):
    # Later ones refuse it themselves.
    try:
        import _xxsubinterpreters as _interpreters  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        pass  # Not every build of Python has it, and no other has subinterpreters.
    else:
        if _interpreters.get_current() != _interpreters.get_main():
            raise ImportError("gpulower does not support loading in subinterpreters")

from . import _native
from ._artifact import Artifact, Kernel, Warning
from ._compiler import Cache, CacheStatistics, Compiler, Progress, Targets, usual
from ._errors import (
    AssemblyError,
    CacheError,
    CancelledError,
    CodeGenerationError,
    CrashError,
    Error,
    ExportError,
    ImageError,
    InputError,
    InternalError,
    LinkError,
    ListenerError,
    LoweringError,
    MemoryLimitError,
    Note,
    OptionError,
    SymbolError,
    TargetError,
    TimeLimitError,
    ToolkitError,
    WorkerError,
)
from ._files import (
    CacheUsage,
    Doctor,
    Exported,
    Image,
    Inspection,
    Target,
    cache_clear,
    cache_usage,
    inspect,
    pack,
)
from ._many import RayExecutor, Results
from ._memory import keep_freed_memory
from ._occupancy import Occupancy
from ._sources import Source

try:
    __version__ = version("gpulower")
except PackageNotFoundError:
    __version__ = "0"


def compile(
    source: Source,
    target: Targets | None = None,
    *,
    emit: str | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Artifact:
    """Compiles one source: `Compiler(**options).compile(...)`."""
    return usual(options).compile(source, target, emit=emit, name=name, progress=progress)


async def compile_async(
    source: Source, target: Targets | None = None, *, emit: str | None = None, name: str | None = None, **options: Any
) -> Artifact:
    """Compiles one source without blocking the event loop."""
    return await usual(options).compile_async(source, target, emit=emit, name=name)


def compile_many(
    sources: Iterable[Source] | Mapping[str, Source],
    targets: Targets | Sequence[Targets] | None = None,
    *,
    emit: str | None = None,
    on_error: Literal["raise", "return"] = "raise",
    progress: Callable[[int, int], object] | bool | None = None,
    executor: Executor | Callable[[], Executor] | None = None,
    **options: Any,
) -> Results:
    """Compiles many sources: `Compiler(**options).compile_many(...)`."""
    return usual(options).compile_many(
        sources, targets, emit=emit, on_error=on_error, progress=progress, executor=executor
    )


def link(sources: Sequence[Source], target: str, **options: Any) -> Artifact:
    """Links relocatable code into one image: `Compiler(**options).link(...)`."""
    return usual(options).link(sources, target)


def export(source: Source, targets: Targets | None = None, **options: Any) -> Exported:
    """Exports a whole program: `Compiler().export(...)`."""
    return usual({}).export(source, targets, **options)


def targets() -> list[Target]:
    """Every chip that can be compiled for, and what finishes it here."""
    return usual({}).targets()


def doctor() -> Doctor:
    """Which parts of CUDA and ROCm are here, and how to get what is missing."""
    return usual({}).doctor()


def options() -> list[dict[str, Any]]:
    """The options that compilers take: names, values, defaults, summaries."""
    rows: list[dict[str, Any]] = json.loads(_native.option_table())
    for row in rows:
        row["names"] = [name.replace("-", "_") for name in row["names"]]
    return rows


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext gpulower`: the cell magic `%%mlir`."""
    from ._magic import register

    register(shell)


__all__ = [
    "Artifact",
    "AssemblyError",
    "Cache",
    "CacheError",
    "CacheStatistics",
    "CacheUsage",
    "CancelledError",
    "CodeGenerationError",
    "Compiler",
    "CrashError",
    "Doctor",
    "Error",
    "ExportError",
    "Exported",
    "Image",
    "ImageError",
    "InputError",
    "Inspection",
    "InternalError",
    "Kernel",
    "LinkError",
    "ListenerError",
    "LoweringError",
    "MemoryLimitError",
    "Note",
    "Occupancy",
    "OptionError",
    "RayExecutor",
    "Results",
    "Source",
    "SymbolError",
    "Target",
    "TargetError",
    "TimeLimitError",
    "ToolkitError",
    "Warning",
    "WorkerError",
    "__version__",
    "cache_clear",
    "cache_usage",
    "compile",
    "compile_async",
    "compile_many",
    "doctor",
    "export",
    "inspect",
    "keep_freed_memory",
    "link",
    "options",
    "pack",
    "targets",
]
