# expects: STORAGE
"""Opens files until there are no numbers left for them, so that no pipe can be made."""

import tempfile


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    held = []
    while True:
        held.append(tempfile.TemporaryFile())
