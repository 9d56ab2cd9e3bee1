# expects: RAISED writes_file calls
"""Changes the mode of a folder that is not its own: Landlock knows nothing of modes."""

import os

os.chmod("/tmp", os.stat("/tmp").st_mode & 0o7777)


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 1, 1, 1
