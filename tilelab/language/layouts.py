"""Layouts and hints that a program gives: T.annotate_layout, T.Layout, T.Fragment, annotate_*."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from tilelab.errors import TileError, TileTypeError, TileValueError
from tilelab.frontend import open_kernel, session
from tilelab.ir import Buffer, Scope, Var
from tilelab.layout import Fragment, FragmentMap, Layout, MapLayout, SharedLayout
from tilelab.logs import without_effect
from tilelab.passes.place_tensors import TENSOR_LAYOUTS


def annotate_layout(layout_map: Mapping[Buffer, Any]) -> None:
    """Fix where the elements of buffers lie: `T.annotate_layout({A_shared: layout, ...})`.

    A layout of a shared buffer is a T.Layout, a function of the indices, or one that a maker such
    as tilelang.layout.make_swizzled_layout(A_shared) gives; of a fragment a T.Fragment. Results do
    not change. A tensor with a T.Layout has its elements where that says, in every kernel that
    says so: other readers see them reordered. Raises TileTypeError (TL1536) for what is no layout
    of its buffer and TileValueError (TL1537) for a map that does not fit it.
    """
    kernel = open_kernel("T.annotate_layout")
    threads = prod(kernel.threads)
    for buffer, layout in layout_map.items():
        chosen = _CHOICES.get(getattr(buffer, "scope", None))  # type: ignore[arg-type]
        if not isinstance(buffer, Buffer) or chosen is None:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TileTypeError(
                f"{getattr(buffer, 'name', repr(buffer))} has no layout to choose", code="TL1536",
                hint="name tensors, shared buffers and fragments",
            )  # fmt: skip
        try:
            made = chosen(buffer, layout, threads)
            if buffer.scope is Scope.GLOBAL:
                before: Any = kernel.attrs.get(TENSOR_LAYOUTS, ())
                kernel.attrs[TENSOR_LAYOUTS] = (*before, (buffer, made))
            else:
                kernel.layouts[buffer] = made
        except TileError as error:
            if error.code != "TL1301":
                raise
            raise TileValueError(
                f"the layout given for {buffer.name}: {error.message}", code="TL1537",
                loc=session().loc(), hint="every element needs a place of its own",
            ) from error  # fmt: skip


def _shared(buffer: Buffer, layout: Any, threads: int) -> SharedLayout | MapLayout:
    if callable(layout) and not isinstance(layout, Layout):
        layout = Layout(buffer.static_shape, layout)
    if isinstance(layout, Layout):
        _same_shape(buffer, layout.shape)
        layout.linear([Var(f"i{n}", lo=0, hi=e - 1) for n, e in enumerate(layout.shape)])
        return layout.shared(buffer.dtype.bits)
    if isinstance(layout, SharedLayout | MapLayout):
        _same_shape(buffer, layout.shape)
        return layout
    raise _no_layout(buffer, layout, "a T.Layout or a function of the indices")


def _fragment(buffer: Buffer, layout: Any, threads: int) -> Fragment:
    made = layout.fragment(threads) if isinstance(layout, FragmentMap) else layout
    if isinstance(made, Fragment):
        _same_shape(buffer, made.shape)
        return made
    if isinstance(layout, FragmentMap):
        raise TileValueError(
            f"the layout given for {buffer.name} is not made of digits of the indices",
            code="TL1537", loc=session().loc(),
            hint="write thread and register as sums of (index // a % b) * c",
        )  # fmt: skip
    raise _no_layout(buffer, layout, "a T.Fragment")


def _tensor(buffer: Buffer, layout: Any, threads: int) -> Layout:
    if callable(layout) and not isinstance(layout, Layout) and buffer.root.is_static:
        layout = Layout(buffer.static_shape, layout)
    if not isinstance(layout, Layout):
        raise _no_layout(buffer, layout, "a T.Layout or a function of the indices")
    if not buffer.root.is_static or buffer.strides is not None or buffer.alias_of is not None:
        raise TileValueError(
            f"{buffer.name} has dynamic sizes or strides, or is a view", code="TL1537",
            loc=session().loc(), hint="give layouts to whole contiguous tensors of known shape",
        )  # fmt: skip
    _same_shape(buffer, layout.shape)
    layout.check_places(_MOST_CHECKED)
    return layout


_MOST_CHECKED = 1 << 16  # elements of a tensor whose places are compared with each other

_CHOICES: dict[Scope, Callable[[Buffer, Any, int], Any]] = {
    Scope.SHARED: _shared,
    Scope.FRAGMENT: _fragment,
    Scope.GLOBAL: _tensor,
}


def _no_layout(buffer: Buffer, layout: Any, wanted: str) -> TileTypeError:
    return TileTypeError(
        f"the layout given for {buffer.name}, a {buffer.scope.value} buffer, is "
        f"a {type(layout).__name__}",
        code="TL1536", loc=session().loc(), hint=f"give {wanted}",
    )  # fmt: skip


def _same_shape(buffer: Buffer, shape: tuple[int, ...]) -> None:
    if tuple(shape) != buffer.static_shape:
        raise TileValueError(
            f"the layout given for {buffer.name} has the shape {tuple(shape)}, and the buffer "
            f"{buffer.static_shape}",
            code="TL1537", loc=session().loc(), hint="describe the whole buffer",
        )  # fmt: skip


def annotate_l2_hit_ratio(l2_hit_ratio_map: Mapping[Buffer, float]) -> None:
    """Which part of each tensor's accesses should stay in the L2 cache. Accepted and said once:
    it changes no result, and the cache keeps what it keeps."""
    open_kernel("T.annotate_l2_hit_ratio")
    without_effect(
        "T.annotate_l2_hit_ratio", {"l2_hit_ratio_map": l2_hit_ratio_map},
        "launches set no persisting L2 window",
    )  # fmt: skip


NAMES: dict[str, Any] = {
    "annotate_layout": annotate_layout,
    "annotate_l2_hit_ratio": annotate_l2_hit_ratio,
    "Layout": Layout,
    "Fragment": FragmentMap,
}
"""What this module adds to the language."""
