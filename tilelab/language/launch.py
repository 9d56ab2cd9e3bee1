"""Launching: T.Kernel, its thread and block indices, and the order of blocks."""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileValueError
from tilelab.frontend import KernelFrame, open_kernel
from tilelab.ir import Expr, Var, as_expr, const_int
from tilelab.target import WARP


def Kernel(
    *blocks: Any, threads: Any = None, prelude: str | None = None, cluster_dims: Any = None
) -> KernelFrame:
    """A kernel launch: `with T.Kernel(grid_x, grid_y, threads=128) as (bx, by):`.

    1 to 3 grid extents in x, y, z order; `threads` an int or up to three, 128 if left out;
    `prelude` CUDA text before the kernel, as T.import_source; `cluster_dims` 1 (clusters of
    several blocks are refused, TL1781).
    Several kernels in one function are launched in order.
    """
    return KernelFrame(blocks, threads, prelude, cluster_dims)


def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Let blocks take tiles in panels of `panel_size` rows, so that operands stay in L2. Changes
    which block computes which tile and nothing else."""
    kernel = open_kernel("T.use_swizzle")
    if not enable:
        return
    panel = const_int(panel_size)
    if panel is None or panel <= 0 or order not in ("row", "column"):
        raise TileValueError(
            f"T.use_swizzle({panel_size!r}, order={order!r}) is no block order",
            code="TL1432",
            hint='panel_size is a positive int, order is "row" or "column"',
        )
    kernel.attrs["swizzle"] = (panel, order)


def annotate_min_blocks_per_sm(n: int) -> None:
    """A multiprocessor should hold `n` blocks of this kernel at once: the chip's compiler gives a
    thread no more registers than that leaves (the second number of `__launch_bounds__`), and
    roles do not trade registers. TileValueError (TL1437) for other than a positive int."""
    kernel, blocks = open_kernel("T.annotate_min_blocks_per_sm"), const_int(n)
    if blocks is None or blocks <= 0:
        raise TileValueError(
            f"T.annotate_min_blocks_per_sm({n!r}) is no number of blocks", code="TL1437",
            hint="give a positive int",
        )  # fmt: skip
    kernel.attrs["min_blocks"] = blocks
    if blocks > 1:
        kernel.attrs["keep_registers"] = True


def get_thread_binding(dim: int = 0) -> Expr:
    """The thread index along `dim` (0, 1, 2 for x, y, z)."""
    return _axis(open_kernel("T.get_thread_binding").thread_vars, dim)


def get_thread_bindings() -> list[Expr]:
    """The thread indices along x, y and z."""
    return [get_thread_binding(dim) for dim in range(3)]


def get_block_binding(dim: int = 0) -> Expr:
    """The block index along `dim`."""
    return _axis(open_kernel("T.get_block_binding").block_vars, dim)


def get_block_bindings() -> list[Expr]:
    """The block indices along x, y and z."""
    return [get_block_binding(dim) for dim in range(3)]


def get_thread_extent(dim: int = 0) -> int:
    """Threads of a block along `dim`."""
    threads = open_kernel("T.get_thread_extent").threads
    return threads[dim] if dim < len(threads) else 1


def get_thread_extents() -> list[int]:
    """Threads of a block along x, y and z."""
    return [get_thread_extent(dim) for dim in range(3)]


def get_block_extent(dim: int = 0) -> Any:
    """Blocks of the grid along `dim`: an int where it is known."""
    grid = open_kernel("T.get_block_extent").grid
    if dim >= len(grid):
        return 1
    known = const_int(grid[dim])
    return grid[dim] if known is None else known


def get_block_extents() -> list[Any]:
    """Blocks of the grid along x, y and z."""
    return [get_block_extent(dim) for dim in range(3)]


def linear_thread() -> Expr:
    """The thread's number in its block, x fastest."""
    tx, ty, tz = get_thread_bindings()
    nx, ny, _ = get_thread_extents()
    return tx + nx * (ty + ny * tz)


def get_lane_idx(warp_size: int | None = None) -> Expr:
    """The thread's number within its warp."""
    return linear_thread() % (warp_size or WARP)


def get_warp_idx(warp_size: int | None = None) -> Expr:
    """The number of the thread's warp."""
    return linear_thread() // (warp_size or WARP)


def get_warp_group_idx(warp_size: int | None = None, warps_per_group: int | None = None) -> Expr:
    """The number of the thread's warp group (four warps)."""
    return linear_thread() // ((warp_size or WARP) * (warps_per_group or 4))


def _axis(variables: tuple[Var, ...], dim: int) -> Expr:
    if dim not in (0, 1, 2):
        raise TileValueError(f"dim={dim!r} is no axis", code="TL1433", hint="use 0, 1 or 2")
    return variables[dim] if dim < len(variables) else as_expr(0)
