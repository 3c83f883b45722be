"""Without a file, all checks; with one, that kernel.

With `mutate`, how much the checks notice; with `math`, how accurate it is; with `programs`, C programs at random; with `vectors`,
operations on vectors at random.
"""

import sys
from pathlib import Path

from . import accuracy, mutate, one, programs, run, vectors


def main(arguments: list[str]) -> int:
    if "math" in arguments:
        return accuracy.main([text for text in arguments if text != "math"])
    if "mutate" in arguments:
        return mutate.main([text for text in arguments if text != "mutate"])
    if "programs" in arguments:
        return programs.main([text for text in arguments if text != "programs"])
    if "vectors" in arguments:
        return vectors.main([text for text in arguments if text != "vectors"])
    named = [text for text in arguments if Path(text).suffix in (".mlir", ".mlirbc", ".ll", ".bc", ".hsaco", ".co")]
    return one.run(arguments) if named else run.main(arguments)


sys.exit(main(sys.argv[1:]))
