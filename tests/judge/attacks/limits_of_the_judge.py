# expects: RAISED limits calls
"""Sets a limit of the process that judges."""

import os
import resource

resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
