# fails: C_COLUMNS_FIRST
def owner(operand, row, column):
    if operand == 1:
        return row % 8 * 4 + column % 8 // 2, column // 8 * 4 + row // 8 * 2 + column % 2
    if operand == 2:
        return column * 4 + row % 8 // 2, row // 8 * 2 + row % 2
    return row % 8 * 4 + column // 2, column % 2 * 2 + row // 8
