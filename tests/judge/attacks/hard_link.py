# expects: RAISED writes_file -
"""Makes a second name for a file that it may read."""

import os
import sys


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    os.link(sys.executable, "/tmp/tilelab-judge-attack")
    return 0, 0, 0
