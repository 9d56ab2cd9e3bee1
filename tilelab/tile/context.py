"""What a lowering strategy may ask and make: the context the lowering pass hands it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tilelab.dtypes import DType
from tilelab.errors import Loc
from tilelab.ir import (
    Buffer,
    Expr,
    Node,
    Pool,
    Region,
    Scope,
    Stmt,
    Var,
    as_expr,
    binary,
    cast,
    const_int,
)
from tilelab.ir.simplify import divisibility
from tilelab.layout import Fragment, SharedLayout
from tilelab.target import WARPGROUP, Target
from tilelab.thread.nodes import Alignment, TensorMap
from tilelab.tile.staging import Staging

VECTOR_BYTES = 16  # widest access of one thread


@dataclass
class Shared:
    """What all roles of one kernel have in common while it is lowered."""

    target: Target
    options: dict[str, Any]
    names: Callable[[str], str]
    assume_aligned: bool
    note: Callable[..., None]
    locals: list[Buffer] = field(default_factory=list[Buffer])
    maps: list[TensorMap] = field(default_factory=list[TensorMap])
    aligned: dict[int, Alignment] = field(default_factory=dict[int, Alignment])
    placed: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    scratch: list[Buffer] = field(default_factory=list[Buffer])
    safe: dict[int, Expr] = field(default_factory=dict[int, Expr])  # reads past a tensor's end
    unwaited: list[Stmt] = field(default_factory=list[Stmt])  # fences of running accumulators
    parts: dict[int, list[tuple[int, int]]] = field(
        default_factory=dict[int, list[tuple[int, int]]]
    )  # fragments (by id) that hold sums in parts: the digits of the threads that have one
    whole: list[Buffer] = field(
        default_factory=list[Buffer]
    )  # fragments that go out whole, set in parts
    staging: Staging | None = None  # None: accumulators leave without staging tiles

    def staged(self) -> tuple[Buffer, ...]:
        """The staging tiles that lowerings have asked for."""
        return () if self.staging is None else tuple(self.staging.tiles.values())


@dataclass
class LowerContext:
    """One role's view: `tid` counts its threads from 0, `num_threads` is how many it has.

    `first_thread` is the role's first thread in the block (named barriers and single-thread
    issue need the real index, `thread`). `uniform_warpgroup` names the warpgroup's number, where
    the role has a name for it that the assembler knows to be the same in a whole warp.
    """

    shared: Shared
    tid: Expr
    num_threads: int
    first_thread: int = 0
    uniform_warpgroup: Expr | None = None

    @property
    def target(self) -> Target:
        return self.shared.target

    def option(self, key: str, default: Any = None) -> Any:
        return self.shared.options.get(key, default)

    def note(self, text: str, subject: Node | None = None, *, level: str = "info") -> None:
        self.shared.note(text, subject, level=level)

    def trial(self) -> LowerContext:
        """A context for a plan that may be given up: what it needs of tensors is its own."""
        return replace(self, shared=replace(self.shared, aligned={}))

    def adopt(self, plan: LowerContext) -> None:
        """Need what a plan made in a `trial` needs."""
        for need in plan.shared.aligned.values():
            key = id(need.buffer)
            self.shared.aligned[key] = need.joined(self.shared.aligned.get(key))

    # ---- buffers -----------------------------------------------------------------------------

    def fragment(self, buffer: Buffer) -> Fragment:
        """The inferred layout of a fragment."""
        assert isinstance(buffer.layout, Fragment), f"{buffer.name} has no fragment layout"
        return buffer.layout

    def placed(self, buffer: Buffer) -> Buffer:
        """The thread-IR buffer that stands for a tile-IR one: registers for a fragment, else the
        buffer itself."""
        if buffer.scope is not Scope.FRAGMENT:
            if buffer.scope is Scope.LOCAL and not any(b is buffer for b in self.shared.locals):
                if buffer.alias_of is not None:
                    self.placed(buffer.storage)
                self.shared.locals.append(buffer)
            return buffer
        if buffer.alias_of is not None and buffer.dtype == buffer.storage.dtype:
            return self.placed(buffer.storage)  # a view has the same registers, in the same order
        found = self.shared.placed.get(id(buffer))
        if found is None:
            count = self.fragment(buffer).num_registers
            found = self._local(buffer.name, count, buffer.dtype, buffer)
            if buffer.alias_of is not None:
                found = self._view_of_registers(found, self.placed(buffer.storage))
            self.shared.placed[id(buffer)] = found
        return found

    def temp(self, name: str, count: int, dtype: DType) -> Buffer:
        """A new register array of `count` elements."""
        return self._local(name, count, dtype, None)

    def tile_in_registers(self, name: str, layout: Fragment, dtype: DType) -> Buffer:
        """A new tile spread over the threads, for a step of a lowering."""
        unique = self.shared.names(name)
        return Buffer(unique, layout.shape, dtype, Scope.FRAGMENT, layout=layout)

    def _local(self, name: str, count: int, dtype: DType, origin: Buffer | None) -> Buffer:
        unique = name if origin is not None else self.shared.names(name)
        loc = origin.loc if origin is not None else None
        local = Buffer(unique, (count,), dtype, Scope.LOCAL, loc=loc, origin=origin)
        self.shared.locals.append(local)
        return local

    def _view_of_registers(self, view: Buffer, storage: Buffer) -> Buffer:
        """The last local as a view of other registers, declared after them."""
        made = replace(view, alias_of=storage)
        self.shared.locals.remove(view)
        self.shared.locals.append(made)
        return made

    def scratch(self, name: str, shape: tuple[int, ...], dtype: DType, loc: Loc | None) -> Buffer:
        """A new shared buffer for an exchange between threads."""
        buffer = Buffer(self.shared.names(name), shape, dtype, Scope.SHARED, loc=loc)
        self.shared.scratch.append(buffer)
        return buffer

    def fresh(self, name: str, extent: int) -> Var:
        """A loop variable running from 0 to extent - 1."""
        return Var(name, lo=0, hi=extent - 1)

    def outside(self, buffer: Buffer, dtype: DType) -> Expr:
        """What reads past the end of a tensor give, as a `dtype`: 0, or the program's choice."""
        nothing = as_expr(False if dtype.is_bool else 0, dtype)
        return cast(self.shared.safe.get(id(buffer.storage), nothing), dtype)

    def zero_outside(self, buffer: Buffer) -> bool:
        """Whether reads past the end of a tensor give 0, as the copy engines fill in."""
        return id(buffer.storage) not in self.shared.safe

    # ---- proofs ------------------------------------------------------------------------------

    def divides(self, value: Expr | int) -> int:
        """The largest power of two (up to 2**20) known to divide `value`; under the aligned
        assumption a dynamic size counts as a multiple of 16 bytes of any element."""
        return divisibility(as_expr(value), 16 if self.shared.assume_aligned else 1)

    def _divides(self, value: Expr | int, buffer: Buffer) -> int:
        """As `divides`; nothing is assumed of sizes that no launcher checks: of views and pools."""
        if buffer.alias_of is not None or isinstance(buffer, Pool):
            return divisibility(as_expr(value), 1)
        return self.divides(value)

    def in_bounds(self, region: Region, tile_index: tuple[Any, ...]) -> Expr | None:
        """The condition that an element of a region exists; None when it always does."""
        return self.indices_in_bounds(region.buffer, region.index(tile_index))

    def indices_in_bounds(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Expr | None:
        """The condition that `buffer[indices]` exists; None when bounds prove it."""
        condition: Expr | None = None
        for index, size in zip(indices, buffer.shape, strict=True):
            for term in (binary("<", index, size), binary(">=", index, 0)):
                known = getattr(term, "value", None)
                if known is True:
                    continue
                condition = term if condition is None else binary("and", condition, term)
        return condition

    def vector_width(
        self, region: Region, axis_extent: int, limit: int, *, inside: bool = False
    ) -> int:
        """How many neighbouring elements along the region's last axis one access may take.

        They must lie in one row, at an address aligned to their size, and be inside or outside
        the tensor together. `limit` is a power of two. `inside`: they exist, whatever the row's
        length, and where strides are constants the caller asks about the base when it runs.
        """
        buffer = region.buffer
        if buffer.scope is Scope.FRAGMENT:
            return power_of_two(limit, axis_extent)  # registers are taken as they come
        width = min(limit, max(VECTOR_BYTES // buffer.dtype.bytes, 1))
        if not region.tile_axes or region.tile_axes[-1] != buffer.rank - 1:
            return 1
        width = power_of_two(width, axis_extent)
        if buffer.scope is Scope.SHARED:
            return min(width, self._divides(region.starts[-1], buffer), self._shared_run(buffer))
        if buffer.scope is Scope.GLOBAL:
            width = self._global_run(region, width, inside and has_fixed_rows(buffer))
        return max(min(width, self._divides(region.starts[-1], buffer)), 1)

    def _global_run(self, region: Region, width: int, unasked: bool) -> int:
        """The part of `vector_width` that rows in memory allow. `unasked`: the launcher is not
        asked to check anything."""
        buffer = region.buffer
        strides = buffer.effective_strides()
        if const_int(strides[-1]) != 1:
            return 1
        width = min(width, self._divides(region.starts[-1], buffer))
        if unasked:
            return min(
                width, *(divisibility(as_expr(s)) for s in (region.starts[-1], *strides[:-1]))
            )
        for size in (buffer.shape[-1], *strides[:-1]):
            width = min(width, self._divides(size, buffer))
        if width > 1:
            self.need_alignment(buffer, width * buffer.dtype.bytes)
        return width

    def need_alignment(self, tensor: Buffer, num_bytes: int, *, short: bool = False) -> None:
        """Record that an access relies on rows and base of `tensor` at multiples of num_bytes, and
        (`short`) on 32-bit coordinates. T.make_tensor promises it of what a table holds."""
        if isinstance(tensor, Pool):
            return
        need = Alignment(tensor.storage, num_bytes, rows=tensor.alias_of is None, short=short)
        key = id(tensor.storage)
        self.shared.aligned[key] = need.joined(self.shared.aligned.get(key))

    def _shared_run(self, buffer: Buffer) -> int:
        layout: SharedLayout | None = buffer.layout
        if layout is None:
            return power_of_two(1 << 20, int(buffer.static_shape[-1]))
        run = power_of_two(1 << 20, layout.panel_cols)
        if layout.pitch is not None:
            run = power_of_two(run, layout.pitch)
        if layout.swizzle is None:
            return run
        return max(min(run, (8 << layout.swizzle.base) // layout.element_bits), 1)

    @property
    def warpgroup(self) -> Expr:
        """The number of the thread's warpgroup in its role."""
        found = self.uniform_warpgroup
        return self.tid // WARPGROUP if found is None else found

    def single_thread(self) -> Expr:
        """True in exactly one thread of the role."""
        return binary("==", self.tid, 0)


def whole_registers(buffer: Buffer, ctx: LowerContext) -> Buffer:
    """The registers of a fragment that lanes exchange whole, elements without a place too: one
    that the program has set only in parts by then begins as zeros."""
    ctx.shared.whole.append(buffer.storage)
    return ctx.placed(buffer)


def has_fixed_rows(buffer: Buffer) -> bool:
    """Whether the distances of a tensor's rows are known when it is compiled, and only its base
    may be anywhere."""
    return not isinstance(buffer, Pool) and all(
        const_int(s) is not None for s in buffer.effective_strides()[:-1]
    )


def power_of_two(limit: int, value: int) -> int:
    """The largest power of two up to `limit` that divides `value`."""
    return min(limit, value & -value) if value else limit


Lowered = list[Stmt]
