# expects: RAISED denied calls
"""Takes a lease on a library, which makes whoever opens it wait for most of a minute."""

import fcntl
import json
import os

F_SETLEASE, F_WRLCK = 1024, 1
handle = os.open(json.__file__, os.O_RDONLY)
fcntl.fcntl(handle, F_SETLEASE, F_WRLCK)


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 0, 0, 0
