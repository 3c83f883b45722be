"""What can be compiled, as a name for messages and bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol, Union, runtime_checkable

from ._errors import InputError


@runtime_checkable
class Printable(Protocol):
    """An object that prints itself as MLIR, such as the modules of MLIR's own bindings, of xDSL, of numba-cuda-mlir."""

    def __str__(self) -> str: ...


#: Text, bytes (text, bytecode, bitcode), a path of a file, or an object that prints MLIR.
Source = Union[str, bytes, bytearray, memoryview, "os.PathLike[str]", Printable]

_SUFFIXES = (".mlir", ".mlirbc", ".ll", ".bc", ".ptx")


def read(source: Source, name: str | None = None) -> tuple[str, bytes]:
    """A source as its name and its bytes."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        extension = getattr(source, "extension", None)
        usual = f"{getattr(source, 'module', 'source')}.{extension}" if extension else "source"
        return name or usual, bytes(source)
    if isinstance(source, os.PathLike):
        path = Path(source)
        try:
            return name or str(path), path.read_bytes()
        except OSError as error:
            raise InputError({"message": f"cannot read {path}: {error.strerror}", "stage": "input"}) from error
    if not isinstance(source, str):
        if type(source).__str__ is object.__str__:
            kind = type(source).__name__
            raise TypeError(f"a source is text, bytes, a path or an object that prints MLIR, and not {kind}")
        return name or "source.mlir", str(source).encode()
    if "\n" not in source and source.endswith(_SUFFIXES):
        raise InputError(
            {"message": f"{source!r} looks like the name of a file; pass pathlib.Path({source!r})", "stage": "input"}
        )
    return name or "source", source.encode()
