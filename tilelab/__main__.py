"""`python -m tilelab`: the command line."""

import sys

from tilelab.cli import main

if __name__ == "__main__":
    sys.exit(main())
