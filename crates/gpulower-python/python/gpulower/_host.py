"""Where this package is: what finds NVIDIA's wheels beside it, and starts workers."""

from __future__ import annotations

import site
import sys
import sysconfig
from pathlib import Path

from . import _native

_HERE = Path(__file__).resolve().parent

#: What a worker process needs of the environment: ptxas writes to TMPDIR, and NVIDIA's libraries may load others.
FOR_WORKERS = ("TMPDIR", "LD_LIBRARY_PATH")


def site_packages() -> list[str]:
    """The folders of packages of this interpreter that hold NVIDIA's wheels, its own first."""
    folders = [sysconfig.get_path("platlib"), sysconfig.get_path("purelib"), str(_HERE.parent)]
    folders += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    folders += sys.path
    found = []
    for folder in folders:
        if folder and folder not in found and (Path(folder) / "nvidia").is_dir():
            found.append(folder)
    return [str(Path(folder).absolute()) for folder in found]


def worker() -> tuple[str, list[str]] | None:
    """The program that compiles for another process, and its arguments; None where no interpreter can be started."""
    if not sys.executable or not Path(sys.executable).is_absolute() or not _native.__file__:
        return None
    # Neither site-packages nor the environment take part: the worker is this library, wherever it was found.
    return sys.executable, ["-I", "-S", str(_HERE / "_worker.py"), _native.__file__]
