# expects: WORKER_EXIT worker_exit
"""The same before anything is asked."""

import os

os._exit(0)
