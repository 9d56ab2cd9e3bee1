# fails: ANSWER_FORM
def owner(operand, row, column):
    return row % 8 * 4 + column / 2, row // 8 * 2 + column % 2
