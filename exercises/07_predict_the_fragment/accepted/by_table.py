"""Builds the whole map from the rules."""


def owner(operand, row, column):
    # Builds the map from the rules, lane by lane, and looks the element up.
    found = {}
    for lane in range(32):
        line, pair = lane // 4, 2 * (lane % 4)
        for register in range(8 if operand == 1 else 4):
            if operand == 2:
                place = (pair + register % 2 + register // 2 * 8, line)
            else:
                place = (line + register // 2 % 2 * 8, pair + register % 2 + register // 4 * 8)
            found[place] = lane, register
    return list(found[row, column])
