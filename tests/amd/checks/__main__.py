"""Without a file, all checks; with one, that kernel."""

import sys
from pathlib import Path

from . import one, run


def main(arguments: list[str]) -> int:
    named = [text for text in arguments if Path(text).suffix in (".mlir", ".mlirbc", ".ll", ".bc", ".hsaco", ".co")]
    return one.run(arguments) if named else run.main(arguments)


sys.exit(main(sys.argv[1:]))
