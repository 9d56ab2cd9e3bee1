# expects: RAISED reads_judge files
"""Runs the shipped solution."""

from pathlib import Path


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    for base in (Path.cwd(), *Path(json_path()).parents):
        for path in base.glob("exercises/01_*/solution.py"):
            scope = {}
            exec(path.read_text(), scope)
            return scope["budget"](block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes)
    raise RuntimeError("not found")


def json_path():
    import sys

    return sys.modules["judge.sandbox"].__file__
