"""What the judge asks in exercise 07, what is right, and which wrong ideas it recognises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import tilelab
from judge.checks import Case, Fields, Measured, Quiz, WrongIdea

FIELDS = ("lane", "register")
SHAPES = {1: (16, 16), 2: (16, 8), 3: (16, 8)}
NAMES = {1: "operand A", 2: "operand B", 3: "the sums C"}
PER_OPERAND = {1: 24, 2: 20, 3: 20}


def owner(operand: int, row: int, column: int) -> Fields:
    """The reference."""
    if operand == 1:
        return {
            "lane": row % 8 * 4 + column % 8 // 2,
            "register": column // 8 * 4 + row // 8 * 2 + column % 2,
        }
    if operand == 2:
        return {"lane": column * 4 + row % 8 // 2, "register": row // 8 * 2 + row % 2}
    return {"lane": row % 8 * 4 + column // 2, "register": row // 8 * 2 + column % 2}


def _args(operand: int, row: int, column: int) -> dict[str, int]:
    return {"operand": operand, "row": row, "column": column}


PUBLIC = (
    Case("public.anchor", "the example of the task", _args(3, 9, 3), False),
    Case("public.a", NAMES[1], _args(1, 2, 13), False),
    Case("public.b", NAMES[2], _args(2, 11, 5), False),
)


def draw(rng: Random) -> Sequence[Case]:
    """Hidden elements: for each operand, some of every quarter of the tile."""
    found: list[Case] = []
    for operand, (rows, columns) in SHAPES.items():
        for number in range(PER_OPERAND[operand]):
            row = number % 2 * rows // 2 + rng.randrange(rows // 2)
            column = number // 2 % 2 * columns // 2 + rng.randrange(columns // 2)
            args = _args(operand, row, column)
            found.append(Case(f"{'.abc'[operand]}.{number}", NAMES[operand], args, True, 1))
    return found


def compiled(operand: int, row: int, column: int) -> Fields:
    """The answer of the layout that the compiler uses."""
    atoms: Any = tilelab.layout.atoms
    makers = {1: atoms.mma_m16n8k16_a, 2: atoms.mma_m16n8k16_b, 3: atoms.mma_m16n8k16_c}
    fragment = makers[operand]()
    return {
        "lane": int(fragment.thread_of((row, column))),
        "register": int(fragment.register_of((row, column))),
    }


MEASURED = tuple(
    Measured(
        Case(f"compile.{'.abc'[operand]}", "the compiler's own map", _args(operand, *place), False),
        lambda operand=operand, place=place: compiled(operand, *place),
    )
    for operand, place in ((1, (13, 6)), (2, (6, 7)), (3, (4, 6)))
)

# -- wrong ideas ----------------------------------------------------------------------------------


def _row_major(operand: int, row: int, column: int) -> Fields:
    position = row * SHAPES[operand][1] + column
    held = SHAPES[operand][0] * SHAPES[operand][1] // 32
    return {"lane": position // held, "register": position % held}


def _b_like_c(operand: int, row: int, column: int) -> Fields:
    return owner(3 if operand == 2 else operand, row, column)


def _rows_in_turn(operand: int, row: int, column: int) -> Fields:
    right = dict(owner(operand, row, column))
    if operand != 2:
        right["lane"] = row // 2 * 4 + column % 8 // 2
        right["register"] = right["register"] - row // 8 * 2 + row % 2 * 2
    return right


def _one_column(operand: int, row: int, column: int) -> Fields:
    right = dict(owner(operand, row, column))
    along = row if operand == 2 else column
    line = column if operand == 2 else row % 8
    right["lane"] = line * 4 + along % 4
    right["register"] = right["register"] - along % 2 + along % 8 // 4
    return right


def _a_by_rows(operand: int, row: int, column: int) -> Fields:
    right = dict(owner(operand, row, column))
    if operand == 1:
        right["register"] = row // 8 * 4 + column // 8 * 2 + column % 2
    return right


def _from_one(operand: int, row: int, column: int) -> Fields:
    right = owner(operand, row, column)
    return {"lane": right["lane"], "register": right["register"] + 1}


def _columns_first(operand: int, row: int, column: int) -> Fields:
    right = dict(owner(operand, row, column))
    if operand == 3:
        right["register"] = column % 2 * 2 + row // 8
    return right


def _idea(code: str, cause: str, hint: str, compute: Callable[..., Fields]) -> WrongIdea:
    return WrongIdea(code, cause, hint, compute)


IDEAS = (
    _idea("ROW_MAJOR", "each lane was given neighbouring elements of the tile",
          "the hardware deals rows and pairs of columns (rule 1)", _row_major),
    _idea("B_LIKE_C", "B was read like C", "in B a lane stays in one column (rule 3)", _b_like_c),
    _idea("NEXT_ROW", "a lane was given two neighbouring rows",
          "its second row is 8 further down (rule 1)", _rows_in_turn),
    _idea("COLUMNS_FOUR_APART", "a lane was given columns that lie 4 apart",
          "its two columns are neighbours: 2 * (l % 4) and the next (rule 1)", _one_column),
    _idea("A_ROWS_FIRST", "registers of A go on with the columns before the lower row",
          "first the lower row, then columns 8 to 15 (rule 2)", _a_by_rows),
    _idea("FROM_ONE", "registers were counted from 1", "count from 0", _from_one),
    _idea("C_COLUMNS_FIRST", "the two registers of a row of C were put 2 apart",
          "registers 0 and 1 are of the upper row (rule 1)", _columns_first),
)  # fmt: skip

EXERCISE = Quiz(
    entry="owner",
    fields=FIELDS,
    public=PUBLIC,
    draw=draw,
    expected=owner,
    ideas=IDEAS,
    starter_code="NOT_IMPLEMENTED",
    measured=MEASURED,
    hint_command="read the rules in exercises/07_predict_the_fragment/task.md",
)
