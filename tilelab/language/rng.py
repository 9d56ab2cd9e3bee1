"""Random numbers of a thread: the counter-based generator Philox4x32-10.

Source: Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). The sequence is
that of cuRAND's generator of this name: draw n of a sequence is word n % 4 of the block n // 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tilelab.dtypes import FLOAT32, UINT32, UINT64
from tilelab.errors import TileNotSupported, TileRuntimeError
from tilelab.frontend import open_kernel, session
from tilelab.ir import Alloc, Expr, Load, ScalarBuffer, Scope, Store, as_expr, binary, cast, select
from tilelab.language.instruct import bound
from tilelab.language.launch import get_block_bindings, get_block_extents, linear_thread

_GENERATOR = "curandStatePhilox4_32_10_t"
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_STATE = "rng"


@dataclass(frozen=True)
class _Stream:
    """A thread's place in a sequence: the key and the sequence stay, `position` counts draws."""

    key: tuple[Expr, Expr]
    sequence: Expr
    position: ScalarBuffer


def rng_init(seed: Any, seq: Any = None, off: Any = 0, generator: str = _GENERATOR) -> None:
    """Begin a sequence of random numbers in every thread: number `seq` (by default the thread's
    number in the grid) of those of a seed, from its draw `off` on."""
    if generator != _GENERATOR:
        raise TileNotSupported(
            f"T.rng_init(generator={generator!r}) is not supported", code="TL1784",
            loc=session().loc(), hint=f"leave it out, or use {_GENERATOR!r}",
        )  # fmt: skip
    kernel, trace, loc = open_kernel("T.rng_init"), session(), session().loc()
    wide = bound(cast(as_expr(seed), UINT64), "seed")
    number = _thread_of_grid() if seq is None else as_expr(seq)
    position = ScalarBuffer(trace.fresh("draw"), (1,), UINT64, Scope.LOCAL, loc=loc)
    trace.emit(Alloc(position, loc=loc), anywhere=True)
    start = cast(as_expr(off), UINT64)
    trace.emit(Store(position, (as_expr(0),), start, loc=loc), anywhere=True)
    key = (_low(wide), _high(wide))
    kernel.state[_STATE] = _Stream(key, bound(cast(number, UINT64), "sequence"), position)


def _thread_of_grid() -> Expr:
    block: Any = as_expr(0)
    for index, extent in zip(
        reversed(get_block_bindings()), reversed(get_block_extents()), strict=True
    ):
        block = block * extent + index
    return as_expr(block * prod(open_kernel("T.rng_init").threads) + linear_thread())


def _low(value: Expr) -> Expr:
    return cast(value, UINT32)


def _high(value: Expr) -> Expr:
    return cast(binary(">>", value, as_expr(32, UINT64)), UINT32)


def _constant(value: int) -> Expr:
    return as_expr(value, UINT32)


def _block(counter: list[Expr], key: tuple[Expr, Expr]) -> list[Expr]:
    """Four random words of a counter of four words."""
    keys = list(key)
    for number in range(_ROUNDS):
        if number:
            keys = [bound(k + _constant(w), "key") for k, w in zip(keys, _WEYL, strict=True)]
        products = [
            bound(binary("*", cast(_constant(m), UINT64), cast(c, UINT64)), "product")
            for m, c in zip(_MULTIPLIERS, (counter[0], counter[2]), strict=True)
        ]
        mixed = (
            _high(products[1]) ^ counter[1] ^ keys[0], _low(products[1]),
            _high(products[0]) ^ counter[3] ^ keys[1], _low(products[0]),
        )  # fmt: skip
        counter = [bound(word, "word") for word in mixed]
    return counter


def rng_rand() -> Expr:
    """The next random uint32 of the thread. TileRuntimeError (TL1784) before T.rng_init."""
    stream = open_kernel("T.rng_rand").state.get(_STATE)
    if not isinstance(stream, _Stream):
        raise TileRuntimeError(
            "T.rng_rand stands before T.rng_init", code="TL1784", loc=session().loc(),
            hint="call T.rng_init(seed) in the kernel first",
        )  # fmt: skip
    trace, zero = session(), (as_expr(0),)
    draw = bound(Load(stream.position, zero), "draw")
    block = bound(binary(">>", draw, as_expr(2, UINT64)), "block")
    counter = [_low(block), _high(block), _low(stream.sequence), _high(stream.sequence)]
    words = _block(counter, stream.key)
    which = bound(_low(draw) & _constant(3), "which")
    chosen = words[3]
    for number in (2, 1, 0):
        chosen = select(binary("==", which, _constant(number)), words[number], chosen)
    result = bound(chosen, "random")
    after = draw + as_expr(1, UINT64)
    trace.emit(Store(stream.position, zero, after, loc=trace.loc()), anywhere=True)
    return result


def rng_rand_float(bit: int = 32, dist: str = "uniform") -> Expr:
    """The next random float32 of the thread, evenly spread over (0, 1]."""
    if bit != 32 or dist != "uniform":
        raise TileNotSupported(
            f"T.rng_rand_float(bit={bit!r}, dist={dist!r}) is not supported", code="TL1784",
            loc=session().loc(), hint='use bit=32 and dist="uniform"',
        )  # fmt: skip
    unit = as_expr(2.0**-32, FLOAT32)
    return cast(rng_rand(), FLOAT32) * unit + as_expr(2.0**-33, FLOAT32)


NAMES: dict[str, Any] = {f.__name__: f for f in (rng_init, rng_rand, rng_rand_float)}
"""What this module adds to the language."""
