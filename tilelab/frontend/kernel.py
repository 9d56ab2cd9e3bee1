"""`with T.Kernel(...) as (bx, by)`: the launch, its variables, and its body.

Hides how the frame opens and closes (as a context manager, or to the end of the function when
its variables are merely assigned).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelab.errors import TileNotSupported, TileValueError
from tilelab.frontend.session import OpenKernel, Session, session
from tilelab.frontend.types import as_dims
from tilelab.ir import Expr, Var, as_expr, const_int

_BLOCK_NAMES = ("bx", "by", "bz")
_THREAD_NAMES = ("tx", "ty", "tz")
DEFAULT_THREADS = 128


class KernelFrame:
    """What T.Kernel returns. Entering it opens the body; iterating gives the block variables."""

    def __init__(self, blocks: tuple[Any, ...], threads: Any, prelude: str | None = None) -> None:
        if prelude is not None:
            raise TileNotSupported(
                "T.Kernel(prelude=...) is not supported: the CUDA text is tilelab's own",
                hint="express the helper in the tile language",
            )
        if not 1 <= len(blocks) <= 3:
            raise TileValueError(
                f"T.Kernel takes 1 to 3 grid extents, {len(blocks)} were given",
                code="TL1430",
                hint="give the grid in x, y, z order: T.Kernel(gx, gy, threads=128)",
            )
        self.session: Session = session()
        self.blocks = as_dims(blocks, "the grid")
        self.threads = _thread_counts(threads)
        self.loc = self.session.loc()
        self.opened = False
        self.block_vars: tuple[Var, ...] = ()
        _check_grid(self.blocks)

    @property
    def num_threads(self) -> int:
        """Threads of a block."""
        count = 1
        for extent in self.threads:
            count *= extent
        return count

    def open(self) -> None:
        """Open the body; names of the variables come from the assignment around the call."""
        names = self.session.hint
        self.session.hint = (names,) if isinstance(names, str) else names
        grid = tuple(as_expr(b) for b in self.blocks)
        fresh = self.session.hinted
        self.block_vars = tuple(
            _index_var(fresh(_BLOCK_NAMES[i], i), extent, "block") for i, extent in enumerate(grid)
        )
        self.session.hint = None
        threads = tuple(
            Var(fresh(_THREAD_NAMES[i]), lo=0, hi=extent - 1, role="thread")
            for i, extent in enumerate(self.threads)
        )
        kernel = OpenKernel(grid, self.threads, self.block_vars, threads, self.loc)
        self.session.open_kernel(kernel)
        self.opened = True

    def __enter__(self) -> Any:
        self.open()
        return self.block_vars[0] if len(self.block_vars) == 1 else list(self.block_vars)

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is None:
            self.session.close_kernel()

    def __iter__(self) -> Iterator[Var]:
        return iter(self.block_vars)


def _thread_counts(threads: Any) -> tuple[int, ...]:
    if threads is None:
        threads = DEFAULT_THREADS
    entries: list[Any] = list(threads) if isinstance(threads, tuple | list) else [threads]  # pyright: ignore[reportUnknownArgumentType]
    counts = tuple(const_int(t) for t in entries)
    if not 1 <= len(counts) <= 3 or any(t is None or t <= 0 for t in counts):
        raise TileValueError(
            f"threads={threads!r} is no block size",
            code="TL1431",
            hint="threads is a positive int, or a tuple of up to three",
        )
    return tuple(t for t in counts if t is not None)


def _check_grid(blocks: tuple[Expr | int, ...]) -> None:
    for extent in blocks:
        constant = const_int(extent)
        if constant is not None and constant < 0:
            raise TileValueError(
                f"the grid extent {constant} is negative", code="TL1430",
                hint="use T.ceildiv(size, block) for the number of blocks",
            )  # fmt: skip


def _index_var(name: str, extent: Expr, role: str) -> Var:
    size = const_int(extent)
    return Var(name, lo=0, hi=None if size is None else max(size - 1, 0), role=role)
