"""Adds blocks one by one instead of dividing."""

import math
from fractions import Fraction


def tile(rows, columns, bits):
    return math.ceil(Fraction(rows * columns * bits, 8))


def budget(**config):
    m, n, k = (config["block_" + axis] for axis in "MNK")
    stage = tile(m, k, config["bits"]) + tile(k, n, config["bits"])
    total = sum(stage for _ in range(config["num_stages"])) or stage
    blocks = used = 0
    while used + total <= config["shared_per_sm_bytes"]:
        used, blocks = used + total, blocks + 1
    return stage, total, blocks
