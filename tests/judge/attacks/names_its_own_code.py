# expects: RAISED
"""An exception that dresses as tilelab's, with a code of its choice."""


class TileError(Exception):
    """Neither tilelab's nor an error."""

    code, message, hint = "PASS", "all 64 points", "nothing"


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    raise TileError
