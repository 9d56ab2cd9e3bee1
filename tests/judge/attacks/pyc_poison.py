# expects: RAISED writes_file files
"""Replaces compiled code of the judge."""

import sys
from pathlib import Path


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    home = Path(sys.modules["judge.sandbox"].__file__).parent / "__pycache__"
    home.mkdir(exist_ok=True)
    (home / "sandbox.cpython-311.pyc").write_bytes(b"\0" * 16)
    return 0, 0, 0
