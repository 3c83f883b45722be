"""Compiles every file of a folder for several chips, on all processors: `python farm.py FOLDER OUT`."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import gpulower

TARGETS = ["sm_80", "sm_90", "gfx942"]


def main() -> None:
    """Compiles, and says what failed."""
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(exist_ok=True)
    files = sorted(folder.glob("*.mlir"))
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as executor:
        results = gpulower.compile_many(files, TARGETS, on_error="return", executor=executor)
        for result in results:
            print(result.write(out) if isinstance(result, gpulower.Artifact) else result)


if __name__ == "__main__":
    main()
