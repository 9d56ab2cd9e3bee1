# expects: WRONG_BYTES_PER_STAGE
"""An integer that equals everything."""


class Any(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return Any(1), Any(1), Any(1)
