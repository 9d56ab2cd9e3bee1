# expects: CHANNEL_TAMPERED channel_tampered
"""An answer with a hundred thousand keys."""


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return {f"key{i}": i for i in range(100_000)}
