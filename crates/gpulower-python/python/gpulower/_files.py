"""What the command line does besides compiling: inspecting, packing, exporting, the cache, the doctor."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Union

from . import _native
from ._artifact import Kernel, written
from ._errors import CacheError, raised_here
from ._sources import Source, read


@dataclass(frozen=True)
class Target:
    """A chip that can be compiled for."""

    name: str
    vendor: str
    features: tuple[str, ...]
    #: The tool that makes loadable code here; None, with the reason in `missing`, where there is none.
    finished_by: str | None
    missing: str | None
    details: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Target:
        """A target as the command line lists it."""
        return cls(
            name=row["target"],
            vendor=row["vendor"],
            features=tuple(row["features"]),
            finished_by=row["finished_by"],
            missing=row.get("missing"),
            details=row,
        )

    def __str__(self) -> str:
        return self.name


class Doctor:
    """Which parts of CUDA and ROCm are here; `str()` is what `gpulower doctor` prints."""

    def __init__(self, report: dict[str, Any]) -> None:
        self._text: str = report.pop("text")
        #: Everything, by the names of `gpulower doctor --json`.
        self.report: Mapping[str, Any] = report

    def found(self, part: str) -> Path | None:
        """Where a part is, such as `ptxas` or `libdevice.10.bc`."""
        for entry in self.report["parts"]:
            if entry["name"] == part:
                return Path(entry["found"]) if entry["found"] else None
        names = ", ".join(entry["name"] for entry in self.report["parts"])
        raise KeyError(f"no part is called {part!r}: there are {names}")

    @property
    def advice(self) -> dict[str, str]:
        """How to get what is missing."""
        return {entry["name"]: entry["advice"] for entry in self.report["parts"] if entry["advice"]}

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ._html import of_doctor

        return of_doctor(self)


class Exported(bytes):
    """An exported program: the file to carry, and how it is finished."""

    _report: Mapping[str, Any]

    def __new__(cls, content: bytes, report: Mapping[str, Any]) -> Exported:
        made = super().__new__(cls, content)
        made._report = report
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (Exported, (bytes(memoryview(self)), self._report))

    @property
    def commands(self) -> str:
        """What makes the program of it on the other machine."""
        return str(self._report["commands"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed or left out on the way."""
        return tuple(self._report["notes"])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the compilation of the kernels."""
        return tuple(self._report["warnings"])

    @property
    def kernels(self) -> dict[str, str]:
        """What the kernels of the source are called in the program."""
        return dict(self._report["kernels"])

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes the file, whole or not at all."""
        return written(Path(path), self)

    def __repr__(self) -> str:
        return f"<gpulower.Exported: {len(self)} bytes>"

    __str__ = __repr__


@dataclass(frozen=True)
class Image:
    """An image that was found in a file."""

    number: int
    target: str | None
    kind: str
    kernels: tuple[Kernel, ...]
    #: Decompressed.
    content: bytes = field(repr=False)
    details: Mapping[str, Any] = field(repr=False, compare=False)


class Inspection:
    """What is in a file."""

    def __init__(self, report: Mapping[str, Any], contents: Mapping[int, bytes]) -> None:
        #: Everything, by the names of `gpulower inspect --json`.
        self.report = report
        #: The images, in their order.
        self.images: tuple[Image, ...] = tuple(_image(entry, contents) for entry in report["images"])
        #: What each device does with the file that was asked for.
        self.devices: tuple[Mapping[str, Any], ...] = tuple(report["devices"])

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of all images."""
        return tuple(kernel for image in self.images for kernel in image.kernels)

    def __repr__(self) -> str:
        images = ", ".join(f"{image.kind} for {image.target}" for image in self.images)
        return f"<gpulower.Inspection: {images or 'no images'}>"

    def _repr_html_(self) -> str:
        from ._html import of_kernels

        return of_kernels(self.kernels)


def _image(entry: Mapping[str, Any], contents: Mapping[int, bytes]) -> Image:
    target = entry.get("target")
    return Image(
        number=entry["number"],
        target=target,
        kind=entry["kind"],
        kernels=tuple(Kernel.of(target or "", _resources(kernel)) for kernel in entry.get("kernels") or ()),
        content=contents.get(entry["number"], b""),
        details=entry,
    )


def _resources(kernel: Mapping[str, Any]) -> Mapping[str, Any]:
    nested: Mapping[str, Any] = kernel.get("resources") or kernel
    return {"name": kernel.get("name"), "shared_bytes": 0, "scratch_bytes": 0, **nested}


def inspect(
    source: Source, *, device: str | Sequence[str] = (), driver: str | None = None, name: str | None = None
) -> Inspection:
    """What is in a file that may hold code for GPUs, and what devices load of it, `sm_86` or `gfx90a:xnack+`, with a driver of
    the CUDA release `driver`."""
    title, content = read(source, name)
    devices = [device] if isinstance(device, str) else list(device)
    with raised_here():
        report, images = _native.inspect(title, content, devices, driver)
    return Inspection(json.loads(report), dict(images))


#: An image to pack: a source; with its target where it does not say that itself.
Packed = Union[Source, "tuple[str, Source]"]


def pack(images: Iterable[Packed], format: str = "fatbin", *, compress: str = "none") -> bytes:
    """Puts images into one container: `fatbin`, `bundle` or `offload`. `(target, source)` where an image does not say what it
    is for."""
    inputs = []
    for image in images:
        target, source = image if isinstance(image, tuple) else (None, image)
        title, content = read(source)
        inputs.append((title, content, target))
    with raised_here():
        return _native.pack(inputs, format, compress)


@dataclass(frozen=True)
class CacheUsage:
    """What a cache holds on disk, or held."""

    directory: str
    entries: int
    bytes: int


def _results(directory: str | os.PathLike[str] | None) -> str:
    if directory is not None:
        return os.path.join(directory, "results")
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME") or "", ".cache")
    if not os.path.isabs(root):
        raise CacheError("there is no cache: neither XDG_CACHE_HOME nor HOME is set; name a directory")
    return os.path.join(root, "gpulower", "results")


def cache_usage(directory: str | os.PathLike[str] | None = None) -> CacheUsage:
    """What a cache holds: that of the command line when none is named."""
    path = _results(directory)
    with raised_here():
        return CacheUsage(path, *_native.cache_usage(path))


def cache_clear(directory: str | os.PathLike[str] | None = None) -> CacheUsage:
    """Removes all results of a cache, and says what there was."""
    path = _results(directory)
    with raised_here():
        return CacheUsage(path, *_native.cache_clear(path))


def disassembled(cubin: bytes, nvdisasm: str) -> str:
    """SASS, as NVIDIA's `nvdisasm` prints it."""
    import subprocess

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([nvdisasm, "-c", "-g", file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{nvdisasm} failed: {done.stderr.strip()}")
    return done.stdout
