"""What a compilation makes."""

from __future__ import annotations

import builtins
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from . import _native
from ._errors import InputError
from ._occupancy import Occupancy, occupancy
from ._once import once

if TYPE_CHECKING:
    from cuda.core import ObjectCode
    from cupy import RawModule

    from ._compiler import Compiler
    from ._launch import Launchable


@dataclass(frozen=True)
class Warning:
    """Something that deserves attention and did not stop the compilation."""

    stage: str
    message: str
    module: str | None = None
    target: str | None = None
    place: str | None = None

    def __str__(self) -> str:
        return f"{self.place + ': ' if self.place else ''}{self.stage}: {self.message}"


@dataclass(frozen=True)
class Kernel:
    """A kernel of an image, and what it needs of the hardware, as far as the image records it."""

    name: str
    #: What it was compiled for.
    target: str
    #: NVIDIA: registers of a thread. AMD: vector registers of a lane.
    registers: int | None
    #: Bytes of shared memory (LDS) that it declares itself, for a block.
    shared: int
    #: NVIDIA: bytes that are stored to and loaded from memory for want of registers. AMD: registers. None: not known.
    spills: int | None
    #: Everything that the image says, by the names of `gpulower inspect --json`.
    details: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, target: str, details: Mapping[str, Any]) -> Kernel:
        """A kernel as the native half describes it."""
        counts = ("spill_store_bytes", "spill_load_bytes", "spilled_sgprs", "spilled_vgprs")
        spills = [details[name] for name in counts if details.get(name) is not None]
        registers = details.get("registers")
        return cls(
            name=details["name"],
            target=target,
            registers=registers if registers is not None else details.get("vgprs"),
            shared=details["shared_bytes"],
            spills=sum(spills) if spills else None,
            details=details,
        )

    @property
    def scratch(self) -> int:
        """Bytes of stack and private memory of a thread."""
        return int(self.details["scratch_bytes"])

    @property
    def code_bytes(self) -> int | None:
        """The size of its machine code."""
        size: int | None = self.details.get("code_bytes")
        return size

    @property
    def threads(self) -> int | None:
        """The most threads of a block, where the kernel says it."""
        block = self.details.get("required_block")
        most: int | None = block[0] * block[1] * block[2] if block else self.details.get("max_threads_per_block")
        return most

    def occupancy(self, threads: int | None = None, dynamic_shared: int = 0) -> Occupancy | None:
        """How much of a multiprocessor (compute unit) blocks of so many threads fill: by default as many as the kernel
        requires, or else 256."""
        return occupancy(self.target, self.details, threads, dynamic_shared)

    def _repr_html_(self) -> str:
        from ._html import of_kernels

        return of_kernels([self])


@dataclass(frozen=True)
class Origin:
    """What an artifact was made of, so that other forms can be made of the same."""

    compiler: Compiler
    inputs: tuple[tuple[str, bytes], ...]
    targets: tuple[str, ...]


class Artifact(builtins.bytes):
    """What was compiled: its bytes, and what is known of them.

    It is a `bytes`, so that everything that takes those takes it: files, `memoryview`, sockets, CUDA's libraries. Two with the
    same bytes are equal, and have one hash. `artifact["kernel"]` is a kernel that can be launched.
    """

    _report: Mapping[str, Any]
    _origin: Origin | None

    def __new__(cls, content: builtins.bytes, report: Mapping[str, Any], origin: Origin | None = None) -> Artifact:
        made = super().__new__(cls, content)
        made._report = report
        made._origin = origin
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (Artifact, (self.bytes, self._report, self._origin))

    @property
    def bytes(self) -> builtins.bytes:
        """The bytes, as a `bytes` and nothing more."""
        return builtins.bytes(memoryview(self))

    @property
    def module(self) -> str:
        """The `gpu.module`, or the name of the input."""
        return str(self._report["module"])

    @property
    def format(self) -> str:
        """What the bytes are: `cubin`, `hsaco`, `fatbin`, `ptx`, and so on."""
        return str(self._report["format"])

    @property
    def extension(self) -> str:
        """The usual extension of a file, without the dot."""
        return str(self._report["extension"])

    @property
    def targets(self) -> tuple[str, ...]:
        """What it was compiled for, each target once."""
        return tuple(dict.fromkeys(image["target"] for image in self._report["images"]))

    @property
    def target(self) -> str:
        """What it was compiled for, with commas where that is several."""
        return ",".join(self.targets)

    @once
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of all images, with what they need. Empty for what is not machine code."""
        images = self._report["images"]
        return tuple(Kernel.of(image["target"], kernel) for image in images for kernel in image["kernels"])

    def kernel(self, name: str) -> Kernel:
        """The kernel of this name, of the first image that has it."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        names = ", ".join(dict.fromkeys(kernel.name for kernel in self.kernels)) or "none"
        raise KeyError(f"no kernel is called {name!r}: there are {names}")

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """What deserves attention."""
        return tuple(Warning(**warning) for warning in self._report["warnings"])

    @property
    def report(self) -> Mapping[str, Any]:
        """Everything that is known, as `gpulower compile --report json` prints it, more or less."""
        return self._report

    @property
    def tool(self) -> str | None:
        """What made the machine code, such as `ptxas 13.0.88`."""
        return next((image["tool"] for image in self._report["images"] if image["tool"]), None)

    @once
    def ptx(self) -> str:
        """The PTX, of the first target of NVIDIA's: compiled again from the same source, or taken from the cache."""
        return self._other("ptx")

    @once
    def assembly(self) -> str:
        """PTX, or AMD's assembly, of the first target."""
        return self._other("asm")

    @once
    def llvm(self) -> str:
        """The LLVM IR, linked and optimised, of the first target."""
        return self._other("llvm")

    def _other(self, emit: str) -> str:
        if self.format == emit or (self.format, emit) == ("ptx", "asm"):
            return self.bytes.decode()
        if self._origin is None:
            raise ValueError(f"{self.module} was not compiled here: there is no source to make {emit} of")
        origin = self._origin
        targets = [target for target in origin.targets or self.targets if emit != "ptx" or target[:3] != "gfx"]
        if not targets:
            raise ValueError(f"PTX is NVIDIA's, and {self.module} was compiled for {self.target}; there is .assembly")
        for made in origin.compiler._made(list(origin.inputs), targets[:1], emit):
            if made.module == self.module:
                return made.bytes.decode()
        raise ValueError(f"the source has no module {self.module} any more")

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes a file, whole or not at all. In a directory it is called `MODULE.TARGET.EXTENSION`."""
        path = Path(path)
        if path.is_dir():
            target = "" if len(self.targets) != 1 else f".{self.target.replace(':', '-')}"
            path = path / f"{self.module}{target}.{self.extension}"
        return written(path, self)

    @once
    def parameters(self) -> Mapping[str, str]:
        """The types of kernels as the source declares them, by name; empty where that is not MLIR."""
        found: dict[str, str] = {}
        for name, source in self._origin.inputs if self._origin else ():
            found.update(_native.parameters(name, source))
        return found

    @property
    def settings(self) -> Mapping[str, str]:
        """The options that it was compiled with, by the names of the command line."""
        return dict(self._origin.compiler._options) if self._origin else {}

    @overload  # type: ignore[override, unused-ignore]
    def __getitem__(self, key: str) -> Launchable: ...
    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> builtins.bytes: ...

    def __getitem__(self, key: str | SupportsIndex | slice) -> Launchable | int | builtins.bytes:
        if isinstance(key, str):
            from ._launch import Launchable

            return Launchable(self, key)
        return super().__getitem__(key)

    def to_cuda_core(self) -> ObjectCode:
        """For `cuda.core`, which loads and launches it."""
        from ._launch import to_cuda_core

        return to_cuda_core(self)

    def to_cupy(self) -> RawModule:
        """For cupy: `to_cupy().get_function("kernel")`."""
        from ._launch import to_cupy

        return to_cupy(self)

    def __repr__(self) -> str:
        return f"<gpulower.Artifact {self.module} for {self.target}: {self._report['title']}, {len(self)} bytes>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from ._html import of_artifact

        return of_artifact(self)


def written(path: Path, content: builtins.bytes) -> Path:
    """A file with this content, whole or not at all; it keeps the mode of the file that it replaces. What is there and no file,
    as a pipe, is written to."""
    try:
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            mode = None
        if mode is None or stat.S_ISREG(mode):
            _replaced(Path(os.path.realpath(path)), content, mode)
        else:
            path.write_bytes(content)
    except OSError as error:
        # By the name that the caller knows, and not by that of a file beside it.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    return path


def _replaced(path: Path, content: builtins.bytes, mode: int | None) -> None:
    beside = path.with_name(f".gpulower.{secrets.token_hex(8)}")
    try:
        with beside.open("xb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.write(content)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def single(artifacts: list[Artifact], name: str) -> Artifact:
    """The artifact, where one is wanted."""
    if len(artifacts) == 1:
        return artifacts[0]
    modules = ", ".join(artifact.module for artifact in artifacts) or "nothing"
    raise InputError(
        {
            "stage": "plan",
            "message": f"{len(artifacts)} artifacts come of {name} ({modules}), and one is wanted: "
            "take them with Compiler.compile_all, or join the modules with device_link=True",
        }
    )
