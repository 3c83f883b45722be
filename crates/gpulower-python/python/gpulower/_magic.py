"""The cell magic `%%mlir`."""

from __future__ import annotations

import argparse
import ast
import shlex
from collections.abc import Callable
from typing import Any

from ._artifact import Artifact
from ._compiler import usual
from ._errors import Error
from ._files import disassembled
from ._html import Code

_SHOWN = ("ptx", "asm", "llvm", "sass")


def _arguments(line: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser("%%mlir", description="Compiles the cell, and keeps the artifact in a variable.")
    parser.add_argument("name", nargs="?", default="_mlir", help="the variable [default: _mlir]")
    parser.add_argument("--target", "-t", default=None, help="such as sm_90, gfx942 or native")
    parser.add_argument("--emit", "-e", default=None, help="what is made: binary, ptx, fatbin, ...")
    parser.add_argument("--show", "-s", choices=_SHOWN, help="show the code that was made, with the source beside it")
    parser.add_argument(
        "--option", "-o", action="append", default=[], metavar="NAME=VALUE", help="an option of the compiler"
    )
    return parser.parse_args(shlex.split(line))


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def shown(artifact: Artifact, what: str, source: str) -> Code:
    """Code of an artifact: its source is beside it where it was compiled with `debug="line-tables"`."""
    if what == "sass":
        tool = usual({}).doctor().found("nvdisasm")
        if tool is None:
            raise Error("SASS is shown by NVIDIA's nvdisasm, which is not here: pip install nvidia-cuda-nvdisasm")
        return Code(disassembled(artifact, str(tool)), "sass", source)
    text = {"ptx": lambda: artifact.ptx, "asm": lambda: artifact.assembly, "llvm": lambda: artifact.llvm}[what]()
    language = "ptx" if what == "asm" and artifact.target.startswith("sm_") else what
    return Code(text, language, source)


def register(shell: Any) -> None:
    """Gives a shell of IPython the magic."""

    def mlir(line: str, cell: str) -> Any:
        """Compiles the cell: `%%mlir saxpy --target sm_90 --show ptx`."""
        import IPython.display

        display: Callable[[object], object] = IPython.display.display

        arguments = _arguments(line)
        options = {name: _value(value) for name, _, value in (option.partition("=") for option in arguments.option)}
        if arguments.show:
            options.setdefault("debug", "line-tables")
        try:
            made = usual(options).compile(cell, arguments.target, emit=arguments.emit, name=f"{arguments.name}.mlir")
        except Error as error:
            display(error)
            return None
        shell.user_ns[arguments.name] = made
        if not arguments.show:
            return made
        display(made)
        return shown(made, arguments.show, cell)

    shell.register_magic_function(mlir, "cell", "mlir")
