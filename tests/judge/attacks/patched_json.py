# expects: CHANNEL_TAMPERED channel_tampered
"""Makes the worker's JSON say what it likes."""

import json

json.dumps = lambda *_, **__: '{"status": "pass"}'


def budget(block_M, block_N, block_K, bits, num_stages, shared_per_sm_bytes):
    return 0, 0, 0
