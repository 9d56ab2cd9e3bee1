"""Classes that live while a kernel is traced: @T.meta_class, and the orders of persistent tiles.

Hides which methods are traced: those that store to a variable of the kernel become macros.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from tilelab.carver.arch import driver
from tilelab.errors import TileValueError
from tilelab.frontend import Macro, session
from tilelab.ir import const_int
from tilelab.language.math import FUNCTIONS as _MATH
from tilelab.language.math import ceildiv
from tilelab.language.memory import alloc_var

C = TypeVar("C", bound=type)


def inline(func: Callable[..., Any]) -> Macro:
    """A method whose statements are traced where it is called, as of a T.macro."""
    return Macro(func)


def meta_class(cls: C) -> C:
    """A class whose objects exist while a kernel is traced, with T.alloc_var for their state.

    Methods that assign to a subscript (`self.count[0] = ...`) are traced where they are called;
    all others, and names with two underscores, stay plain Python and may return expressions.
    TileTypeError (TL1451) where the source of such a method cannot be had.
    """
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and not name.startswith("__") and _stores(member):
            setattr(cls, name, inline(member))
    return cls


def _stores(function: FunctionType) -> bool:
    """Whether a function assigns to a subscript; one without source counts as if it did."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return True
    subscripts = (n for n in ast.walk(tree) if isinstance(n, ast.Subscript))
    return any(isinstance(n.ctx, ast.Store) for n in subscripts)


@meta_class
class BaseTileScheduler:
    """What a block that takes tile after tile keeps: its place in the order of all tiles, the
    tile's coordinates, and how many it has done. A subclass says the coordinates of a place
    (`update_current_idx`) and sets `_total_tiles`."""

    def __init__(self, stateful: bool = True, name: str | None = None) -> None:
        self._total_tiles: Any = 0
        if stateful:
            prefix = f"{name}_" if name else ""
            self._m_idx, self._n_idx, self._linear_idx, self._current_iter = (
                _variable(prefix + part) for part in ("m_idx", "n_idx", "linear_idx", "iteration")
            )

    @property
    def m_idx(self) -> Any:
        """The tile's row."""
        return self._m_idx[0]

    @property
    def n_idx(self) -> Any:
        """The tile's column."""
        return self._n_idx[0]

    @property
    def linear_idx(self) -> Any:
        """The place in the order of all tiles."""
        return self._linear_idx[0]

    @property
    def current_iter(self) -> Any:
        """How many tiles this block has done."""
        return self._current_iter[0]

    def valid(self) -> Any:
        """Whether the place is one of a tile."""
        return self._linear_idx[0] < self._total_tiles

    def update_current_idx(self, linear_idx: Any) -> None:
        """Set the tile's coordinates for a place."""
        raise NotImplementedError(f"{type(self).__name__} gives no coordinates of tile numbers")

    def init(self, linear_init: Any) -> None:
        """Begin at a place."""
        self._current_iter[0] = 0
        self._linear_idx[0] = linear_init
        self.update_current_idx(self._linear_idx[0])

    def next_tile(self, step: Any) -> None:
        """Go on by `step` places."""
        self._current_iter[0] = self._current_iter[0] + 1
        self._linear_idx[0] = self._linear_idx[0] + step
        self.update_current_idx(self._linear_idx[0])


def _variable(name: str) -> Any:
    trace = session()
    hint, trace.hint = trace.hint, name
    try:
        return alloc_var("int32", init=0)
    finally:
        trace.hint = hint


@meta_class
class PersistentTileScheduler(BaseTileScheduler):
    """Tiles shared out to `num_workers` blocks (one a multiprocessor if left out): block w takes
    the places w, w + num_workers, ... of an order in panels.

        sched = T.PersistentTileScheduler(T.ceildiv(M, 128), T.ceildiv(N, 128), swizzle_size=8)
        sched.init(block)
        while sched.valid():
            ... tile (sched.m_idx, sched.n_idx) ...
            sched.next_tile()

    Panels are `swizzle_size` columns wide and swept down the rows (with `column_major=False`:
    rows, swept along the columns). `cluster_size` rows count as one. With `stateful=False` there
    is only `coord`. TileValueError (TL1438) for sizes that are not positive.
    """

    def __init__(
        self, num_m_tiles: Any, num_n_tiles: Any, num_workers: Any = None, swizzle_size: int = 1,
        column_major: bool = True, cluster_size: int = 1, stateful: bool = True,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(stateful, name)
        for what, size in (("swizzle_size", swizzle_size), ("cluster_size", cluster_size)):
            if (const_int(size) or 0) < 1:
                raise TileValueError(
                    f"T.PersistentTileScheduler({what}={size!r}) is no number of tiles",
                    code="TL1438", hint="give a positive int",
                )  # fmt: skip
        if num_workers is None:
            num_workers = driver.get_num_sms() // cluster_size
        self.num_workers, self.cluster_size = num_workers, cluster_size
        self.swizzle_size, self._column_major = swizzle_size, column_major
        rows = ceildiv(num_m_tiles, cluster_size)
        self._swept, self._across = (rows, num_n_tiles) if column_major else (num_n_tiles, rows)
        self._total_tiles = rows * num_n_tiles

    def coord(self, tile_id: Any) -> tuple[Any, Any]:
        """Row and column of the tile at a place of the order."""
        panel = tile_id // (self._swept * self.swizzle_size)
        first = panel * self.swizzle_size
        # The last panel may be narrower; past all tiles the width still is no zero.
        width = _MATH["max"](1, _MATH["min"](self.swizzle_size, self._across - first))
        inside = tile_id - panel * (self._swept * self.swizzle_size)
        swept, across = inside // width, first + inside % width
        return (swept, across) if self._column_major else (across, swept)

    def update_current_idx(self, linear_idx: Any) -> None:
        """Set the tile's coordinates for a place."""
        m, n = self.coord(linear_idx)
        self._m_idx[0] = m
        self._n_idx[0] = n

    def next_tile(self, step: Any = None) -> None:
        """Go on to this block's next tile."""
        self._current_iter[0] = self._current_iter[0] + 1
        self._linear_idx[0] = self._linear_idx[0] + (self.num_workers if step is None else step)
        self.update_current_idx(self._linear_idx[0])


NAMES: dict[str, Any] = {
    f.__name__: f for f in (BaseTileScheduler, PersistentTileScheduler, inline, meta_class)
}
"""What this module adds to the language."""
