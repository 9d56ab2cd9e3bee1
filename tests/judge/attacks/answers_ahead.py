# expects: CHANNEL_TAMPERED channel_tampered
"""Writes answers to questions not yet asked, while it is loaded."""

import os

for number in range(3, 30):
    try:
        os.write(number, b'{"op": "loaded", "callable": true}\n' * 100)
    except OSError:
        pass
