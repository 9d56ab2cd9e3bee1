"""The likeliest mistake behind a wrong output, from which elements are wrong and what they hold.

Runs in the runner, after a case has failed. Hides the guesses and the order in which they are
tried (`values.py` has those from values).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from judge.kernels import KernelTask
from judge.seen import Seen, is_missing
from judge.values import explain, inaccurate, named

_FEW = 2
"""So few elements at the end are left out by a guard; a tile that is missing has more."""
_NEAR = 64
"""Errors of so many times what is allowed come from rounding, where all are as small."""
_WRITERS = 256
"""Of so many elements, far apart, the blocks that wrote them are looked at."""
_LONG = 4096


@dataclass(frozen=True)
class Cause:
    """One sentence for the student; whether the line to look at is the launch, and not the one
    that writes the output."""

    text: str
    at_launch: bool = False


def likely_cause(seen: Seen) -> Cause:
    """The likeliest mistake."""
    if not is_missing(seen.difference):
        return Cause(_wrong(seen))
    if seen.block_of(seen.difference.index) is None:
        return _missing(seen)
    name = seen.task.output.name
    return Cause(f"NaN was stored: {name} is NaN before the call, and `{name}[..] += x` reads it; "
                 "store with `=`, and sum in a buffer of the kernel")  # fmt: skip


# -- nothing was written --------------------------------------------------------------------------


def _missing(seen: Seen) -> Cause:
    d, name = seen.difference, seen.task.output.name
    if d.wrong == d.total and seen.stores:
        return Cause(f"{name} is stored to, and never where it has an element: is the guard ever "
                     "true, and do the indices begin at 0 (block 0, step 0)?")  # fmt: skip
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
    if size := named(seen, end).strip():
        return Cause(
            said + f"there are {end} {size} {what}: is a guard or the grid for another axis?"
        )
    if overlap := _overlap(seen, axis, end, what):
        return Cause(said + overlap)
    owners = _owners(seen)
    if 0 < 2 * owners <= seen.blocks:
        more = ", or the axes of the grid are exchanged" if seen.got.dim() > 1 else ""
        return Cause(said + f"the {seen.blocks} blocks write the same elements: the index lacks "
                     f"the block's number, or what it is multiplied by{more}")  # fmt: skip
    if 0 < owners < seen.blocks:
        return Cause(said + f"{owners} of {seen.blocks} blocks write: a guard leaves the "
                     "others out; compare with the extent itself")  # fmt: skip
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


def _overlap(seen: Seen, axis: int, end: int, what: str) -> str:
    """That each block begins inside of what the one before has written."""
    if end > _LONG:
        return ""
    at = [tuple(i * (a == axis) for a in range(seen.got.dim())) for i in range(end)]
    runs = Counter(seen.block_of(index) for index in at)
    tile, step = max(runs.values()), min(runs.values())
    if len(runs) < 3 or None in runs or sorted(runs.values())[-2] != step or step == tile:
        return ""
    return f"each block writes {tile} {what}, the next one begins only {step} further"


def _owners(seen: Seen) -> int:
    """How many blocks wrote elements that nobody wrote after them; 0 where that is not known."""
    written = (~seen.got.isnan()).nonzero().tolist()
    step = max(len(written) // _WRITERS, 1)
    enough = 2 * seen.blocks <= len(written[::step])
    return len({seen.block_of(tuple(index)) for index in written[::step]} - {None}) * enough


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
    found = explain(seen)
    if found:
        return found
    if bool(((seen.got - seen.reference).abs() <= _NEAR * seen.allowed).all()):
        return inaccurate(seen)
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
