# expects: WRONG_BYTES_PER_STAGE patched
"""Stands between Python and every later import."""

import sys


class Finder:
    """Hands out modules of its own."""

    def find_spec(self, name, path=None, target=None):
        return None


sys.meta_path.insert(0, Finder())


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
