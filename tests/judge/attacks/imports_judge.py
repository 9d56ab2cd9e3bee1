# expects: RAISED reads_judge files
"""Imports the exercise's checks through the judge."""

import sys
from pathlib import Path


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    sys.path.insert(0, str(Path(sys.modules["judge.sandbox"].__file__).parent.parent))
    from judge.exercise import load_exercise

    quiz = load_exercise("01").quiz
    return quiz.expected(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes)
