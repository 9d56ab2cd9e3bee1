"""Fragments: maps and inverses against a slow reading, composition against brute force."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelab.errors import TileValueError
from tilelab.layout import Digit, Fragment, equivalent, tables

from .strategies import BRUTE_CASES, PROFILE, Expr, elements, random_fragment, slot_by_hand


def check_everything(fragment: Fragment) -> None:
    """Every element and every slot of a fragment, and the three kinds of index."""
    seen = {}
    for element in elements(fragment):
        for replica in range(fragment.replication):
            slot = slot_by_hand(fragment, element, replica)
            assert fragment.thread_of(element, replica) == slot[0] < fragment.num_threads
            assert fragment.register_of(element) == slot[1] < fragment.num_registers
            assert fragment.element_of(*slot) == element
            assert fragment.in_bounds(*slot) is True
            seen[slot] = element
    assert len(seen) == prod(fragment.shape) * fragment.replication
    thread, register = np.indices((fragment.num_threads, fragment.num_registers))
    inside = fragment.in_bounds(thread, register)
    assert inside.shape == thread.shape and inside.sum() == len(seen)
    found = [np.broadcast_to(i, thread.shape) for i in fragment.element_of(thread, register)]
    for (t, r), element in seen.items():
        assert tuple(int(i[t, r]) for i in found) == element
    for t, r in list(np.argwhere(~inside))[:20]:
        beyond = fragment.element_of(int(t), int(r))
        assert any(i >= n for i, n in zip(beyond, fragment.shape, strict=True))
        assert all(i < n for i, n in zip(beyond, fragment.covers, strict=True))


@pytest.mark.parametrize("seed", range(BRUTE_CASES))
def test_brute_force(seed: int) -> None:
    check_everything(random_fragment(random.Random(seed), limit=400))


@PROFILE
@given(st.integers(0, 10**9))
def test_inverse_in_numpy(seed: int) -> None:
    fragment = random_fragment(random.Random(seed))
    thread, register = np.indices((fragment.num_threads, fragment.num_registers))
    element = fragment.element_of(thread, register)
    copies = fragment.replication
    threads = [np.broadcast_to(fragment.thread_of(element, c), thread.shape) for c in range(copies)]
    assert (np.stack(threads) == thread).any(axis=0).all()
    assert (fragment.register_of(element) == register).all()


@PROFILE
@given(st.integers(0, 10**9))
def test_expressions_give_the_same_numbers(seed: int) -> None:
    rng = random.Random(seed)
    fragment = random_fragment(rng)
    names = [f"i{k}" for k in range(fragment.rank)]
    element = tuple(rng.randrange(n) for n in fragment.shape)
    replica = rng.randrange(fragment.replication)
    at = dict(zip(names, element, strict=True), r=replica)
    symbols = [Expr(name) for name in names]
    thread, register = fragment.thread_of(symbols, Expr("r")), fragment.register_of(symbols)
    numbers = [x.at(**at) if isinstance(x, Expr) else x for x in (thread, register)]
    assert numbers == list(slot_by_hand(fragment, element, replica))
    back = fragment.element_of(Expr("t"), Expr("s"))
    slot = {"t": numbers[0], "s": numbers[1]}
    assert tuple(x.at(**slot) if isinstance(x, Expr) else x for x in back) == element


@PROFILE
@given(st.integers(0, 10**9))
def test_composition_against_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    inner = random_fragment(rng, limit=60)
    inner = inner.with_shape(inner.covers)
    rank = inner.rank
    times = [rng.choice((1, 2, 3)) for _ in range(rank)]
    order = rng.sample(range(rank), rng.randint(0, rank))
    over_registers, over_threads = (
        inner.repeat(*times, order=order),
        inner.spatial(*times, order=order),
    )
    fastest = order + [k for k in reversed(range(rank)) if k not in order]
    for element in elements(over_registers)[:: max(1, prod(inner.shape) // 20)]:
        low = tuple(i % n for i, n in zip(element, inner.shape, strict=True))
        high = [i // n for i, n in zip(element, inner.shape, strict=True)]
        number, weight = 0, 1
        for k in fastest:
            number, weight = number + high[k] * weight, weight * times[k]
        thread, register = inner.thread_of(low), inner.register_of(low)
        assert over_registers.thread_of(element) == thread
        assert over_registers.register_of(element) == register + number * inner.num_registers
        assert over_threads.thread_of(element) == thread + number * inner.num_threads
        assert over_threads.register_of(element) == register


@PROFILE
@given(st.integers(0, 10**9))
def test_product(seed: int) -> None:
    rng = random.Random(seed)
    inner = random_fragment(rng, limit=30)
    inner = inner.with_shape(inner.covers)
    outer = random_fragment(rng, limit=30)
    while outer.rank != inner.rank:
        outer = random_fragment(rng, limit=30)
    if outer.is_padded and inner.is_padded:
        return
    whole = inner.product(outer)
    assert whole.replication == inner.replication * outer.replication
    for element in elements(whole)[::7]:
        low = tuple(i % n for i, n in zip(element, inner.shape, strict=True))
        high = tuple(i // n for i, n in zip(element, inner.shape, strict=True))
        for c in range(whole.replication):
            outer_c, inner_c = divmod(c, inner.replication)
            thread = inner.thread_of(low, inner_c) + inner.num_threads * outer.thread_of(
                high, outer_c
            )
            assert whole.thread_of(element, c) == thread
        register = inner.register_of(low) + inner.num_registers * outer.register_of(high)
        assert whole.register_of(element) == register


@PROFILE
@given(st.integers(0, 10**9))
def test_reduce_keeps_the_threads_that_took_part(seed: int) -> None:
    rng = random.Random(seed)
    fragment = random_fragment(rng, limit=300)
    axis = rng.randrange(-fragment.rank, fragment.rank)
    place = axis % fragment.rank
    result, kept = fragment.reduce(axis), fragment.reduce(axis, keepdim=True)
    assert result.shape == fragment.shape[:place] + fragment.shape[place + 1 :]
    assert kept.shape[place] == 1 and kept.drop_axis(place) == result
    assert result.num_threads == fragment.num_threads
    padded = fragment.with_shape(
        tuple(
            c if k == place else n
            for k, (n, c) in enumerate(zip(fragment.shape, fragment.covers, strict=True))
        )
    )
    for element in elements(result):
        holders = {result.thread_of(element, c) for c in range(result.replication)}
        sources = {
            padded.thread_of((*element[:place], i, *element[place:]), c)
            for i in range(padded.shape[place])
            for c in range(fragment.replication)
        }
        assert holders == sources
    # Registers keep their order and close up.
    registers = sorted({result.register_of(e) for e in elements(result.with_shape(result.covers))})
    assert registers == list(range(result.num_registers))


@PROFILE
@given(st.integers(0, 10**9))
def test_contiguous_against_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    fragment = random_fragment(rng, limit=300)
    if rng.random() < 0.7:
        fragment = fragment.product(Fragment.blocked((1,) * fragment.rank, 1))
    axis = rng.randrange(fragment.rank)
    threads, registers = tables(fragment)
    lines = np.moveaxis(registers, axis, -1).reshape(-1, fragment.shape[axis])
    owners = np.moveaxis(threads[..., 0], axis, -1).reshape(lines.shape)
    width = fragment.contiguous(axis)

    def holds(v: int) -> bool:
        if lines.shape[1] % v:
            return False
        r, t = lines.reshape(-1, v), owners.reshape(-1, v)
        runs = (r == r[:, :1] + np.arange(v)) & (t == t[:, :1])
        return bool(runs.all()) and not (r[:, 0] % v).any()

    assert holds(width)
    # On a padded axis digits cut away by the shape can make wider runs look real.
    if not fragment.is_padded:
        assert not holds(2 * width)


@PROFILE
@given(st.integers(0, 10**9))
def test_normalized_and_transposed_are_equivalent(seed: int) -> None:
    rng = random.Random(seed)
    fragment = random_fragment(rng, limit=300)
    assert equivalent(fragment, fragment.normalized())
    perm = rng.sample(range(fragment.rank), fragment.rank)
    moved = fragment.transpose(perm)
    back = moved.transpose([perm.index(k) for k in range(fragment.rank)])
    assert back == fragment
    element = tuple(rng.randrange(n) for n in fragment.shape)
    assert moved.thread_of([element[k] for k in perm]) == fragment.thread_of(element)
    assert fragment.insert_axis(0).drop_leading() == fragment


SHAPES = [
    (176,), (96,), (48,), (100,), (1,), (7,), (128, 176), (64, 96), (100, 100), (1, 64),
    (3, 5, 7), (2, 3, 4, 5), (128, 128), (64, 1), (1, 1), (5, 176),
]  # fmt: skip


@pytest.mark.parametrize("threads", [1, 32, 128, 96, 384])
@pytest.mark.parametrize("vector", [1, 4, 8])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_blocked(shape: tuple[int, ...], threads: int, vector: int) -> None:
    fragment = Fragment.blocked(shape, threads, vector)
    assert fragment.shape == shape and fragment.num_threads == threads
    wanted = int(np.gcd(shape[-1], vector))
    assert fragment.contiguous() >= wanted & -wanted
    where, registers = tables(fragment)
    slots = where * fragment.num_registers + registers[..., None]
    assert len(np.unique(slots)) == slots.size
    # Exact whenever the vectors can be dealt out evenly by axis.
    if all(n & (n - 1) == 0 for n in shape) and threads in (1, 32, 128):
        assert not fragment.is_padded


def test_blocked_examples() -> None:
    tile = Fragment.blocked((128, 64), 128, 8)
    assert tile.num_registers == 64
    assert [tile.thread_of((0, j)) for j in (0, 7, 8, 63)] == [0, 0, 1, 7]
    assert tile.thread_of((1, 0)) == 8 and tile.thread_of((16, 0)) == 0
    assert Fragment.blocked((32,), 128).replication == 4
    assert Fragment.blocked((100,), 128).covers == (128,)
    wide = Fragment.blocked((128, 176), 128, 8)
    assert not wide.is_padded and wide.num_registers == 176 and wide.contiguous() == 8


def test_long_vectors_and_scalars() -> None:
    scalar = Fragment.blocked((), 64)
    assert scalar.thread_of(()) == 0 and scalar.thread_of((), 5) == 5
    assert scalar.num_registers == 1 and scalar.element_of(63, 0) == ()
    assert Fragment.blocked((64,), 4).reduce(0).replication == 4


@pytest.mark.parametrize(
    ("axes", "replicas", "text"),
    [
        (((Digit(4, "thread", 2),),), (), "axis 0, digit 4 to thread (stride 2)"),
        (((Digit(4, "thread", 1), Digit(2, "thread", 2)),), (), "overlaps"),
        (((Digit(4, "register", 1), Digit(2, "register", 8)),), (), "gap"),
        (((Digit(4, "thread", 1),),), ((2, 3),), "replica 2"),
        (((Digit(2, "register", 1),),), (), "cover 2"),
    ],
)
def test_malformed(axes: tuple, replicas: tuple, text: str) -> None:
    with pytest.raises(TileValueError, match=text.replace("(", r"\(").replace(")", r"\)")) as info:
        Fragment((4,), axes, replicas)
    assert info.value.code == "TL1301"


def test_wrong_arguments() -> None:
    tile = Fragment.blocked((4, 4), 4)
    padded = Fragment.blocked((5,), 4)
    for wrong in (
        lambda: tile.repeat(2),
        lambda: tile.repeat(2, 0),
        lambda: tile.repeat(1, 2, order=2),
        lambda: tile.repeat(1, 2, order=(0, -2)),
        lambda: padded.repeat(2),
        lambda: padded.spatial(2),
        lambda: tile.product(padded),
        lambda: tile.transpose((0, 0)),
        lambda: tile.with_shape((4, 5)),
        lambda: tile.reduce(2),
        lambda: tile.drop_axis(0),
        lambda: tile.replicate(0),
        lambda: tile.insert_axis(3),
        lambda: Fragment.blocked((0,), 4),
        lambda: Digit(2, "warp", 1),  # type: ignore[arg-type]
        lambda: Digit(0, "thread", 1),
    ):
        with pytest.raises(TileValueError):
            wrong()


def test_text() -> None:
    tile = Fragment.blocked((128, 128), 128)
    assert str(tile) == "Fragment(128x128 over 128 threads x 128 registers)"
    lines = Fragment.blocked((100,), 256).describe().splitlines()
    assert lines[0] == "Fragment(100 over 256 threads x 1 registers, 2 copies, padded to 128)"
    assert "128 to thread (stride 1)" in lines[1] and "2 copies" in lines[2]
