"""Layout explorer: fragments and shared tiles of a kernel, or made by hand, two side by side.

Hides how a layout expression is read, and what a picture of a layout needs of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from tilelab import layout as algebra
from tilelab.errors import TileError, TileValueError
from tilelab.ir import Scope
from tilelab.kernel import JITKernel
from tilelab.layout import Fragment, SharedLayout, Swizzle, TableFragment
from tilelab.passes.plan import LayoutDecision
from tilelab.views import (
    PATTERNS,
    FragmentView,
    SharedView,
    View,
    access_of,
    fragment_view,
    shared_view,
)
from tilelab.views.palette import lane_colours
from tilelab.widgets.panel import wish

MAX_ELEMENTS = 65_536  # 256 x 256: what a browser paints in well under a second
VECTORS = (1, 2, 4, 8, 16)
NAMES = {name: getattr(algebra, name) for name in algebra.__all__} | {"np": np}
"""What a layout expression may name, beside `shape`, `bits`, `threads` and the `layout` itself (as
it was given) of its buffer."""


@dataclass(frozen=True)
class Entry:
    """A layout with the buffer it is of; `expression` is what the reader edits."""

    name: str
    layout: Any
    dtype: str
    bits: int
    reason: str
    line: int | None
    expression: str
    given: Any  # what the expression's name `layout` stands for, however often it is edited

    def view(self) -> FragmentView | SharedView:
        """Its map."""
        if isinstance(self.layout, (Fragment, TableFragment)):
            return fragment_view(
                self.layout, buffer=self.name, dtype=self.dtype, reason=self.reason, line=self.line
            )
        return shared_view(
            self.layout, buffer=self.name, dtype=self.dtype, reason=self.reason, line=self.line
        )


def entry(name: str, layout: Any, *, dtype: str = "", bits: int = 0, reason: str = "",
          line: int | None = None) -> Entry:  # fmt: skip
    """A layout as the explorer lists it. TileValueError (TL1711) if it is none, or too large."""
    shape: Any = getattr(layout, "shape", None)
    if shape is None or not (hasattr(layout, "offsets") or hasattr(layout, "thread_of")):
        raise TileValueError(
            f"{name}={layout!r} is no layout",
            code="TL1711",
            hint="give a compiled kernel, or a Fragment or a shared layout of tilelab.layout",
        )
    size = prod(shape)
    if size > MAX_ELEMENTS:
        raise TileValueError(
            f"{name} has {size:,} elements, more than the {MAX_ELEMENTS:,} that are drawn",
            code="TL1711",
            hint="explore a part of it: a layout of fewer rows",
        )
    bits = bits or getattr(layout, "element_bits", 32)
    return Entry(name, layout, dtype or f"{bits}-bit", bits, reason, line, _expression(layout),
                 layout)  # fmt: skip


def undecided(kernel: JITKernel) -> list[LayoutDecision]:
    """Shared tiles that no tile op has a say in: threads read and write single elements."""
    return [
        LayoutDecision(slot.buffer, algebra.row_major(slot.buffer.static_shape, bits),
                       "row-major: single threads index it")
        for part in kernel.program.kernels
        for slot in part.shared
        if slot.buffer.scope is Scope.SHARED and slot.buffer.layout is None
        and (bits := slot.buffer.dtype.bits)
    ]  # fmt: skip


def _expression(layout: Any) -> str:
    """An expression that makes a layout again, in the words of `tilelab.layout`."""
    if not isinstance(layout, SharedLayout):
        return "layout"  # a fragment's map has no short name: one begins with the map itself
    shape, bits = layout.shape, layout.element_bits
    swizzle = layout.swizzle
    if swizzle is None:
        pad = layout.row_pitch - layout.panel_cols
        return f"padded({shape}, {bits}, {pad})" if pad else f"row_major({shape}, {bits})"
    if swizzle == Swizzle(swizzle.bits, 4, 3):
        return f"swizzled({shape}, {bits}, {swizzle.row})"
    return f"SharedLayout({shape}, {bits}, {swizzle}, panel={layout.panel_cols})"


class LayoutPanel:
    """Up to two layouts side by side, each of which can be exchanged or edited."""

    script: ClassVar[str] = "layouts"

    def __init__(self, entries: Sequence[Entry]) -> None:
        if not entries:
            raise TileValueError(
                "there is no layout to explore", code="TL1711",
                hint="give a compiled kernel that has tiles, or a layout of tilelab.layout",
            )  # fmt: skip
        self.entries = list(entries)
        self.shown = [0]
        self.pattern, self.vector, self._chose = "ldmatrix", 0, False
        self._settle()

    def state(self) -> dict[str, Any]:
        """Maps of the shown layouts, and the access to the first shared one among them."""
        views = [(k, self.entries[k].view()) for k in self.shown]
        return {
            "title": "Layout explorer",
            "names": [e.name for e in self.entries],
            "shown": self.shown,
            "panes": [self._pane(k, view) for k, view in views],
            "colours": list(lane_colours()),
            "patterns": {name: words for name, (words, _) in PATTERNS.items()},
            "access": self._access([v for _, v in views if isinstance(v, SharedView)]),
        }

    def answer(self, request: Mapping[str, Any]) -> None:
        """{"show": 0|1, "buffer": k}, {"edit": k, "expression": text} or
        {"access": {"pattern": name, "vector": n}}."""
        if "show" in request:
            self._show(wish(request, "show", (0, 1)), int(request["buffer"]))
        elif "edit" in request:
            which: int = wish(request, "edit", tuple(range(len(self.entries))))
            self.entries[which] = edited(self.entries[which], str(request["expression"]))
        else:
            self._chose = True
            self.pattern = wish(request["access"], "pattern", tuple(PATTERNS))
            self.vector = wish(request["access"], "vector", VECTORS)

    def twins(self) -> tuple[View, ...]:
        """The maps that are shown."""
        return tuple(self.entries[k].view() for k in self.shown)

    def _show(self, slot: int, buffer: int) -> None:
        if slot == 1 and buffer < 0:
            self.shown = self.shown[:1]
            return
        wish({"buffer": buffer}, "buffer", tuple(range(len(self.entries))))
        first = buffer if slot == 0 else self.shown[0]
        rest = [buffer] if slot == 1 else self.shown[1:]
        self.shown = list(dict.fromkeys([first, *rest]))
        self._settle()

    def _settle(self) -> None:
        """The widest access to the shared tile whose banks are shown, as ldmatrix where it could
        be one, until the reader chooses."""
        shown = [self.entries[k] for k in self.shown]
        tile = next((e for e in shown if hasattr(e.layout, "offsets")), None)
        bits = 32 if tile is None else tile.bits
        self.vector = max(min(128 // max(bits, 1), 16), 1)
        if tile is not None and not self._chose:
            matrix = bits == 16 and prod(tile.layout.shape[:-1]) >= 16
            self.pattern = "ldmatrix" if matrix else "rows"

    def _pane(self, slot: int, view: FragmentView | SharedView) -> dict[str, Any]:
        rows, cols = view.grid
        pane = {
            "slot": slot, "kind": view.kind, "name": view.buffer, "summary": view.summary(),
            "shape": list(view.shape) or [1], "rows": rows, "cols": cols, "reason": view.reason,
            "size": prod(view.shape), "expression": self.entries[slot].expression,
        }  # fmt: skip
        if isinstance(view, SharedView):
            return {**pane, "offsets": list(view.offsets), "element_bits": view.element_bits}
        return {
            **pane,
            "threads": list(view.threads),
            "registers": list(view.registers),
            "replication": view.replication,
        }

    def _access(self, tiles: Sequence[SharedView]) -> dict[str, Any] | None:
        """The access to the first of the shown tiles, and what becomes of it in the second."""
        if not tiles:
            return None
        widths = [v for v in VECTORS if v * tiles[0].element_bits in (8, 16, 32, 64, 128)]
        vector = self.vector if self.vector in widths else widths[-1]
        first, *others = (_judged(tile, self.pattern, vector) for tile in tiles)
        data = {"pattern": self.pattern, "vector": vector, "vectors": widths}
        return {**data, **first, "others": others}


def _judged(tile: SharedView, pattern: str, vector: int) -> dict[str, Any]:
    """An access to a tile as words and a picture; in words alone where it cannot be made."""
    try:
        access = access_of(tile, pattern, vector)
    except TileError as error:
        return {"name": tile.buffer, "verdict": error.message, "good": False, "svg": "",
                "text": str(error)}  # fmt: skip
    return {"name": tile.buffer, "verdict": access.verdict(), "good": access.degree <= 1,
            "svg": access.to_svg(), "text": access.to_text()}  # fmt: skip


def edited(old: Entry, expression: str) -> Entry:
    """An entry with the layout that an expression makes.

    The expression is Python of the reader's own session, with the names of `tilelab.layout` and
    `shape`, `bits`, `threads` of the buffer. TileValueError (TL1711) says what is wrong with it.
    """
    threads = getattr(old.layout, "num_threads", 128)
    names = {**NAMES, "shape": tuple(old.layout.shape), "bits": old.bits, "threads": threads,
             "layout": old.given}  # fmt: skip
    try:
        made: Any = eval(compile(expression.strip(), "<layout>", "eval"), names)
        if hasattr(made, "fragment") and hasattr(made, "is_equal"):
            made = made.fragment(threads)
        fresh = entry(old.name, made, dtype=old.dtype, bits=old.bits)
    except TileError:
        raise
    except Exception as error:
        raise TileValueError(
            f"the layout expression {expression!r} fails: {type(error).__name__}: {error}",
            code="TL1711",
            hint="for example swizzled(shape, bits, 64), padded(shape, bits, 8), "
            "row_major(shape, bits); layout is the one that was given",
        ) from error
    return replace(fresh, expression=expression.strip(), reason="edited by hand", line=old.line,
                   given=old.given)  # fmt: skip
