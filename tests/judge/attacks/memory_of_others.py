# expects: MEMORY
"""Takes memory that no heap counts."""

import mmap


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    blocks = [mmap.mmap(-1, 1 << 30) for _ in range(64)]
    return len(blocks), 0, 0
