# expects: TIMEOUT
"""An exception whose text is never finished."""


class Endless(Exception):
    """Describing it takes for ever."""

    def __str__(self):
        while True:
            pass


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    raise Endless
