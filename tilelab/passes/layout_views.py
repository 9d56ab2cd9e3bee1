"""Layouts of views: buffers that share one storage get layouts that name the same bytes.

In shared memory the member that an instruction wants laid out decides (the others see its bytes);
where two members want different things a preference gives way. Fragments share their registers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilelab.errors import TileNotSupported
from tilelab.ir import Alloc, Buffer, Kernel, Scope, walk
from tilelab.layout import (
    Fragment,
    MapLayout,
    SharedLayout,
    ViewLayout,
    reshaped,
    row_major,
    seen_as,
)

Entry = tuple[Buffer, Any, str]


class Views:
    """The buffers of a kernel that share storage with another one."""

    def __init__(self, buffers: Iterable[Buffer]) -> None:
        groups: dict[int, list[Buffer]] = {}
        for buffer in buffers:
            members = groups.setdefault(id(buffer.storage), [])
            if not any(m is buffer for m in members):
                members.append(buffer)
        self.groups = [g for g in groups.values() if len(g) > 1]
        self._of = {id(b): g for g in self.groups for b in g}

    @classmethod
    def of(cls, kernel: Kernel) -> Views:
        """The views that a kernel allocates."""
        return cls(n.buffer for n in walk(kernel) if isinstance(n, Alloc))

    def others(self, buffer: Buffer) -> list[Buffer]:
        """Buffers over the same storage."""
        return [b for b in self._of.get(id(buffer), ()) if b is not buffer]

    def follow(self, entry: Entry) -> Iterable[Entry]:
        """The layouts that a fragment's layout gives to the views of its registers.

        Raises TileNotSupported (TL1771) when the digits cannot be cut as a view needs it.
        """
        buffer, layout, _ = entry
        if buffer.scope is not Scope.FRAGMENT:
            return
        for other in self.others(buffer):
            seen = reshaped(layout, other.static_shape) if isinstance(layout, Fragment) else None
            if seen is None:
                raise TileNotSupported(
                    f"{other.name} views the fragment {buffer.name}, whose layout {layout} cannot "
                    f"be seen as {other.static_shape}",
                    code="TL1771",
                    loc=other.loc,
                    hint="copy it to a shared buffer and view that one",
                )
            yield other, seen, f"a view of {buffer.name}"

    def admits(self, buffer: Buffer, layout: Any) -> bool:
        """Whether the fragments that view `buffer` can see this layout of it."""
        return buffer.scope is not Scope.FRAGMENT or all(
            isinstance(layout, Fragment) and reshaped(layout, other.static_shape) is not None
            for other in self.others(buffer)
        )

    def common(self, buffer: Buffer, threads: int, vector: int) -> Fragment:
        """A layout of a fragment that all its views can see, over so many threads."""
        shapes = [buffer.static_shape, *(o.static_shape for o in self.others(buffer))]
        return seen_as(shapes, threads, vector)

    def settle_shared(self, buffers: dict[int, Entry], fixed: set[int]) -> None:
        """Give every shared view a layout that follows from the member that decides.

        `buffers` (id -> entry) is changed in place; `fixed` holds the ids of buffers whose layout
        an instruction demands. Raises TileNotSupported (TL1772) when two demands disagree.
        """
        for group in self.groups:
            if group[0].scope is Scope.SHARED:
                _settle(group, buffers, fixed)


def _settle(group: list[Buffer], buffers: dict[int, Entry], fixed: set[int]) -> None:
    wanted = sorted((b for b in group if id(b) in buffers), key=lambda b: id(b) not in fixed)
    for leader in wanted:
        entries = _following(leader, buffers[id(leader)][1], group)
        if entries is not None:
            break
        if id(leader) in fixed:
            raise _torn(leader, group)
    else:
        for buffer in group:
            buffers.pop(id(buffer), None)
        return
    for entry in entries:
        known = buffers.get(id(entry[0]))
        if known is not None and id(entry[0]) in fixed and not _same(known[1], entry[1]):
            raise _torn(leader, group)
        if known is None or not _same(known[1], entry[1]):
            buffers[id(entry[0])] = entry


def _following(leader: Buffer, layout: Any, group: list[Buffer]) -> list[Entry] | None:
    """Layouts of the others when `leader` has `layout`; None when that tears an element apart."""
    if not isinstance(layout, SharedLayout | MapLayout):
        return None
    entries: list[Entry] = []
    for other in group:
        if other is leader:
            continue
        try:
            seen: Any = ViewLayout(layout, other.static_shape, other.dtype.bits)
        except ValueError:
            return None
        plain = row_major(other.static_shape, other.dtype.bits)
        entries.append((other, plain if _same(plain, seen) else seen, f"a view of {leader.name}"))
    return entries


def _same(a: Any, b: Any) -> bool:
    """Whether two layouts put every element in the same place."""
    same_size = (a.shape, a.num_bytes) == (b.shape, b.num_bytes)
    return same_size and bool((a.offsets == b.offsets).all())


def _torn(leader: Buffer, group: list[Buffer]) -> TileNotSupported:
    names = ", ".join(b.name for b in group)
    return TileNotSupported(
        f"the views {names} share one storage and need different layouts of it",
        code="TL1772",
        loc=leader.loc,
        hint="copy one of them to a buffer of its own",
    )
