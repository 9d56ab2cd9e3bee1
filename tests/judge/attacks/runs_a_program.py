# expects: RAISED process calls
"""Starts another program."""

import subprocess


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    subprocess.run(["/bin/sh", "-c", "true"], check=True)
