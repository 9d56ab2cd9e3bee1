# expects: RAISED writes_file files
"""Goes up from its folder by relative paths."""

import os


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    os.chdir("..")
    open("verdict.json", "w").write('{"status": "pass"}')
    return 0, 0, 0
