"""What wrong values tell: which terms a sum holds, where else they belong, what they were made of.

A guess is only made where the numbers show it: the same explains several elements. Hides the
guesses and the order in which they are tried.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

from judge.compare import ULP
from judge.seen import Index, Seen, positions, slack, some_wrong

_MOST_REPEATS, _FAR = 1024, 64
_TILES = (16, 32, 64, 128, 256)


def explain(seen: Seen) -> str:
    """One sentence on how the values came about; empty where none fits."""
    return _terms(seen) or _moved(seen) or _in_place_of(seen) or _narrow(seen)


def _in_place_of(seen: Seen) -> str:
    """One input that is read where another one should be."""
    names = [spec.name for spec in seen.task.inputs]
    for n, m in permutations(range(len(names)), 2):
        if seen.inputs[n].shape == seen.inputs[m].shape:
            made = seen.task.reference(
                *(seen.inputs[m if k == n else k] for k in range(len(names)))
            )
            slack = seen.allowed + ULP[seen.task.output.dtype] * made.abs()
            if bool(((made - seen.got).abs() <= 2 * slack).all()):
                return f"{names[m]} is read in place of {names[n]}"
    return ""


def _narrow(seen: Seen) -> str:
    """Values that a narrower type holds exactly, as near as that type can come."""
    import torch

    sums = seen.task.reduction(seen.sizes) > 1  # which are rounded on their way, too
    most = float(seen.reference.abs().max())
    for name in ("int32",) if sums else ("int32", "bfloat16", "float16"):
        coarse = ULP.get(name, 2 / max(most, 1.0))
        exact = (seen.got.to(getattr(torch, name)).double() == seen.got).all() and seen.got.any()
        near = ((seen.got - seen.reference).abs() <= 4 * coarse * most).all()
        if bool(exact and (near or sums)) and coarse > ULP[seen.task.output.dtype]:
            return f"rounded to {name}: compute and store in {seen.task.output.dtype}"
    return ""


def inaccurate(seen: Seen) -> str:
    """That a result is near and no nearer, with the buffers that may be to blame."""
    said = "close, but less accurate than float32: compute and accumulate in float32"
    if not seen.halves:
        return said
    verb = "is a buffer" if len(seen.halves) == 1 else "are buffers"
    return f"{said} ({', '.join(seen.halves[:3])} {verb} of 16-bit floats)"


def _terms(seen: Seen) -> str:
    """Which terms of a sum are in it, where the same answer holds for several elements."""
    task, samples = seen.task, some_wrong(seen)
    if task.terms is None or task.reduction(seen.sizes) < 2 or len(samples) < 2:
        return ""
    rows = [(task.terms(i, *seen.inputs), float(seen.got[i]), slack(seen, i)) for i in samples]
    more = [got - float(terms.sum()) for terms, got, _ in rows]
    same = all(abs(m - more[0]) <= r[2] for m, r in zip(more, rows, strict=True))
    if same and abs(more[0]) > _FAR * max(r[2] for r in rows):
        return f"every sum is off by {more[0]:.6g}: was the buffer cleared (T.clear) before it?"
    return _whole_sum(rows) or _part_of_sum(seen, rows) or _misread(seen, samples)


def _whole_sum(rows: list[tuple[Any, float, float]]) -> str:
    """All terms, and not their sum."""
    guesses: list[tuple[Callable[[Any], Any], str]] = [
        (lambda t: t.mean(), "the mean of the terms: their sum divided by how many there are"),
        (lambda t: t.max(), "the largest term, and not the sum of all"),
        (lambda t: t.abs().sum(), "the sum of the terms' absolute values"),
        (lambda t: -t.sum(), "the sum with the opposite sign"),
        (lambda t: (t * t).sum(), "the sum of the terms' squares"),
    ]
    for compute, said in guesses:
        if all(abs(float(compute(t)) - got) <= allowed for t, got, allowed in rows):
            return f"the result is {said}"
    return ""


def _part_of_sum(seen: Seen, rows: list[tuple[Any, float, float]]) -> str:
    first, last, again = set[int](), set[int](), set[int]()
    for number, (terms, got, allowed) in enumerate(rows):
        sums = _sums(terms)
        near = positions((sums - got).abs() <= allowed)
        far = positions((sums[-1] - sums - got).abs() <= allowed)
        often = positions((_repeated(sums) - got).abs() <= allowed)
        first, last, again = (
            (near, far, often) if not number else (first & near, last & far, again & often)
        )
    count = len(rows[0][0])
    if ends := first - {0, count}:
        end = max(ends)
        return (f"the sum holds the first {end}{named(seen, end)} of {count} terms: the loop or a "
                "guard ends too early (T.ceildiv rounds up)")  # fmt: skip
    if begins := last - {0, count}:
        begin = min(begins)
        return (f"the sum holds the last {count - begin} of {count} terms: what was added before "
                "is cleared or overwritten in the loop, or the loop begins too late")  # fmt: skip
    if tiles := again - {0, count}:
        return (f"the first {min(tiles)} of {count} terms are added again for each tile: the index "
                "lacks the number of the step, or what it is multiplied by")  # fmt: skip
    return "nothing was added: every sum is 0" if first else ""


def _sums(terms: Any) -> Any:
    """Sums of the first 0, 1, .. terms."""
    import torch

    return torch.cat([terms.new_zeros(1), terms.cumsum(0)])


def _repeated(sums: Any) -> Any:
    """What the first q terms give for each q, added for every tile of q (the last one shorter)."""
    import torch

    count = len(sums) - 1
    q = torch.arange(1, count + 1)
    times, rest = count // q, count % q
    made = times * sums[q] + sums[rest]
    made[times > _MOST_REPEATS] = math.nan
    return torch.cat([sums.new_full((1,), math.nan), made])


def named(seen: Seen, number: int) -> str:
    """A size of the case that is this number: an exchanged limit is one."""
    name = next((k for k, v in seen.sizes.items() if v == number), "")
    return f" ({name})" if name else ""


def _misread(seen: Seen, samples: list[Index]) -> str:
    """An input that was read with its axes exchanged, or one element further or before."""
    assert seen.task.terms is not None
    for number, spec in enumerate(seen.task.inputs):
        for tensor, said in _readings(seen.inputs[number]):
            inputs = [tensor if n == number else t for n, t in enumerate(seen.inputs)]
            try:
                fits = all(
                    abs(float(seen.task.terms(i, *inputs).sum() - seen.got[i])) <= slack(seen, i)
                    for i in samples
                )
            except (IndexError, RuntimeError):  # not square: the exchanged one has no such terms
                continue
            if fits:
                return f"{spec.name} is read {said}"
    return ""


def _readings(tensor: Any) -> Iterator[tuple[Any, str]]:
    """A matrix as wrong indices read it; beyond its ends are zeros."""
    import torch

    if tensor.dim() != 2:
        return
    yield tensor.T, "with its axes exchanged: row and column of the index"
    for axis, what in enumerate(("row", "column")):
        for way, where in ((-1, "further"), (1, "before")):
            moved = tensor.roll(way, axis)
            moved.select(axis, -1 if way < 0 else 0).zero_()
            yield moved, f"one {what} {where}: is there a 1 too many in its index?"
        for tile in _TILES:
            again = tensor.index_select(axis, torch.arange(tensor.shape[axis]) % tile)
            yield again, (f"in every step at its first {tile} {what}s: its index lacks the step's "
                          "number, or the copy stands outside of the loop")  # fmt: skip


def _moved(seen: Seen) -> str:
    """Right values at the wrong places: the same way off along one axis, or axes exchanged."""
    samples = some_wrong(seen)
    if len(samples) < 2:
        return ""
    ways = Counter(way for at in samples for way in _ways(seen, at))
    (axis, way), times = max(ways.items(), key=lambda w: w[1], default=((0, 0), 0))
    if times >= max(len(samples) - 1, 2):  # one may lie at an edge, where it is another way
        index = next(at for at in samples if (axis, way) in _ways(seen, at))
        there = [at + way * (a == axis) for a, at in enumerate(index)]
        return (f"right values at wrong places: {list(index)} holds what belongs to {there}, and "
                "so on, always as far away: is the number of a block or step to be multiplied by "
                "the tile's extent?")  # fmt: skip
    if seen.got.dim() == 2 and all(_is_at(seen, at, at[::-1]) for at in samples):
        return "the output is transposed: row and column of its index are exchanged"
    for axis, extent in enumerate(seen.got.shape):
        turned = [(*at[:axis], extent - 1 - at[axis], *at[axis + 1 :]) for at in samples]
        if all(_is_at(seen, at, there) for at, there in zip(samples, turned, strict=True)):
            return f"right values in the opposite order: element 0 belongs where {extent - 1} is"
    got, wanted = (x.flatten().sort().values for x in (seen.got, seen.reference))
    if bool(((got - wanted).abs() <= 2 * seen.allowed.max()).all()):
        return "every value is right, and stands elsewhere: look at the index of the store"
    return ""


def _ways(seen: Seen, index: Index) -> set[tuple[int, int]]:
    """Axes along which an element's value is found, and how far from it."""
    found: set[tuple[int, int]] = set()
    for axis, at in enumerate(index):
        line = seen.reference[(*index[:axis], slice(None), *index[axis + 1 :])]
        near = (line - seen.got[index]).abs() <= slack(seen, index)
        found |= {(axis, place - at) for place in positions(near) - {at}}
    return found


def _is_at(seen: Seen, index: Index, other: Index) -> bool:
    """Whether an element holds what belongs to another place."""
    if any(at >= extent for at, extent in zip(other, seen.reference.shape, strict=True)):
        return False
    return abs(float(seen.got[index] - seen.reference[other])) <= slack(seen, index)
