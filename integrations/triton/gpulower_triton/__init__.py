"""Triton's kernels, finished by gpulower: `TRITON_CODEGEN=gpulower python program.py`, and nothing in the program changes.

Triton finds this package by its entry point. Its own passes make LLVM IR; what makes PTX, cubins and code objects of that is
replaced, in this process.
"""

import os

#: The variable that says who finishes kernels.
VARIABLE = "TRITON_CODEGEN"


def chosen() -> bool:
    """Whether the environment asks for gpulower."""
    name = os.environ.get(VARIABLE, "triton")
    if name not in ("triton", "gpulower"):
        raise ValueError(f"{VARIABLE} is 'triton' or 'gpulower', and not {name!r}")
    return name == "gpulower"
