"""Executes launches for `gpulower-checks differ amd`: a line of JSON in, a line of JSON out, until there is no more.

`checks.hip` reads and writes the same.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Argument, Buffer, Pointer, execute
from amdexec.traps import Trap

from .hip import three

FUEL = 20_000_000


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What is in the storages after a launch, or what stopped it."""
    code = codeobject.read(Path(request["image"]), request["target"])
    buffers = [
        Buffer(str(number), np.frombuffer(bytes.fromhex(content), np.uint8), writable=writable)
        for number, (content, writable) in enumerate(request["storages"])
    ]
    arguments: list[Argument] = [Pointer(str(given)) if isinstance(given, int) else bytes.fromhex(given) for given in request["arguments"]]
    geometry = Geometry(three(request["blocks"]), three(request["threads"]), request.get("shared", 0))
    try:
        result = execute(code, request["kernel"], geometry, [b for b in buffers if len(b.array)], arguments, fuel=FUEL)
    except Trap as trap:
        return {"trap": str(trap)}
    contents = {buffer.name: buffer.array for buffer in buffers} | result.outputs
    return {"storages": [array.tobytes().hex() for array in contents.values()], "instructions": result.instructions}


def main() -> int:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
