"""A worker process: started by the native half, with the path of the native library."""

import importlib.machinery
import importlib.util
import signal
import sys

if __name__ == "__main__":
    # Ctrl-C goes to the whole group: what becomes of this process is for the one that started it to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _LOADER = importlib.machinery.ExtensionFileLoader("gpulower._native", sys.argv[1])
    _SPEC = importlib.util.spec_from_loader("gpulower._native", _LOADER, origin=sys.argv[1])
    assert _SPEC is not None
    _MODULE = importlib.util.module_from_spec(_SPEC)
    _LOADER.exec_module(_MODULE)
    _MODULE.worker()
