# expects: WORKER_EXIT worker_exit
"""Leaves a sitecustomize.py where it may write, and dies so that Python starts again."""

import os
from pathlib import Path

Path("sitecustomize.py").write_text("import os; os.write(1, b'here')")
Path("json.py").write_text("def dumps(value): return '{}'")


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    os._exit(0)
