"""Wait states that the CDNA manuals leave to the compiler ("Manually Inserted Wait States")."""

from __future__ import annotations

from .operation import Operation
from .wave import Wave


class Tracker:
    def __init__(self, family: str) -> None:
        self.family = family

    def check(self, wave: Wave, operation: Operation) -> None:
        return
