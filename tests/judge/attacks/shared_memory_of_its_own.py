# expects: MEMORY - limits
"""Takes memory that is shared with nobody, which other limits count than those of a heap."""

import mmap


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    room = mmap.mmap(-1, 3 << 30)
    for page in range(0, 3 << 30, 4096):
        room[page] = 1
    return 0, 0, 0
