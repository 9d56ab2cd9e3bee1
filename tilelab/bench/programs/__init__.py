"""Programs that both tilelab and a peer compile from the same text."""

TARGET = {"kind": "cuda", "arch": "sm_90a"}
"""What they are compiled for unless a row says otherwise, as both understand it."""
