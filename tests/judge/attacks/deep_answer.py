# expects: ANSWER_FORM
"""Answers with lists in lists in lists."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    answer = []
    for _ in range(100_000):
        answer = [answer]
    return answer
