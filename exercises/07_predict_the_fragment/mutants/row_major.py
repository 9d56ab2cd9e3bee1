# fails: ROW_MAJOR
def owner(operand, row, column):
    width = 16 if operand == 1 else 8
    held = 16 * width // 32
    return divmod(row * width + column, held)
