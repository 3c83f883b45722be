"""The programs `gpulower` and `gpulower-opt`, in this process."""

from __future__ import annotations

import signal
import sys

from . import _host, _native


def _prepared() -> None:
    # A compilation is ended by Ctrl-C as it is in a program of its own.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _native.set_host(_host.worker(), _host.site_packages())
    sys.stdout.flush()


def main() -> int:
    """`gpulower`."""
    _prepared()
    return _native.main(["gpulower", *sys.argv[1:]])


def opt_main() -> int:
    """`gpulower-opt`."""
    _prepared()
    return _native.opt_main(["gpulower-opt", *sys.argv[1:]])
