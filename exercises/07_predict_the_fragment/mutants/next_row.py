# fails: NEXT_ROW
def owner(operand, row, column):
    if operand == 1:
        return row // 2 * 4 + column % 8 // 2, column // 8 * 4 + row % 2 * 2 + column % 2
    if operand == 2:
        return column * 4 + row % 8 // 2, row // 8 * 2 + row % 2
    return row // 2 * 4 + column // 2, row % 2 * 2 + column % 2
