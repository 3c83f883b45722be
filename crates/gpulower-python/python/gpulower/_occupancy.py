"""How many blocks of a kernel fit on a multiprocessor or compute unit, from its static resources.

`tests/test_gpu.py` compares what comes out with the answer of NVIDIA's driver.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _native


@dataclass(frozen=True)
class Occupancy:
    """How much of a multiprocessor (NVIDIA) or compute unit (AMD) a kernel fills."""

    #: Blocks at a time.
    blocks: int
    #: Warps (waves) at a time, and the most that there can be.
    warps: int
    most_warps: int
    #: What keeps a further block away: `registers`, `shared memory`, `warps` or `blocks`; `VGPRs`, `SGPRs`, `LDS`, `waves`.
    limit: str
    #: A bar, and a picture with what every resource allows: SVG.
    bar: str
    picture: str
    _text: str

    @property
    def fraction(self) -> float:
        """Warps of the most that there can be."""
        return self.warps / self.most_warps

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return self.picture


def occupancy(target: str, details: Mapping[str, Any], threads: int | None, dynamic_shared: int) -> Occupancy | None:
    """The occupancy of a kernel with blocks of so many threads; None for chips that are not in the tables."""
    found = _native.occupancy(target, json.dumps(dict(details)), threads, dynamic_shared)
    return None if found is None else Occupancy(*found)
