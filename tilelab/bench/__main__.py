"""`python -m tilelab.bench`."""

import sys

from tilelab.bench.command import main

sys.exit(main())
