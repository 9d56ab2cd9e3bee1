"""Exercise 07: which thread holds which element of a tensor-core tile. See task.md."""


def owner(operand, row, column):
    """Lane (0 to 31) and register (from 0) of an element of A (1), B (2) or C (3)."""
    ### BEGIN SOLUTION
    if operand == 1:
        lane = row % 8 * 4 + column % 8 // 2
        register = column // 8 * 4 + row // 8 * 2 + column % 2
    elif operand == 2:
        lane = column * 4 + row % 8 // 2
        register = row // 8 * 2 + row % 2
    else:
        lane = row % 8 * 4 + column // 2
        register = row // 8 * 2 + column % 2
    return {"lane": lane, "register": register}
    ### END SOLUTION
