"""What the judge asks in exercise 02, what is right, and which wrong ideas it recognises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from judge.checks import Case, Fields, Quiz, WrongIdea

FIELDS = ("blocks", "waves", "last_wave", "wasted")
SMS = (78, 108, 114, 132)
PER_CATEGORY = 8

Args = dict[str, int]


def up(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def launch(M: int, N: int, block_M: int, block_N: int, sms: int, blocks_per_sm: int) -> Fields:
    """The reference."""
    return _fields(up(M, block_M) * up(N, block_N), M, N, block_M, block_N, sms * blocks_per_sm)


def _fields(blocks: int, m: int, n: int, bm: int, bn: int, at_once: int) -> Fields:
    waves = up(blocks, at_once)
    return {
        "blocks": blocks, "waves": waves, "last_wave": blocks - (waves - 1) * at_once,
        "wasted": blocks * bm * bn - m * n,
    }  # fmt: skip


def _args(m: int, n: int, bm: int, bn: int, sms: int, per: int) -> Args:
    return {"M": m, "N": n, "block_M": bm, "block_N": bn, "sms": sms, "blocks_per_sm": per}


PUBLIC = (
    Case("public.anchor", "the example of the task", _args(1000, 1000, 128, 128, 132, 1), False),
    Case("public.even", "everything divides", _args(4224, 4096, 128, 256, 132, 2), False),
    Case("public.row", "a single row", _args(1, 5000, 64, 128, 108, 2), False),
)


def _block(rng: Random) -> tuple[int, int]:
    return rng.choice((32, 64, 128)), rng.choice((96, 160, 256))


def _any(rng: Random) -> Args:
    return _args(rng.randrange(300, 9000), rng.randrange(300, 9000), *_block(rng),
                 rng.choice(SMS), rng.randint(2, 4))  # fmt: skip


def _even(rng: Random) -> Args:
    """The blocks fill every wave."""
    bm, bn = _block(rng)
    sms, per, waves = rng.choice(SMS), rng.randint(2, 3), rng.randint(2, 4)
    return _args(bm * per * waves, bn * sms, bm, bn, sms, per)


def _row(rng: Random) -> Args:
    return {**_any(rng), "M": 1}


def _column(rng: Random) -> Args:
    return {**_any(rng), "N": 1}


def _small(rng: Random) -> Args:
    return {**_any(rng), "M": rng.randrange(2, 31), "N": rng.randrange(2, 95)}


def _one_more(rng: Random) -> Args:
    args = _any(rng)
    return {**args, "M": args["block_M"] * rng.randrange(3, 40) + 1,
            "N": args["block_N"] * rng.randrange(3, 40) + 1}  # fmt: skip


def _prime(rng: Random) -> Args:
    primes = (521, 1009, 2053, 4099, 8191)
    return {**_any(rng), "M": rng.choice(primes), "N": rng.choice(primes)}


CATEGORIES: dict[str, tuple[str, Callable[[Random], Args]]] = {
    "any": ("any sizes", _any),
    "even": ("full waves", _even),
    "row": ("a single row", _row),
    "column": ("a single column", _column),
    "small": ("less than a tile", _small),
    "one_more": ("one more than whole tiles", _one_more),
    "prime": ("primes", _prime),
    "busy": ("any sizes, once more", _any),
}


def draw(rng: Random) -> Sequence[Case]:
    """The hidden cases."""
    return [
        Case(f"{name}.{number}", category, make(rng), True, 1)
        for name, (category, make) in CATEGORIES.items()
        for number in range(PER_CATEGORY)
    ]


def _variant(
    blocks: Callable[[int, int, int, int], int] | None = None,
    at_once: Callable[[int, int], int] | None = None,
    last: Callable[[int, int], int] | None = None,
    wasted: Callable[[int, int, int, int, int], int] | None = None,
    waves: Callable[[int, int], int] | None = None,
) -> Callable[..., Fields]:
    """The reference with a formula replaced."""

    def compute(M: int, N: int, block_M: int, block_N: int, sms: int, blocks_per_sm: int) -> Fields:
        count = blocks(M, N, block_M, block_N) if blocks else up(M, block_M) * up(N, block_N)
        room = at_once(sms, blocks_per_sm) if at_once else sms * blocks_per_sm
        fields = dict(_fields(count, M, N, block_M, block_N, room))
        if waves:
            fields["waves"] = waves(count, room)
        if last:
            fields["last_wave"] = last(count, room)
        if wasted:
            fields["wasted"] = wasted(count, M, N, block_M, block_N)
        return fields

    return compute


IDEAS = (
    WrongIdea(
        "GRID_ROUNDED_DOWN", "tiles that lie partly outside were left out",
        "round each axis up: a partly filled tile is a whole block (rule 1)",
        _variant(blocks=lambda m, n, bm, bn: (m // bm) * (n // bn)),
    ),
    WrongIdea(
        "AREA_DIVIDED", "the area was divided by the tile's area",
        "cut each axis by itself, then multiply (rule 1)",
        _variant(blocks=lambda m, n, bm, bn: up(m * n, bm * bn)),
    ),
    WrongIdea(
        "ONE_TILE_TOO_MANY", "M // block + 1 is one too many where the block divides M",
        "round up: (M + block - 1) // block (rule 1)",
        _variant(blocks=lambda m, n, bm, bn: (m // bm + 1) * (n // bn + 1)),
    ),
    WrongIdea(
        "AXES_SWAPPED", "M was cut by block_N and N by block_M",
        "rows go with block_M, columns with block_N",
        _variant(blocks=lambda m, n, bm, bn: up(m, bn) * up(n, bm)),
    ),
    WrongIdea(
        "WAVES_ROUNDED_DOWN", "the last, partly filled wave was not counted",
        "round the number of waves up (rule 2)",
        _variant(waves=lambda count, room: count // room),
    ),
    WrongIdea(
        "ONE_BLOCK_PER_SM", "each SM was given one block at a time",
        "sms * blocks_per_sm blocks run at the same time",
        _variant(at_once=lambda sms, per: sms),
    ),
    WrongIdea(
        "EMPTY_LAST_WAVE", "a full last wave was reported as 0 blocks",
        "blocks % room is 0 where the last wave is full: it then has all of them (rule 3)",
        _variant(last=lambda count, room: count % room),
    ),
    WrongIdea(
        "IDLE_PLACES", "the places that stay empty in the last wave were counted",
        "last_wave counts the blocks that run in it (rule 3)",
        _variant(last=lambda count, room: -count % room),
    ),
    WrongIdea(
        "COVERED_NOT_WASTED", "all elements of the tiles were counted, inside ones too",
        "subtract M * N (rule 4)",
        _variant(wasted=lambda count, m, n, bm, bn: count * bm * bn),
    ),
)  # fmt: skip

EXERCISE = Quiz(
    entry="launch",
    fields=FIELDS,
    public=PUBLIC,
    draw=draw,
    expected=launch,
    ideas=IDEAS,
    starter_code="NOT_IMPLEMENTED",
    hint_command="read the rules in exercises/02_launch_shape/task.md",
)
