# expects: RAISED writes_file files
"""Leaves a .pth file that every later Python would run."""

import sysconfig
from pathlib import Path


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    site = Path(sysconfig.get_paths()["purelib"])
    (site / "judge_attack.pth").write_text("import os; os._exit(0)")
    return 0, 0, 0
