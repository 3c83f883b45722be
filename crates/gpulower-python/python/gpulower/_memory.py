"""What the allocator of C keeps between compilations."""

from __future__ import annotations

import ctypes
import os

#: `M_TRIM_THRESHOLD` and `M_MMAP_THRESHOLD` of glibc's `malloc.h`, with what the programs `gpulower` and `gpulower-opt` have.
_KEPT = ((-1, 64 << 20), (-3, 32 << 20))


def keep_freed_memory() -> bool:
    """Has `malloc` keep what is freed for the next compilation, in this process and from now on.

    NVIDIA's compiler and LLVM free some megabytes at the end of each kernel, and take as many for the next one. glibc gives
    them back to the system in between: for small kernels, page faults are up to a tenth of the time. Kept are up to 64 MiB at
    the end of each of glibc's arenas, of which threads have their own, and pieces of up to 32 MiB come from them. Where the
    environment says what `malloc` keeps, that stays, and the result is false; so it is without glibc.
    """
    if "MALLOC_TRIM_THRESHOLD_" in os.environ or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(parameter, size) for parameter, size in _KEPT)
