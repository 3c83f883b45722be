"""What can be compiled, as a name for messages and bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol, Union, runtime_checkable

from ._errors import InputError


@runtime_checkable
class Printable(Protocol):
    """An object that prints itself as MLIR, such as the modules of MLIR's own bindings, of xDSL, of numba-cuda-mlir."""

    def __str__(self) -> str: ...


#: Text, anything that shows its bytes (text, bytecode, bitcode), a path of a file, or an object that prints MLIR.
Source = Union[str, bytes, bytearray, memoryview, "os.PathLike[str]", Printable]

_SUFFIXES = (".mlir", ".mlirbc", ".ll", ".bc", ".ptx")


def read(source: Source, name: str | None = None) -> tuple[str, bytes]:
    """A source as its name and its bytes."""
    anything: Any = source
    if isinstance(source, os.PathLike):
        path = Path(os.fsdecode(source))
        # A name in messages is text, whatever the bytes of the file's name are.
        title = os.fsencode(path).decode(errors="replace")
        try:
            return name or title, path.read_bytes()
        except OSError as error:
            raise InputError({"message": f"cannot read {title}: {error.strerror}", "stage": "input"}) from error
    if not isinstance(source, str):
        try:
            content = bytes(memoryview(anything))
        except TypeError:
            pass
        else:
            extension = getattr(source, "extension", None)
            usual = f"{getattr(source, 'module', 'source')}.{extension}" if extension else "source"
            return name or usual, content
        if type(source).__str__ is object.__str__:
            kind = type(source).__name__
            raise TypeError(f"a source is text, bytes, a path or an object that prints MLIR, and not {kind}")
        return name or "source.mlir", _encoded(str(source))
    if "\n" not in source and source.endswith(_SUFFIXES):
        raise InputError(
            {"message": f"{source!r} looks like the name of a file; pass pathlib.Path({source!r})", "stage": "input"}
        )
    return name or "source", _encoded(source)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError({"message": f"the text has half a character at {error.start}", "stage": "input"}) from None
