"""Thread IR written by hand, for the simulator's tests: small builders and two GEMMs."""

from __future__ import annotations

from typing import Any

from tilelab.dtypes import FLOAT16, UINT64, DType, as_dtype
from tilelab.errors import Loc
from tilelab.ir import (
    Buffer,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Scope,
    Seq,
    Stmt,
    Store,
    TensorParam,
    Var,
    as_expr,
    cast,
)
from tilelab.layout import SharedLayout, swizzled
from tilelab.thread import (
    Intrinsic,
    Invoke,
    Program,
    Ref,
    Role,
    SharedDescriptor,
    SharedSlot,
    TensorMap,
    ThreadKernel,
    VectorCopy,
    WarpRoles,
)
from tilelab.thread import intrinsics as I


def at(line: int) -> Loc:
    """A place that tests can recognise in findings."""
    return Loc("kernel.py", line)


class Block:
    """Collects the statements and buffers of one kernel. Each statement gets its own line."""

    def __init__(self, threads: int = 32, grid: tuple[int, ...] = (1,)) -> None:
        self.grid, self.threads = grid, threads
        self.body: list[Stmt] = []
        self.tensors: list[Buffer] = []
        self.maps: list[TensorMap] = []
        self.locals: list[Buffer] = []
        self.slots: list[SharedSlot] = []
        self.dynamic, self.static = 0, 0
        self.tx = Var("tx", lo=0, hi=threads - 1, role="thread")
        names = ("bx", "by", "bz")
        self.block = tuple(
            Var(n, lo=0, hi=g - 1, role="block") for n, g in zip(names, grid, strict=False)
        )
        self.line = 0

    def tensor(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> Buffer:
        self.tensors.append(Buffer(name, shape, as_dtype(dtype), Scope.GLOBAL))
        return self.tensors[-1]

    def local(self, name: str, count: int, dtype: str = "float32") -> Buffer:
        self.locals.append(Buffer(name, (count,), as_dtype(dtype), Scope.LOCAL))
        return self.locals[-1]

    def shared(
        self, name: str, shape: tuple[int, ...], dtype: str = "float16",
        layout: SharedLayout | None = None,
    ) -> Buffer:  # fmt: skip
        buffer = Buffer(name, shape, as_dtype(dtype), Scope.SHARED, layout=layout)
        size = buffer.dtype.bytes
        for extent in shape:
            size *= extent
        size = layout.num_bytes if layout is not None else size
        self.slots.append(SharedSlot(buffer, self.dynamic, size, True))
        self.dynamic += -(-size // 1024) * 1024
        return buffer

    def barriers(self, name: str, count: int) -> Buffer:
        buffer = Buffer(name, (count,), UINT64, Scope.BARRIER)
        self.slots.append(SharedSlot(buffer, self.static, 8 * count, False))
        self.static += 8 * count
        return buffer

    def tensor_map(self, tensor: Buffer, box: tuple[int, ...], swizzle: int = 128) -> TensorMap:
        axes = tuple(reversed(range(tensor.rank)))
        self.maps.append(TensorMap(f"{tensor.name}_desc", tensor, axes, box, swizzle))
        return self.maps[-1]

    def add(self, *stmts: Stmt) -> None:
        self.body.extend(stmts)

    def next_loc(self) -> Loc:
        self.line += 1
        return at(self.line)

    def call(self, record: Intrinsic, *operands: Any, loc: Loc | None = None) -> Invoke:
        return Invoke(record, tuple(_operand(o) for o in operands), loc=loc or self.next_loc())

    def store(self, buffer: Buffer, indices: Any, value: Any, loc: Loc | None = None) -> Store:
        indices = indices if isinstance(indices, tuple) else (indices,)
        where = tuple(as_expr(i) for i in indices)
        return Store(buffer, where, cast(value, buffer.dtype), loc=loc or self.next_loc())

    def copy(self, dst: Ref, src: Ref, count: int, loc: Loc | None = None) -> VectorCopy:
        return VectorCopy(dst, src, count, loc=loc or self.next_loc())

    def program(self) -> Program:
        kernel = ThreadKernel(
            "kernel", tuple(self.maps), tuple(self.tensors), (),
            tuple(as_expr(g) for g in self.grid), (self.threads,), (self.threads,), self.block,
            (self.tx,), tuple(self.locals), tuple(self.slots), self.dynamic, self.static,
            Seq(tuple(self.body)),
        )  # fmt: skip
        params = tuple(TensorParam(t) for t in self.tensors)
        return Program("kernel", params, (), (kernel,), ())


def _operand(value: Any) -> Any:
    known = isinstance(value, Expr | Ref | SharedDescriptor | TensorMap)
    return value if known else as_expr(value)


def ref(buffer: Buffer, *indices: Any, count: int = 1) -> Ref:
    return Ref(buffer, tuple(as_expr(i) for i in indices), count)


def load(buffer: Buffer, *indices: Any) -> Load:
    return Load(buffer, tuple(as_expr(i) for i in indices))


def loop(var: Var, extent: Any, *body: Stmt, kind: LoopKind = LoopKind.SERIAL) -> For:
    return For(var, as_expr(0), as_expr(extent), as_expr(1), kind, Seq(body))


def lanes(var: Var, extent: int, *body: Stmt) -> For:
    return loop(var, extent, *body, kind=LoopKind.LANES)


def when(cond: Any, *body: Stmt, orelse: tuple[Stmt, ...] | None = None) -> If:
    return If(as_expr(cond), Seq(body), None if orelse is None else Seq(orelse))


def tile(rows: int, cols: int, stages: int, dtype: DType = FLOAT16) -> SharedLayout:
    return swizzled((stages, rows, cols), dtype.bits, 128)


def hopper_gemm(
    M: int, N: int, K: int, stages: int = 3, bm: int = 128, bn: int = 128, bk: int = 64
) -> Program:
    """TMA ring, a consumer and a producer warpgroup, wgmma: C[M, N] = A[M, K] @ B[K, N]."""
    b = Block(256, (N // bn, M // bm))
    A, B = b.tensor("A", (M, K), "float16"), b.tensor("B", (K, N), "float16")
    C = b.tensor("C", (M, N), "float32")
    map_a, map_b = b.tensor_map(A, (64, bm)), b.tensor_map(B, (64, bk))
    A_s = b.shared("A_shared", (stages, bm, bk), layout=tile(bm, bk, stages))
    B_s = b.shared("B_shared", (stages, bk, bn), layout=tile(bk, bn, stages))
    full, empty = b.barriers("full", stages), b.barriers("empty", stages)
    acc = b.local("C_local", bm * bn // 128)
    bx, by = b.block
    i = Var("i")
    b.add(
        when(
            b.tx == 0,
            loop(i, stages, b.call(I.MBARRIER_INIT, ref(full, i), 1),
                 b.call(I.MBARRIER_INIT, ref(empty, i), 1)),
            b.call(I.MBARRIER_INIT_FENCE),
        ),
        b.call(I.SYNCTHREADS),
        WarpRoles((
            Role("consumer", 0, 128, _consumer(b, A_s, B_s, full, empty, acc, C, K // bk, stages)),
            Role("producer", 128, 128, _producer(
                b, map_a, map_b, A_s, B_s, full, empty, (by * bm, bx * bn), K // bk, stages)),
        )),
    )  # fmt: skip
    return b.program()


def _producer(
    b: Block, map_a: TensorMap, map_b: TensorMap, A_s: Buffer, B_s: Buffer, full: Buffer,
    empty: Buffer, corner: tuple[Expr, Expr], steps: int, stages: int,
) -> Seq:  # fmt: skip
    ko = Var("ko", lo=0, hi=steps - 1)
    slot, phase = ko % stages, ko // stages % 2
    _, bm, bk = A_s.static_shape
    bn = B_s.static_shape[2]
    row, col = corner
    loads = [
        b.call(I.tma_load(2), map_b, ref(full, slot), ref(B_s, slot, 0, j), col + j, ko * bk)
        for j in range(0, bn, 64)
    ]
    body = loop(
        ko, steps,
        b.call(I.MBARRIER_WAIT, ref(empty, slot), phase ^ 1),
        b.call(I.MBARRIER_EXPECT_TX, ref(full, slot), 2 * bk * (bm + bn)),
        b.call(I.tma_load(2), map_a, ref(full, slot), ref(A_s, slot, 0, 0), ko * bk, row),
        *loads,
    )  # fmt: skip
    return Seq((b.call(I.warpgroup_reg_dealloc(24)), when(b.tx == 128, body)))


def _consumer(
    b: Block, A_s: Buffer, B_s: Buffer, full: Buffer, empty: Buffer, acc: Buffer, C: Buffer,
    steps: int, stages: int,
) -> Seq:  # fmt: skip
    _, bm, bk = A_s.static_shape
    bn = B_s.static_shape[2]
    ko = Var("ko", lo=0, hi=steps - 1)
    slot, phase = ko % stages, ko // stages % 2
    products: list[Stmt] = []
    for slab in range(bm // 64):
        for kk in range(bk // 16):
            left = SharedDescriptor(ref(A_s, slot, 64 * slab, 0), 16, 1024, 128, as_expr(32 * kk))
            right = SharedDescriptor(ref(B_s, slot, 16 * kk, 0), bk * 128, 1024, 128)
            products.append(
                b.call(I.wgmma_ss(bn, "f16", False, True), left, right,
                       ref(acc, slab * bn // 2, count=bn // 2), (ko > 0) | (kk > 0))
            )  # fmt: skip
    main = loop(
        ko, steps,
        b.call(I.MBARRIER_WAIT, ref(full, slot), phase),
        b.call(I.WARPGROUP_ARRIVE),
        *products,
        b.call(I.WARPGROUP_COMMIT),
        b.call(I.warpgroup_wait(0)),
        when(b.tx == 0, b.call(I.MBARRIER_ARRIVE, ref(empty, slot))),
    )  # fmt: skip
    return Seq((b.call(I.warpgroup_reg_alloc(240)), main, _write_back(b, acc, C, bm, bn)))


def _write_back(b: Block, acc: Buffer, C: Buffer, bm: int, bn: int) -> Stmt:
    """Accumulator registers of one warpgroup, element by element."""
    r = Var("r", lo=0, hi=bm * bn // 128 - 1)
    slab, rest = r // (bn // 2), r % (bn // 2)
    bx, by = b.block
    row = slab * 64 + b.tx // 32 * 16 + b.tx % 32 // 4 + rest // 2 % 2 * 8
    col = rest // 4 * 8 + b.tx % 4 * 2 + rest % 2
    return lanes(r, bm * bn // 128, b.store(C, (by * bm + row, bx * bn + col), load(acc, r)))


def ampere_gemm(M: int, N: int, K: int, stages: int = 3) -> Program:
    """cp.async in stages, ldmatrix, mma.sync: 4 warps, each 16 rows of a 64x64 tile."""
    b = Block(128, (N // 64, M // 64))
    A, B = b.tensor("A", (M, K), "float16"), b.tensor("B", (K, N), "float16")
    C = b.tensor("C", (M, N), "float32")
    A_s = b.shared("A_shared", (stages, 64, 64), layout=tile(64, 64, stages))
    B_s = b.shared("B_shared", (stages, 64, 64), layout=tile(64, 64, stages))
    acc, steps = b.local("C_local", 32), K // 64
    first, ko, r = Var("first"), Var("ko", lo=0, hi=steps - 1), Var("r", lo=0, hi=31)
    bx, by = b.block
    lane, warp = b.tx % 32, b.tx // 32

    def fetch(step: Any) -> Stmt:
        i = Var("i", lo=0, hi=3)
        row, col = (i * 128 + b.tx) // 8, (i * 128 + b.tx) % 8 * 8
        from_a = ref(A, by * 64 + row, step * 64 + col, count=8)
        from_b = ref(B, step * 64 + row, bx * 64 + col, count=8)
        return lanes(
            i, 4,
            b.call(I.cp_async(16), ref(A_s, step % stages, row, col, count=8), from_a),
            b.call(I.cp_async(16), ref(B_s, step % stages, row, col, count=8), from_b),
        )  # fmt: skip

    row = warp * 16 + lane // 4 + r // 2 % 2 * 8
    col = r // 4 * 8 + lane % 4 * 2 + r % 2
    b.add(
        lanes(r, 32, b.store(acc, r, 0.0)),
        loop(first, stages - 1, fetch(first), b.call(I.CP_ASYNC_COMMIT)),
        loop(
            ko, steps,
            b.call(I.cp_async_wait(stages - 2)),
            b.call(I.SYNCTHREADS),
            when(ko + (stages - 1) < steps, fetch(ko + (stages - 1))),
            b.call(I.CP_ASYNC_COMMIT),
            _multiply_tile(b, A_s, B_s, acc, ko % stages),
        ),
        lanes(r, 32, b.store(C, (by * 64 + row, bx * 64 + col), load(acc, r))),
    )  # fmt: skip
    return b.program()


def _multiply_tile(b: Block, A_s: Buffer, B_s: Buffer, acc: Buffer, slot: Expr) -> Stmt:
    a, bb = b.local("A_local", 8, "float16"), b.local("B_local", 32, "float16")
    kk, j, n = Var("kk", lo=0, hi=3), Var("j", lo=0, hi=3), Var("n", lo=0, hi=7)
    lane, warp = b.tx % 32, b.tx // 32
    a_row = ref(A_s, slot, warp * 16 + lane % 16, kk * 16 + lane // 16 * 8)
    b_row = ref(B_s, slot, kk * 16 + lane % 16, j * 16 + lane // 16 * 8)
    return loop(
        kk, 4,
        b.call(I.ldmatrix(4, False), ref(a, 0, count=8), a_row),
        lanes(j, 4, b.call(I.ldmatrix(4, True), ref(bb, j * 8, count=8), b_row)),
        lanes(n, 8, b.call(I.mma_sync("f16"), ref(acc, n * 4, count=4), ref(a, 0, count=8),
                           ref(bb, n * 4, count=4))),
    )  # fmt: skip
