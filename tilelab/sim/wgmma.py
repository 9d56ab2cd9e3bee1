"""wgmma: descriptors decoded to the bytes they name, and products that take effect late.

Hides the canonical layouts of the PTX ISA ("Asynchronous Warpgroup Level Matrix Shared Memory
Layout"): core matrices of 8 rows x 16 bytes; leading and stride offsets between them; the swizzle
on address bits. A wrong descriptor therefore gives a wrong result, as on the chip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer
from tilelab.sim import findings as f
from tilelab.sim.frame import Array, Frame, varies
from tilelab.sim.group import BlockGroup
from tilelab.sim.queues import Acting, Queue
from tilelab.sim.shadow import ARRIVING, Access
from tilelab.sim.tma import swizzled
from tilelab.target import WARP
from tilelab.thread.intrinsics.tensor_core import accumulated, multiplicand

_CHUNK = 16
_ROWS = 64


@dataclass(frozen=True)
class Descriptor:
    """An evaluated matrix descriptor: start byte address (an int or (blocks, lanes))."""

    buffer: Buffer
    start: Any
    leading: int
    stride: int
    swizzle: int


@lru_cache(maxsize=4096)
def operand_chunks(
    start: int, extent: int, k: int, leading: int, stride: int, swizzle: int, transposed: bool,
    per_chunk: int = 8,
) -> Array:  # fmt: skip
    """Numbers of the 16-byte pieces of an operand: (extent, k/per_chunk), or (k, extent/per_chunk)
    if transposed (M or N contiguous). `per_chunk`: elements in a piece."""
    if transposed:
        depth, piece = np.arange(k)[:, None], np.arange(extent // per_chunk)
        if swizzle:
            per_row = swizzle // _CHUNK
            offset = piece % per_row * _CHUNK + piece // per_row * leading
            offset = offset + depth % 8 * swizzle + depth // 8 * stride
        else:
            offset = piece * stride + depth % 8 * _CHUNK + depth // 8 * leading
    else:
        row, piece = np.arange(extent)[:, None], np.arange(k // per_chunk)
        pitch, step = (swizzle, _CHUNK) if swizzle else (_CHUNK, leading)
        offset = row % 8 * pitch + row // 8 * stride + piece * step
    return swizzled(start + offset, swizzle) // _CHUNK


@dataclass(frozen=True)
class InUse:
    """Registers first .. stop-1 that a product under way uses; `may_read`: its operand."""

    buffer: Buffer
    first: int
    stop: int
    may_read: bool
    lanes: Array


@dataclass
class Product:
    """One queued wgmma of one warpgroup for the blocks `rows`."""

    n: int
    k: int
    d: tuple[Buffer, int]
    a: tuple[Descriptor, int] | Array  # descriptor and start, or register values (slots, rows, 128)
    b: tuple[Descriptor, int]
    accumulate: Any
    trans: tuple[bool, bool]
    frame: Frame
    loc: Loc | None
    chunks: tuple[Array | None, Array] = (None, np.zeros(0))
    finished: bool = False
    held: tuple[Buffer, int, int] | None = None  # registers that hold A: (buffer, first, stop)

    def apart(self, acting: Array) -> tuple[Product | None, Product | None]:
        """The blocks in which this warpgroup acts, and the others."""
        frame = self.frame
        mine = acting[frame.rows, frame.lanes[0]]
        if mine.all():
            return self, None
        if not mine.any():
            return None, self
        return self._of(mine, len(acting)), self._of(~mine, len(acting))

    def _of(self, rows: Array, size: int) -> Product:
        keep = self.accumulate
        if varies(keep) and keep.shape[-2] > 1:
            keep = keep[..., rows, :]
        left = self.a if isinstance(self.a, tuple) else self.a[:, rows]
        frame = self.frame.narrowed(rows, None, size)
        return replace(self, a=left, accumulate=keep, frame=frame)

    def chains_with(self, other: Product) -> bool:
        """Whether `other` adds to the same accumulators right after this one."""
        mine, its = self.frame, other.frame
        together = mine is its or (mine.all_rows and its.all_rows and mine.lanes[0] == its.lanes[0])
        same = self.d == other.d and together and self.trans == other.trans
        from_memory = isinstance(self.a, tuple) and isinstance(other.a, tuple)
        if self.d[0].dtype.bits < 32:
            return False  # a narrow accumulator is rounded after each instruction
        return same and from_memory and not varies(other.accumulate) and bool(other.accumulate)


class TensorCore:
    """The wgmma queue of a strand: products since the last commit, and committed groups."""

    def __init__(self, group: BlockGroup) -> None:
        self.group = group
        self.queue = Queue()

    def issue(self, product: Product) -> None:
        """Queue a product; its operands are in use until it is done."""
        a, b = product.a, product.b
        chunks_a = None
        if isinstance(a, tuple):
            chunks_a = self._operand(a, _ROWS, product, product.trans[0])
        chunks_b = self._operand(b, product.n, product, product.trans[1])
        if chunks_b is None or (chunks_a is None and isinstance(a, tuple)):
            return
        product.chunks = (chunks_a, chunks_b)
        if isinstance(a, tuple):
            self._begin(a[0].buffer, chunks_a, product)
        self._begin(b[0].buffer, chunks_b, product)
        self.queue.open.append(product)
        self.group.clocks.begin(product.frame.rows, _warps(product))

    def commit(self) -> None:
        """Close a group."""
        self.queue.commit()

    def wait(self, pending: int, acting: Acting = None) -> None:
        """Finish what the acting threads have in all groups but the newest `pending`."""
        self._run(self.queue.take(pending, acting))

    def unfinished(self) -> list[InUse]:
        """Registers in use, each once."""
        found: dict[tuple[Buffer, int, int], InUse] = {}
        for p in self.queue.pending():
            for place, reads in (((p.d[0], p.d[1], p.d[1] + p.n // 2), False), (p.held, True)):
                if place is not None:
                    found.setdefault(place, InUse(*place, may_read=reads, lanes=p.frame.lanes))
        return list(found.values())

    def _operand(
        self, operand: tuple[Descriptor, int], extent: int, product: Product, transposed: bool
    ) -> Array | None:
        descriptor, start = operand
        problem = ""
        if start % _CHUNK or descriptor.leading % _CHUNK or descriptor.stride % _CHUNK:
            problem = f"a wgmma descriptor of {descriptor.buffer.said} is no multiple of 16 bytes"
        group, frame = self.group, product.frame
        if not problem:
            chunks = operand_chunks(
                start, extent, product.k, descriptor.leading, descriptor.stride,
                descriptor.swizzle, transposed, _CHUNK // descriptor.buffer.dtype.bytes,
            )  # fmt: skip
            low, high = int(chunks.min()) * _CHUNK, (int(chunks.max()) + 1) * _CHUNK
            buffer = descriptor.buffer
            if group.shared.base(buffer) <= low and high <= group.shared.end(buffer):
                return chunks
            problem = f"a wgmma descriptor of {buffer.said} reaches outside the buffer"
        code = f.OUT_OF_BOUNDS if "outside" in problem else f.MISALIGNED
        found = group.shared.element(start, descriptor.buffer)
        group.report(
            code, problem, product.loc, row=int(frame.rows[0]), thread=int(frame.lanes[0]),
            buffer=descriptor.buffer, index=found[1] if found else None,
        )  # fmt: skip
        group.stop(frame.rows)
        return None

    def _access(self, chunks: Array, product: Product) -> Access:
        rows = None if product.frame.all_rows else product.frame.rows
        return self.group.chunk_access(chunks, _warps(product)[:1], rows)

    def _begin(self, buffer: Buffer, chunks: Array | None, product: Product) -> None:
        if chunks is None or not self.group.watches:
            return
        group, shadow = self.group, self.group.shadow
        access = self._access(chunks, product)
        bad = shadow.bad_state(access, group.shared.owner(buffer))
        name = buffer.said
        if bad is not None:
            late = bad[1] == ARRIVING
            text = f"wgmma reads {name} before " + (
                "the copy into it has been waited for" if late else "it is written"
            )
            self._report(f.MISSING_WAIT if late else f.UNINITIALISED, text, product, access, bad[0])
        gap = None if bad is not None else shadow.proxy_gap(access, group.clocks)
        if gap is not None and group.findings.wants(f.RACE):
            text = f"no fence.proxy.async stands between writing {name} and the wgmma that reads it"
            self._report(f.RACE, text, product, access, gap, hint=f.PROXY_HINT)
        shadow.hold(access, 1)

    def _report(
        self,
        code: str,
        text: str,
        product: Product,
        access: Any,
        entry: int,
        other: Loc | None = None,
        hint: str = "",
    ) -> None:
        group = self.group
        row = int(product.frame.rows[0]) if access.rows is None else int(access.rows[entry])
        start = int(access.cells[entry]) * group.shadow.granule
        read = [o[0].buffer for o in (product.a, product.b) if isinstance(o, tuple)]
        held = [b for b in read if group.shared.base(b) <= start < group.shared.end(b)]
        found = group.shared.element(start, held[0] if held else None)
        group.report(
            code, text, product.loc, row=row, thread=int(product.frame.lanes[0]),
            buffer=found[0] if found else None, index=found[1] if found else None, other=other,
            hint=hint,
        )  # fmt: skip

    def _end(self, chunks: Array | None, product: Product) -> None:
        if chunks is None or not self.group.watches:
            return
        shadow = self.group.shadow
        access = self._access(chunks, product)
        shadow.hold(access, -1)
        if not self.group.findings.wants(f.RACE):
            return
        clocks = self.group.clocks
        cores = clocks.tensor_cores(_warps(product))
        clash = shadow.read_together(access, cores, clocks, product.loc, inserted=True)
        if clash is not None:
            writer = self.group.clocks.name(clash.other)
            text = f"wgmma reads what {writer} writes, with no order between them"
            hint = f.INSERTED_HINT if clash.inserted and not clash.by_copy else ""
            code = f.MISSING_WAIT if clash.by_copy else f.RACE
            self._report(code, text, product, access, clash.entry, clash.other_loc, hint)

    def _run(self, products: list[Product]) -> None:
        start = 0
        while start < len(products):
            stop = start + 1
            while stop < len(products) and products[start].chains_with(products[stop]):
                stop += 1
            self._multiply(products[start:stop])
            start = stop

    def _multiply(self, chain: list[Product]) -> None:
        """D (+)= A * B with the operands of a chain side by side along k."""
        first = chain[0]
        for product in chain:
            product.finished = True
            for chunks in product.chunks:
                self._end(chunks, product)
        self.group.clocks.end(first.frame.rows, _warps(first))
        if isinstance(first.a, tuple):
            a = self._gather(chain, 0, first.trans[0])
        else:
            a = _register_operand(first.a)
        b = self._gather(chain, 1, not first.trans[1])
        left, right = multiplicand(a), multiplicand(b)
        tile = left @ right
        _look_for_nan(self.group, first, (left, right), tile)
        self._accumulate(first, tile)

    def _gather(self, chain: list[Product], which: int, swap: bool) -> Array:
        """An operand as (rows of blocks, extent or k, ...): A as (M, K), B as (K, N)."""
        transposed = chain[0].trans[which]
        parts = [c for p in chain if (c := p.chunks[which]) is not None]
        chunks = np.concatenate(parts, axis=0 if transposed else 1)
        operand = chain[0].b if which else chain[0].a
        assert isinstance(operand, tuple)
        frame, dtype = chain[0].frame, operand[0].buffer.dtype.numpy
        data = self.group.shared.load_chunks(frame.row_key, chunks)
        data = np.ascontiguousarray(data).view(dtype)
        return data.swapaxes(1, 2) if swap else data

    def _accumulate(self, product: Product, tile: Array) -> None:
        buffer, first = product.d
        frame, half = product.frame, product.n // 2
        registers = self.group.registers
        numbers = np.arange(first, first + half).reshape(-1, 1, 1)
        dealt = tile.reshape(len(tile), -1).take(_dealing(product.n), axis=1)
        dealt = dealt.reshape(len(tile), half, 4 * WARP).swapaxes(0, 1)
        keep = product.accumulate
        old: Array | None = None
        if varies(keep) or keep:
            if not varies(keep):
                _check_written(self.group, product, numbers)
            old = registers.load(buffer, numbers, frame)
            if varies(keep):
                old = np.where(keep, old, old.dtype.type(0))
        registers.store(buffer, numbers, accumulated(old, dealt, buffer.dtype.numpy), frame)


@cache
def _dealing(n: int) -> Array:
    """Which element of a 64 x n tile each register of each lane holds, register by register:
    d[4j + 2h + e] of lane 32w + 4r + c has row 16w + 8h + r, column 8j + 2c + e."""
    split = np.arange(64 * n).reshape(4, 2, 8, n // 8, 4, 2)
    return split.transpose(3, 1, 5, 0, 2, 4).reshape(-1)


def _check_written(group: BlockGroup, product: Product, numbers: Array) -> None:
    """Report an accumulator that a product adds to before anything was written there."""
    buffer, first = product.d
    frame = product.frame
    bad = group.registers.invalid(buffer, numbers, frame)
    if bad is None or not group.findings.wants(f.UNINITIALISED):
        return
    number, row, lane = (int(i) for i in np.argwhere(bad)[0])
    group.report(
        f.UNINITIALISED,
        f"wgmma adds to {buffer.said} (register {first + number}), which was never "
        "written",
        product.loc,
        row=int(frame.rows[min(row, len(frame.rows) - 1)]),
        thread=int(frame.lanes[min(lane, len(frame.lanes) - 1)]), buffer=buffer,
    )  # fmt: skip


def _look_for_nan(
    group: BlockGroup, product: Product, operands: tuple[Array, Array], tile: Array
) -> None:
    if not group.findings.wants(f.NOT_A_NUMBER) or tile.dtype.kind != "f":
        return
    if np.isnan(tile).any() and not any(np.isnan(o).any() for o in operands):
        group.report(
            f.NOT_A_NUMBER, "a wgmma makes NaN: of infinity times zero, or of infinities of both "
            "signs", product.loc, row=int(product.frame.rows[0]),
            thread=int(product.frame.lanes[0]), buffer=product.d[0],
        )  # fmt: skip


def _warps(product: Product) -> Array:
    """The warps of a product's warpgroup."""
    first = int(product.frame.lanes[0]) // WARP
    return np.arange(first, first + 4)


def _register_operand(values: Array) -> Array:
    """A from registers (slots, blocks, 128) -> (blocks, 64, k)."""
    each = len(values) // 4
    # a[(2j + h)*each + e] of lane 32w + 4r + c: row 16w + 8h + r, column (4j + c)*each + e
    split = values.reshape(2, 2, each, values.shape[1], 4, 8, 4)
    dealt = split.transpose(3, 4, 1, 5, 0, 6, 2)
    return np.ascontiguousarray(dealt).reshape(-1, _ROWS, 8 * each)
