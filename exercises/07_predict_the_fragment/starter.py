"""Exercise 07: which thread holds which element of a tensor-core tile. See task.md."""


def owner(operand, row, column):
    """Lane (0 to 31) and register (from 0) of an element of A (1), B (2) or C (3)."""
    raise NotImplementedError("write your solution here")
