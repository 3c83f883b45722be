"""`python -m gpulower`: the program `gpulower`."""

import sys

from ._programs import main

if __name__ == "__main__":
    sys.exit(main())
