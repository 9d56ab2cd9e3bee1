"""`with T.Kernel(...) as (bx, by)`: the launch, its variables, and its body.

Hides how the frame opens and closes (as a context manager, or to the end of the function when
its variables are merely assigned).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from tilelab.dtypes import INT64
from tilelab.errors import TileNotSupported, TileRuntimeError, TileTypeError, TileValueError, shown
from tilelab.frontend.session import OpenKernel, Session, session
from tilelab.frontend.types import as_dims
from tilelab.ir import Expr, Var, as_expr, cast, const_int
from tilelab.target import TARGETS

_BLOCK_NAMES = ("bx", "by", "bz")
_THREAD_NAMES = ("tx", "ty", "tz")
DEFAULT_THREADS = 128
_MOST_THREADS = max(target.limits.threads_per_block for target in TARGETS.values())
# CUDA C programming guide, compute capabilities: the same for every chip.
_MOST_THREADS_Z = 64


class KernelFrame:
    """What T.Kernel returns. Entering it opens the body; iterating gives the block variables."""

    def __init__(
        self, blocks: tuple[Any, ...], threads: Any, prelude: str | None = None,
        cluster_dims: Any = None,
    ) -> None:  # fmt: skip
        if len(blocks) > 3:
            raise TileValueError(
                f"T.Kernel takes up to 3 grid extents, {len(blocks)} were given",
                code="TL1430",
                hint="give the grid in x, y, z order: T.Kernel(gx, gy, threads=128)",
            )
        self.session: Session = session()
        self.sources = _prelude(prelude)
        _check_cluster(cluster_dims)
        self.blocks = as_dims(blocks or (1,), "the grid")
        self.threads = _thread_counts(threads)
        self.loc = self.session.loc()
        self.opened = False
        self.unpacked = False  # `as (bx,)`: one variable, in a tuple
        self.block_vars: tuple[Var, ...] = ()
        self.session.launches.append(self)

    @property
    def num_threads(self) -> int:
        """Threads of a block."""
        return prod(self.threads)

    def never_entered(self) -> TileRuntimeError:
        """The error (TL1405) of a launch that is called and has no body."""
        return TileRuntimeError(
            "T.Kernel(...) is called, and its body is never entered", code="TL1405", loc=self.loc,
            hint="write `with T.Kernel(...) as bx:`, and indent the body under it",
        )  # fmt: skip

    def open(self) -> None:
        """Open the body; names of the variables come from the assignment around the call."""
        names = self.session.hint
        if isinstance(names, tuple) and len(names) != len(self.blocks):
            raise self._other_number(names)
        self.unpacked = isinstance(names, tuple)
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
        if self.sources:
            kernel.attrs["source"] = self.sources
        self.session.open_kernel(kernel)
        self.opened = True

    def _other_number(self, names: tuple[str, ...]) -> TileTypeError:
        count = len(self.blocks)
        extents = f"{count} grid extent{'s' * (count != 1)}"
        right = f"as {_BLOCK_NAMES[0]}" if count == 1 else f"as ({', '.join(_BLOCK_NAMES[:count])})"
        return TileTypeError(
            f"T.Kernel has {extents}, and {len(names)} names take the block's numbers",
            code="TL1460", loc=self.loc,
            hint=f"write `{right}`, or give T.Kernel {len(names)} extents: one for each axis",
        )  # fmt: skip

    def __enter__(self) -> Any:
        self.open()
        named = list(self)
        return named[0] if len(named) == 1 and not self.unpacked else named

    def __exit__(self, kind: object, *_rest: object) -> None:
        if kind is None:
            self.session.close_kernel()

    def __iter__(self) -> Iterator[Expr]:
        """The block's numbers, of 64 bits where their extent is: what is computed from them counts
        elements of such a size."""
        for var, extent in zip(self.block_vars, self.blocks, strict=True):
            yield cast(var, INT64) if as_expr(extent).dtype == INT64 else var


def _prelude(text: Any) -> tuple[str, ...]:
    """CUDA text of the program's own, before its kernels."""
    if text is not None and not isinstance(text, str):
        raise TileTypeError(
            f"T.Kernel(prelude={text!r}) is no text", code="TL1431",
            hint="give the CUDA text of the functions that T.call_extern calls",
        )  # fmt: skip
    return (text,) if text else ()


def _check_cluster(dims: Any) -> None:
    """A cluster is one block: nothing to do. TileNotSupported (TL1781) for larger ones."""
    extents: list[Any] = list(dims) if isinstance(dims, tuple | list) else [dims or 1]  # pyright: ignore[reportUnknownArgumentType]
    if any(const_int(e) != 1 for e in extents):
        raise TileNotSupported(
            f"cluster_dims={dims!r}: clusters of several blocks are not supported",
            code="TL1781", loc=session().loc(),
            hint="leave cluster_dims out: the blocks then work alone, and results are the same "
            "unless the program uses the memory of another block",
        )  # fmt: skip


def _thread_counts(threads: Any) -> tuple[int, ...]:
    if threads is None:
        threads = DEFAULT_THREADS
    entries: list[Any] = list(threads) if isinstance(threads, tuple | list) else [threads]  # pyright: ignore[reportUnknownArgumentType]
    counts = tuple(None if isinstance(t, bool) else const_int(t) for t in entries)
    if not 1 <= len(counts) <= 3 or any(t is None or t <= 0 for t in counts):
        raise TileValueError(
            f"threads={shown(entries if len(entries) > 1 else entries[0])} is no block size",
            code="TL1431",
            hint="threads is a positive int, or a tuple of up to three",
        )
    found = tuple(t for t in counts if t is not None)
    total = prod(found)
    if total > _MOST_THREADS or found[2:] > (_MOST_THREADS_Z,):
        raise TileValueError(
            f"threads={threads!r} makes {total} threads, a block has at most {_MOST_THREADS} "
            f"(and {_MOST_THREADS_Z} along z)",
            code="TL1431",
            hint="use fewer threads, such as 128 or 256, and let each do more: T.Parallel and the "
            "tile operations spread any extent over them",
        )
    return found


def _index_var(name: str, extent: Expr, role: str) -> Var:
    size = const_int(extent)
    return Var(name, lo=0, hi=None if size is None else max(size - 1, 0), role=role)
