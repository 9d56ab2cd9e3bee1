# fails: ANSWER_FORM
def owner(operand, row, column):
    row + column
