"""TMA boxes in global memory: what they touch, races with other blocks, and with the threads of
their own: a load must come after a barrier and a proxy fence behind ordinary stores, an access
to what a TMA store writes after the full wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.ir import Buffer
from tilelab.sim import findings as f
from tilelab.sim.frame import Array, bits_differ
from tilelab.sim.global_order import (
    NEVER,
    Marks,
    block_of,
    clock_of,
    split_by,
    thread_of,
    with_read,
)
from tilelab.sim.speech import coordinates
from tilelab.target import WARP
from tilelab.thread import TensorMap

if TYPE_CHECKING:
    from tilelab.sim.tma import Transfer


def box_view(array: Array, tensor_map: TensorMap) -> Array:
    """The tensor with the map's axes, outermost first."""
    return array.transpose(tuple(reversed(tensor_map.axes)))


def overlap(start: Sequence[int], box: Sequence[int], shape: Sequence[int]) -> tuple[Any, Any]:
    """Slices (of the tensor, of the box) of the part of a box that lies inside."""
    inside: list[slice] = []
    within: list[slice] = []
    for first, extent, size in zip(start, box, shape, strict=True):
        low, high = max(first, 0), min(first + extent, size)
        high = max(high, low)
        inside.append(slice(low, high))
        within.append(slice(low - first, high - first))
    return tuple(inside), tuple(within)


def note(transfer: Transfer, stores: bool, data: Array | None = None, waited: bool = True) -> None:
    """Record the boxes of a transfer that takes effect now, and report races; `data` are the
    bytes that a store brings, `waited`: whether its thread has waited until it was complete."""
    group, tensor_map = transfer.group, transfer.tensor_map
    _note_values(transfer, stores)
    marks = group.order.marks(tensor_map.tensor) if group.findings.wants(f.RACE) else None
    if marks is None or (not stores and marks.reads is None):
        return
    thread, box = np.array([transfer.thread]), tuple(reversed(tensor_map.box))
    times: Any = 0
    if stores:
        times = group.clocks.own(transfer.rows, thread // WARP) if waited else NEVER
    stamps = group.order.stamp(
        group.numbers[transfer.rows], thread, times, (transfer.loc, True), by_tma=stores
    )
    array = box_view(group.arrays[tensor_map.tensor], tensor_map)
    writes = box_view(marks.writes, tensor_map)
    reads = None if marks.reads is None else box_view(marks.reads.last, tensor_map)
    earlier = [(box_view(m, tensor_map), what) for m, what in marks.earlier(reading=not stores)]
    for i, start in enumerate(transfer.coords[:, ::-1].tolist()):
        if group.dead[transfer.rows[i]]:
            continue
        inside, within = overlap(start, box, array.shape)
        mine = stamps[i]
        new = None
        if data is not None:
            new = np.ascontiguousarray(data[i]).view(array.dtype).reshape(box)[within]
        for old, what in earlier:
            _check(transfer, i, (array[inside], new), old[inside], mine, what, inside)
        _touched(marks, tensor_map, inside, stores)
        if stores:
            writes[inside] = mine
        elif reads is not None:
            reads[inside] = with_read(reads[inside], mine)


def _touched(marks: Marks, tensor_map: TensorMap, inside: Any, stores: bool) -> None:
    """What is kept of several writers, and of reads of the value that is there, after a box."""
    if marks.current is not None:
        box_view(marks.current, tensor_map)[inside] = not stores
    if stores and marks.writers.of is not None:
        box_view(marks.writers.of, tensor_map)[inside] = 0


def _note_values(transfer: Transfer, stores: bool) -> None:
    """Boxes that are stored have values from now on; those that are loaded should have."""
    group, tensor = transfer.group, transfer.tensor_map.tensor
    flags = group.written.flags(tensor)
    if flags is None:
        return
    view, box = box_view(flags, transfer.tensor_map), tuple(reversed(transfer.tensor_map.box))
    for row, start in zip(transfer.rows, transfer.coords[:, ::-1].tolist(), strict=True):
        inside, _ = overlap(start, box, view.shape)
        if group.dead[row]:
            continue
        if stores:
            view[inside] = True
        elif not view[inside].all() and group.findings.wants(f.UNINITIALISED):
            index = _element(transfer, inside, ~view[inside])
            text = f"a TMA load reads elements of {tensor.said} before they are written: "
            group.report(
                f.UNINITIALISED, text + "the tensor begins without values", transfer.loc,
                row=int(row), thread=transfer.warp * 32, buffer=tensor, index=index,
            )  # fmt: skip
            return


def before_load(transfer: Transfer) -> None:
    """Report a TMA load, about to be issued, of what TMA stores have not written yet, or of what
    threads have written without a barrier (or flag), or a proxy fence, in between."""
    _check_landed(transfer)
    group, tensor_map = transfer.group, transfer.tensor_map
    marks = group.order.marks(tensor_map.tensor) if group.findings.wants(f.RACE) else None
    if marks is None:
        return
    box = tuple(reversed(tensor_map.box))
    writes = box_view(marks.writes, tensor_map)
    thread = np.array([transfer.thread])
    for row, start in zip(transfer.rows, transfer.coords[:, ::-1].tolist(), strict=True):
        inside, _ = overlap(start, box, writes.shape)
        there, number = writes[inside], group.numbers[[row]]
        own, others = split_by(there, int(number[0]))
        if group.dead[row] or not len(own) + len(others):
            continue
        mine = int(group.order.stamp(number, thread, 0, (transfer.loc, True))[0, 0])
        if _unfenced(transfer, int(row), inside, there, own, mine):
            return
        if len(others) and _from_others(transfer, int(row), inside, there, others, mine):
            return


def _unfenced(
    transfer: Transfer, row: int, inside: Any, there: Array, on: Array, mine: int
) -> bool:
    """Report what threads of the same block wrote without a barrier or a proxy fence."""
    clocks = transfer.group.clocks
    own = there.reshape(-1)[on]
    at, writers = clocks.of(row), thread_of(own) // WARP
    late = clock_of(own) > clocks.now[at, transfer.warp, writers]
    bare = clock_of(own) > clocks.fence_known[at, writers]
    bad, what = (late, "a barrier") if late.any() else (bare, "fence.proxy.async")
    if not bad.any():
        return False
    _report(
        transfer, row, inside, there, int(on[int(bad.argmax())]), "a TMA load reads what threads "
        f"have written to {{name}}, without {what} in between", f.PROXY_HINT,
    )  # fmt: skip
    return True


def _from_others(
    transfer: Transfer, row: int, inside: Any, there: Array, on: Array, mine: int
) -> bool:
    """Report what other blocks wrote without an order that this thread knows of, or a proxy fence
    behind the writes."""
    order, group = transfer.group.order, transfer.group
    found, first = there.reshape(-1)[on], int(group.numbers[0])
    bad = order.unordered(found, np.array(mine), group.clocks, first)
    text, hint = "a TMA load reads elements of {name} which {who} has written in the same ", ""
    text += "launch"
    if not bad.any():
        bad = order.unfenced(found, mine, group.clocks, first)
        text = "a TMA load reads what threads of {who} have written to {name}, without "
        text, hint = text + "fence.proxy.async in between", f.PROXY_HINT
    if bad.any():
        _report(transfer, row, inside, there, int(on[int(bad.argmax())]), text, hint)
    return bool(bad.any())


def _report(
    transfer: Transfer, row: int, inside: Any, marks: Array, entry: int, text: str, hint: str = ""
) -> None:
    """A race of a box with one of earlier accesses `marks` to the part of it inside a tensor;
    `text` names the {name} of the tensor, and {who} made the access."""
    group, buffer, order = transfer.group, transfer.tensor_map.tensor, transfer.group.order
    mark, bad = int(marks.reshape(-1)[entry]), np.zeros(marks.shape, np.bool_)
    bad.reshape(-1)[entry] = True
    block = block_of(mark)
    who = "another block" if block is None else f"block {coordinates(block, group.grid)}"
    group.report(
        f.RACE, text.format(name=buffer.said, who=who), transfer.loc, row=row,
        thread=transfer.warp * WARP, buffer=buffer, index=_element(transfer, inside, bad),
        other=order.place(mark)[0], hint=hint or order.hint(mark),
    )  # fmt: skip


def _check_landed(transfer: Transfer) -> None:
    """Report a load from where TMA stores of the same block (or, where blocks know of each other,
    of any) are still to write."""
    group, buffer = transfer.group, transfer.tensor_map.tensor
    for store in group.landing if group.findings.wants(f.MISSING_WAIT) else ():
        if store.tensor_map.tensor is not buffer:
            continue
        near = store.rows == transfer.rows[:, None]
        for i, k in np.argwhere(near | group.order.told).tolist():
            row, its = transfer.rows[i], store.coords[k]
            if group.dead[row] or not _meet(transfer.tensor_map, transfer.coords[i], store, its):
                continue
            first = np.maximum(transfer.coords[i], its)  # of both boxes
            text = f"a TMA load reads {buffer.said} before the TMA store to it is complete"
            group.report(
                f.MISSING_WAIT, text, transfer.loc, row=int(row), thread=transfer.warp * WARP,
                buffer=buffer, index=_by_axis(transfer.tensor_map, first.tolist()), other=store.loc,
                hint=f.STORED_HINT,
            )  # fmt: skip
            return


def _meet(tensor_map: TensorMap, start: Array, other: Transfer, its: Array) -> bool:
    """Whether two boxes of a tensor have elements in common."""
    there = {
        axis: (first, extent)
        for axis, first, extent in zip(
            other.tensor_map.axes, its.tolist(), other.tensor_map.box, strict=True
        )
    }
    return all(
        there[axis][0] < first + extent and first < sum(there[axis])
        for axis, first, extent in zip(tensor_map.axes, start.tolist(), tensor_map.box, strict=True)
    )


def still_stored(
    transfers: Sequence[Transfer], buffer: Buffer, where: Sequence[Array], rows: Array | None
) -> Array | None:
    """Which elements (indices, with the block of the group that touches each) lie in boxes that
    TMA stores of their block have not written yet; None: none. No `rows`: those of any block."""
    bad: Array | None = None
    for transfer in transfers:
        tensor_map = transfer.tensor_map
        if tensor_map.tensor is not buffer:
            continue
        for row, start in zip(transfer.rows, transfer.coords.tolist(), strict=True):
            hit: Any = True if rows is None else rows == row
            for axis, first, extent in zip(tensor_map.axes, start, tensor_map.box, strict=True):
                hit = hit & (where[axis] >= first) & (where[axis] < first + extent)
            bad = hit if bad is None else bad | hit
    return bad


def _element(transfer: Transfer, inside: tuple[slice, ...], bad: Array) -> tuple[int, ...]:
    """The tensor's index of the first bad element of a box's part."""
    first = np.unravel_index(int(bad.argmax()), bad.shape)
    at = [part.start + int(i) for part, i in zip(inside, first, strict=True)]
    return _by_axis(transfer.tensor_map, at[::-1])


def _by_axis(tensor_map: TensorMap, innermost_first: Sequence[int]) -> tuple[int, ...]:
    """Coordinates in a box's order as an index of its tensor."""
    at = dict(zip(tensor_map.axes, innermost_first, strict=True))
    return tuple(at[axis] for axis in sorted(at))


def _check(
    transfer: Transfer, i: int, values: tuple[Array, Array | None], earlier: Array, mine: Array,
    what: str, inside: tuple[slice, ...],
) -> None:  # fmt: skip
    group = transfer.group
    first = int(group.numbers[0])
    bad = group.order.unordered(earlier, mine, group.clocks, first, copies=True)
    old, new = values
    if new is not None and bad.any():
        bad &= bits_differ(old, new)
    if bad.any():
        verb = "load reads" if new is None else "store writes"
        text = f"a TMA {verb} elements of {{name}} which {{who}} has {what} in the same launch"
        _report(transfer, int(transfer.rows[i]), inside, earlier, int(bad.argmax()), text)
