"""The likeliest mistake behind a wrong output, from which elements are wrong and what they hold.

Runs in the runner, after a case has failed. Hides the guesses and the order in which they are
tried. A guess that names a mistake is only made where the numbers show it: the same range of terms
explains several elements, or their values stand elsewhere in the right result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from judge.compare import ULP, Difference
from judge.kernels import KernelTask, Sizes

_FEW = 2
"""So few elements at the end are left out by a guard; a tile that is missing has more."""
_NEAR = 64
"""Errors of so many times what is allowed come from rounding, where all are as small."""
_SAMPLES = 4
_WRITERS = 256
"""Of so many elements, far apart, the blocks that wrote them are looked at."""
_MOST_REPEATS = 1024
Index = tuple[int, ...]


@dataclass(frozen=True)
class Seen:
    """What is known of a wrong output.

    inputs, got, reference, allowed: float64 tensors. blocks: of the launch, 0 where not known.
    threads: of a block. block_of: which block wrote an element, None for none. halves: names of
    the kernel's buffers of 16-bit floats.
    """

    task: KernelTask
    sizes: Sizes
    difference: Difference
    inputs: list[Any]
    got: Any
    reference: Any
    allowed: Any
    blocks: int = 0
    threads: int = 0
    block_of: Callable[[Index], int | None] = lambda index: None
    halves: tuple[str, ...] = ()


def is_missing(d: Difference) -> bool:
    """Whether all that is wrong is that nothing was written."""
    return d.unwritten == d.wrong


@dataclass(frozen=True)
class Cause:
    """One sentence for the student; whether the line to look at is the launch, and not the one
    that writes the output."""

    text: str
    at_launch: bool = False


def likely_cause(seen: Seen) -> Cause:
    """The likeliest mistake."""
    return _missing(seen) if is_missing(seen.difference) else Cause(_wrong(seen))


# -- nothing was written --------------------------------------------------------------------------


def _missing(seen: Seen) -> Cause:
    d, name = seen.difference, seen.task.output.name
    if d.wrong == d.total:
        return Cause(
            f"nothing was written to {name} (it was filled with NaN before the call): does "
            f"a statement store to it, such as T.copy(tile, {name}[..]), from and to?"
        )
    ends = d.last == tuple(e - 1 for e in seen.task.output.extents(seen.sizes))
    if d.wrong <= _FEW and ends:
        return Cause(
            f"nothing was written at {list(d.index)}, the end: a guard such as `i < N - 1` leaves "
            "it out (`i < N` keeps it), or the grid ends a tile too early"
        )
    for axis, whole in enumerate(_slices(seen)):
        if whole is not None:
            return _along(seen, axis, whole)
    return Cause(f"elements were never written: the grid{_of_blocks(seen)} or a guard leaves them "
                 "out", at_launch=True)  # fmt: skip


def _slices(seen: Seen) -> Iterator[Any]:
    """For each axis: which of its slices nobody wrote, where that is all that is missing."""
    empty = seen.got.isnan()
    for axis in range(empty.dim()):
        others = [a for a in range(empty.dim()) if a != axis]
        whole = empty.all(dim=others) if others else empty
        rest = empty & ~whole.view([-1 if a == axis else 1 for a in range(empty.dim())])
        yield whole if bool(whole.any()) and not bool(rest.any()) else None


def _along(seen: Seen, axis: int, whole: Any) -> Cause:
    """Why slices of one axis are missing: from one on, or again and again."""
    starts = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(whole.tolist())) if a != b)]
    what = _what(seen.task, axis)
    if bool(whole[0]):
        return Cause(f"the first {starts[1]} {what} are never written: the indices begin too late")
    if len(starts) == 2:
        return _from_on(seen, axis, starts[1], what)
    written, period = starts[1], starts[2]
    if written == 1:
        return Cause(
            f"of {period} {what} only one is written: the numbers of the block and of the element "
            "are exchanged in the index, or a factor is wrong"
        )
    return Cause(
        f"{what} {written} to {period - 1} are not written, {period} is again: a block (or loop) "
        f"covers {written}, and the next one begins at {period}"
    )


def _from_on(seen: Seen, axis: int, end: int, what: str) -> Cause:
    """Why nothing is written from the slice `end` on."""
    said = f"nothing was written from {list(seen.difference.index)} on: "
    if _overwritten(seen):
        more = ", or the axes of the grid are exchanged" if seen.got.dim() > 1 else ""
        return Cause(said + f"the {seen.blocks} blocks write the same elements: the index lacks "
                     f"the block's number, or what it is multiplied by{more}")  # fmt: skip
    if seen.blocks == 1 and seen.threads == end:
        return Cause(said + f"there is one block, and each of its {end} threads wrote one: launch "
                     "more blocks, or let T.Parallel spread a tile over the threads",
                     at_launch=True)  # fmt: skip
    if seen.task.reduction(seen.sizes) == 1 and end < seen.threads:
        return Cause(said + f"{end} of {seen.threads} threads wrote an element that exists: is the "
                     "wrong number multiplied by the size of the block?")  # fmt: skip
    if seen.blocks:
        return Cause(said + f"the grid{_of_blocks(seen)} covers {end} {what}: launch "
                     "T.ceildiv(extent, tile) blocks, which rounds up", at_launch=True)  # fmt: skip
    return Cause(said + "the grid ends too early (T.ceildiv rounds up), or all blocks write the "
                 "same elements", at_launch=True)  # fmt: skip


def _overwritten(seen: Seen) -> bool:
    """Whether blocks have written elements that others wrote after them."""
    written = (~seen.got.isnan()).nonzero().tolist()
    step = max(len(written) // _WRITERS, 1)
    owners = {seen.block_of(tuple(index)) for index in written[::step]} - {None}
    return 2 * seen.blocks <= len(written[::step]) and 0 < len(owners) < seen.blocks


def _of_blocks(seen: Seen) -> str:
    return f" of {seen.blocks} block{'s' if seen.blocks > 1 else ''}" if seen.blocks else ""


def _what(task: KernelTask, axis: int) -> str:
    """What the slices of an output's axis are called."""
    return (
        "elements" if len(task.output.shape) == 1 else ("rows", "columns", "slices")[min(axis, 2)]
    )


# -- something else was written -------------------------------------------------------------------


def _wrong(seen: Seen) -> str:
    d = seen.difference
    if d.unwritten:
        return _with_gaps(seen)
    found = _terms(seen) or _moved(seen)
    if found:
        return found
    if bool(((seen.got - seen.reference).abs() <= _NEAR * seen.allowed).all()):
        return _inaccurate(seen)
    ends = d.last == tuple(e - 1 for e in seen.task.output.extents(seen.sizes))
    if any(d.index) and ends and 2 * d.wrong < d.total:
        return "only a part up to the last element is wrong: look at the tail"
    if not bool(seen.got.any()):
        return "every element is 0: is what was computed ever read, or ever stored?"
    times = d.got / d.expected if d.expected else 0.0
    if abs(times) > 1.5 and abs(times - round(times)) < 1e-3:
        return "a whole multiple of what was expected: something is added more than once"
    if seen.task.reduction(seen.sizes) > 1:
        return ("terms are missing, or others were added: does the loop reach the last, incomplete "
                "tile, is the sum kept from tile to tile, and is each index the number of a block "
                "or step times the tile's extent?")  # fmt: skip
    return "computed from other elements, or with another formula"


def _with_gaps(seen: Seen) -> str:
    """Some elements are NaN, and others wrong."""
    first = tuple(int(i) for i in seen.got.isnan().nonzero()[0])
    if seen.blocks and seen.block_of(first) is None:
        return (f"{seen.difference.unwritten} elements, first {list(first)}, are never written, "
                "and others are wrong: are two indices, or the numbers of the blocks, exchanged "
                f"where {seen.task.output.name} is written?")  # fmt: skip
    return "NaN spreads from memory that nobody wrote: clear accumulators, load every tile"


def _inaccurate(seen: Seen) -> str:
    said = "close, but less accurate than float32: compute and accumulate in float32"
    if not seen.halves:
        return said
    verb = "is a buffer" if len(seen.halves) == 1 else "are buffers"
    return f"{said} ({', '.join(seen.halves[:3])} {verb} of 16-bit floats)"


def _samples(seen: Seen) -> list[Index]:
    """A few wrong elements, far apart."""
    bad = (~((seen.got - seen.reference).abs() <= seen.allowed)).nonzero().tolist()
    steps = max(len(bad) - 1, 1) / max(_SAMPLES - 1, 1)
    return [tuple(bad[round(i * steps)]) for i in range(min(_SAMPLES, len(bad)))]


def _slack(seen: Seen, index: Index) -> float:
    """How far from an element's value another right one may lie: both are rounded."""
    return float(seen.allowed[index] + ULP[seen.task.output.dtype] * seen.got[index].abs())


def _terms(seen: Seen) -> str:
    """Which terms of a sum are in it, where the same answer holds for several elements."""
    task, samples = seen.task, _samples(seen)
    if task.terms is None or task.reduction(seen.sizes) < 2 or len(samples) < 2:
        return ""
    rows = [(task.terms(i, *seen.inputs), float(seen.got[i]), _slack(seen, i)) for i in samples]
    return _whole_sum(rows) or _part_of_sum(seen, rows) or _exchanged(seen, samples)


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
        near = _positions((sums - got).abs() <= allowed)
        far = _positions((sums[-1] - sums - got).abs() <= allowed)
        often = _positions((_repeated(sums) - got).abs() <= allowed)
        first, last, again = (
            (near, far, often) if not number else (first & near, last & far, again & often)
        )
    count = len(rows[0][0])
    if ends := first - {0, count}:
        end = max(ends)
        return (f"the sum holds the first {end}{_named(seen, end)} of {count} terms: the loop or a "
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


def _positions(mask: Any) -> set[int]:
    return set(mask.nonzero().flatten().tolist())


def _named(seen: Seen, number: int) -> str:
    """A size of the case that is this number: an exchanged limit is one."""
    name = next((k for k, v in seen.sizes.items() if v == number), "")
    return f" ({name})" if name else ""


def _exchanged(seen: Seen, samples: list[Index]) -> str:
    """An input that was read with its axes exchanged."""
    assert seen.task.terms is not None
    for number, (tensor, spec) in enumerate(zip(seen.inputs, seen.task.inputs, strict=True)):
        if tensor.dim() != 2:
            continue
        inputs = [t.T if n == number else t for n, t in enumerate(seen.inputs)]
        try:
            fits = all(
                abs(float(seen.task.terms(i, *inputs).sum() - seen.got[i])) <= _slack(seen, i)
                for i in samples
            )
        except (IndexError, RuntimeError):  # not square: the exchanged one has no such terms
            continue
        if fits:
            return f"{spec.name} is read with its axes exchanged: row and column of the index"
    return ""


def _moved(seen: Seen) -> str:
    """Right values at the wrong places: the same way off along one axis, or axes exchanged."""
    samples = _samples(seen)
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
    return ""


def _ways(seen: Seen, index: Index) -> set[tuple[int, int]]:
    """Axes along which an element's value is found, and how far from it."""
    found: set[tuple[int, int]] = set()
    for axis, at in enumerate(index):
        line = seen.reference[(*index[:axis], slice(None), *index[axis + 1 :])]
        near = (line - seen.got[index]).abs() <= _slack(seen, index)
        found |= {(axis, place - at) for place in _positions(near) - {at}}
    return found


def _is_at(seen: Seen, index: Index, other: Index) -> bool:
    """Whether an element holds what belongs to another place."""
    if any(at >= extent for at, extent in zip(other, seen.reference.shape, strict=True)):
        return False
    return abs(float(seen.got[index] - seen.reference[other])) <= _slack(seen, index)
