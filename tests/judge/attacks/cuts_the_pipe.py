# expects: WORKER_EXIT worker_exit
"""Puts another file in the place of the result pipe."""

import os


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    kept, quiet = os.pipe()
    for number in range(3, 30):
        if number not in (kept, quiet):
            try:
                os.dup2(quiet, number)
            except OSError:
                pass
    return 0, 0, 0
