"""Whole numbers on the host: `tilelang.math`."""

from tilelab.calls import answer_all


def cdiv(a: int, b: int) -> int:
    """The smallest integer not below a / b."""
    return -(-a // b)


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is not below x (1 for x below 1)."""
    return 1 << max(x - 1, 0).bit_length()


answer_all(globals(), ("cdiv", "next_power_of_2"), "tilelab")
