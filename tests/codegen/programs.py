"""Small thread IR programs written by hand, for the tests of everything that reads thread IR."""

from __future__ import annotations

from typing import Any

from tilelab.dtypes import DTYPES, FLOAT16, FLOAT32, UINT64
from tilelab.errors import Loc
from tilelab.ir import (
    Buffer,
    Expr,
    For,
    If,
    Let,
    LoopKind,
    Scope,
    Seq,
    Store,
    TensorParam,
    Var,
    as_expr,
    call,
    cast,
)
from tilelab.layout import swizzled
from tilelab.thread import intrinsics as I
from tilelab.thread.nodes import (
    Comment,
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


def loc(line: int) -> Loc:
    """A place in an imagined user's file."""
    return Loc("user.py", line)


def tensor(name: str, shape: tuple[Any, ...], dtype: Any = FLOAT16, **more: Any) -> Buffer:
    """A tensor parameter's buffer."""
    return Buffer(name, shape, dtype, Scope.GLOBAL, loc=loc(2), **more)


def exprs(*values: Any) -> tuple[Expr, ...]:
    """Indices."""
    return tuple(as_expr(v) for v in values)


def do(record: Any, *operands: Any, reason: str = "", line: int = 9) -> Invoke:
    """An instruction."""
    values = tuple(as_expr(o) if isinstance(o, int) else o for o in operands)
    return Invoke(record, values, reason, loc=loc(line))


def loop(var: Var, extent: Any, *body: Any, kind: LoopKind = LoopKind.SERIAL, line: int = 7) -> For:
    """A loop from 0 by 1."""
    return For(var, as_expr(0), as_expr(extent), as_expr(1), kind, Seq(body), loc=loc(line))


def kernel(name: str, body: Seq, **parts: Any) -> ThreadKernel:
    """A kernel with empty parts where none are given."""
    threads = parts.pop("threads", (128,))
    empty: dict[str, Any] = {
        "maps": (), "tensors": (), "scalars": (), "grid": exprs(1), "user_threads": threads,
        "block_vars": (), "thread_vars": (), "locals": (), "shared": (), "dynamic_bytes": 0,
        "static_bytes": 0, "loc": loc(1),
    }  # fmt: skip
    return ThreadKernel(name=name, threads=threads, body=body, **(empty | parts))


def program(k: ThreadKernel, params: tuple[Buffer, ...], sizes: tuple[Var, ...] = ()) -> Program:
    """A program of one kernel."""
    return Program(k.name, tuple(TensorParam(b) for b in params), sizes, (k,), ())


def elementwise() -> Program:
    """C = max(A + B, 0) over a dynamic length; the last block's tail is guarded."""
    n = Var("n", lo=0, role="size")
    a, b, c = (tensor(name, (n,)) for name in "ABC")
    bx, tx = Var("bx", lo=0, role="block"), Var("tx", lo=0, hi=127, role="thread")
    i = Var("i", lo=0)
    total = cast(a[i], FLOAT32) + cast(b[i], FLOAT32)
    store = Store(c, (i,), call("max", total, 0.0), loc=loc(6))
    body = Seq((Let(i, bx * 128 + tx, loc=loc(5)), If(i < n, Seq((store,)), loc=loc(5))))
    k = kernel(
        "relu", body, tensors=(a, b, c), scalars=(n,), grid=((n + 127) // 128,), block_vars=(bx,),
        thread_vars=(tx,),
    )  # fmt: skip
    return program(k, (a, b, c), (n,))


def async_copy() -> Program:
    """B = A through shared memory by cp.async, read back rotated by a row."""
    a, b = tensor("A", (64, 64)), tensor("B", (64, 64))
    tile = Buffer("tile", (64, 64), FLOAT16, Scope.SHARED, layout=swizzled((64, 64), 16, 128))
    regs = Buffer("regs", (8,), FLOAT16, Scope.LOCAL)
    tx, r = Var("tx", lo=0, hi=127, role="thread"), Var("r", lo=0, hi=3)
    row, col = tx // 8 + r * 16, tx % 8 * 8
    there = ((row + 1) % 64, col)
    copy = do(I.cp_async(16), Ref(tile, (row, col), 8), Ref(a, (row, col), 8), line=4)
    body = Seq((
        loop(r, 4, copy, kind=LoopKind.UNROLL, line=4),
        do(constant(I.CP_ASYNC_COMMIT), line=4),
        do(I.cp_async_wait(0), line=5),
        do(constant(I.SYNCTHREADS), reason="every row of tile has arrived", line=5),
        loop(
            r, 4,
            VectorCopy(Ref(regs, exprs(0), 8), Ref(tile, there, 8), 8, loc=loc(6)),
            VectorCopy(Ref(b, (row, col), 8), Ref(regs, exprs(0), 8), 8, loc=loc(6)),
            kind=LoopKind.UNROLL, line=6,
        ),
    ))  # fmt: skip
    k = kernel(
        "rotate", body, tensors=(a, b), thread_vars=(tx,), locals=(regs,), dynamic_bytes=8192,
        shared=(SharedSlot(tile, 0, 8192, True),),
    )  # fmt: skip
    return program(k, (a, b))


def constant(record: Any) -> Any:
    """A record without parameters, whether it is a value or a cached function."""
    return record() if callable(record) else record


STAGES, STEPS = 3, 16


def _stages(name: str, shape: tuple[int, int]) -> Buffer:
    """A swizzled shared tile, once for each stage."""
    full = (STAGES, *shape)
    return Buffer(name, full, FLOAT16, Scope.SHARED, layout=swizzled(full, 16, 128))


def gemm(size: int = 1024) -> Program:
    """The textbook Hopper GEMM: 128x128x64 tiles, 3 TMA stages, producer and consumer groups."""
    a, b, c = (tensor(name, (size, size)) for name in "ABC")
    boxes = ((a, (64, 128)), (b, (64, 64)))
    maps = tuple(TensorMap(f"{t.name}_desc", t, (1, 0), box, 128) for t, box in boxes)
    shared = [_stages(f"{n}_shared", s) for n, s in (("A", (128, 64)), ("B", (64, 128)))]
    bars = Buffer("mbarrier", (2 * STAGES,), UINT64, Scope.BARRIER)
    acc = Buffer("C_local", (128,), FLOAT32, Scope.LOCAL)
    bx, by = (Var(n, lo=0, hi=size // 128 - 1, role="block") for n in ("bx", "by"))
    tx = Var("tx", lo=0, hi=255, role="thread")
    body = Seq((
        If(tx.__eq__(0), Seq(_barrier_init(bars)), loc=loc(3)),
        do(constant(I.SYNCTHREADS), reason="barriers are initialised"),
        WarpRoles((
            Role("producer", 128, 128, _producer(maps, shared, bars, bx, by, tx)),
            Role("consumer", 0, 128, _consumer(shared, bars, acc, c, bx, by, tx)),
        ), loc=loc(7)),
    ))  # fmt: skip
    k = kernel(
        "gemm", body, maps=maps, tensors=(c,), grid=exprs(size // 128, size // 128),
        threads=(256,), user_threads=(128,), block_vars=(bx, by), thread_vars=(tx,), locals=(acc,),
        shared=(SharedSlot(shared[0], 0, 49152, True), SharedSlot(shared[1], 49152, 49152, True),
                SharedSlot(bars, 0, 48, False)),
        dynamic_bytes=98304, static_bytes=48,
    )  # fmt: skip
    return program(k, (a, b, c))


def _barrier_init(bars: Buffer) -> tuple[Any, ...]:
    init = constant(I.MBARRIER_INIT)
    full = [do(init, Ref(bars, exprs(s)), 1) for s in range(STAGES)]
    empty = [do(init, Ref(bars, exprs(STAGES + s)), 128) for s in range(STAGES)]
    return (*full, *empty, do(constant(I.MBARRIER_INIT_FENCE)))


def _producer(
    maps: tuple[TensorMap, ...], shared: list[Buffer], bars: Buffer, bx: Var, by: Var, tx: Var
) -> Seq:
    ko = Var("ko", lo=0, hi=STEPS - 1)
    slot, p = ko % STAGES, Var("p", lo=0, hi=1)
    full, empty = Ref(bars, (slot,)), Ref(bars, (slot + STAGES,))
    load = I.tma_load(2)
    copies = [do(load, maps[0], full, Ref(shared[0], (slot, *exprs(0, 0))), ko * 64, by * 128)]
    copies.append(
        loop(
            p, 2,
            do(load, maps[1], full, Ref(shared[1], (slot, as_expr(0), p * 64)),
               bx * 128 + p * 64, ko * 64),
            kind=LoopKind.UNROLL,
        )
    )  # fmt: skip
    body = (
        do(constant(I.MBARRIER_WAIT), empty, (ko // STAGES + 1) % 2, reason="the slot is free"),
        do(constant(I.MBARRIER_EXPECT_TX), full, 32768),
        *copies,
    )
    run = If((tx % 128).__eq__(0), Seq((loop(ko, STEPS, *body),)), loc=loc(7))
    return Seq((do(I.warpgroup_reg_dealloc(24)), run))


def _consumer(
    shared: list[Buffer], bars: Buffer, acc: Buffer, c: Buffer, bx: Var, by: Var, tx: Var
) -> Seq:
    ko, r, h, k = (Var(n, lo=0, hi=hi) for n, hi in (("ko", 15), ("r", 63), ("h", 1), ("k", 3)))
    slot = ko % STAGES
    da = SharedDescriptor(Ref(shared[0], (slot, h * 64, as_expr(0))), 16, 1024, 128, k * 32)
    db = SharedDescriptor(Ref(shared[1], (slot, k * 16, as_expr(0))), 8192, 1024, 128)
    mma = do(I.wgmma_ss(128, "f16", False, True), da, db, Ref(acc, (h * 64,), 64), 1)
    body = (
        do(constant(I.MBARRIER_WAIT), Ref(bars, (slot,)), ko // STAGES % 2, reason="A, B arrived"),
        do(constant(I.WARPGROUP_ARRIVE)),
        loop(k, 4, loop(h, 2, mma, kind=LoopKind.UNROLL), kind=LoopKind.UNROLL),
        do(constant(I.WARPGROUP_COMMIT)),
        do(I.warpgroup_wait(0)),
        do(constant(I.MBARRIER_ARRIVE), Ref(bars, (slot + STAGES,)), reason="the slot is read"),
    )
    i = Var("i", lo=0, hi=127)
    clear = loop(i, 128, Store(acc, (i,), as_expr(0.0), loc=loc(6)), kind=LoopKind.LANES, line=6)
    return Seq((
        do(I.warpgroup_reg_alloc(240)),
        clear,
        loop(ko, STEPS, *body),
        Comment("C_local -> C", loc=loc(12)),
        loop(h, 2, loop(r, 64, _write_back(c, acc, bx, by, tx, h, r), kind=LoopKind.LANES),
             kind=LoopKind.UNROLL, line=12),
    ))  # fmt: skip


def _write_back(c: Buffer, acc: Buffer, bx: Var, by: Var, tx: Var, h: Var, r: Var) -> Store:
    row = by * 128 + h * 64 + tx // 32 * 16 + r // 2 % 2 * 8 + tx % 32 // 4
    col = bx * 128 + r // 4 * 8 + tx % 4 * 2 + r % 2
    return Store(c, (row, col), acc[h * 64 + r], loc=loc(12))


ALL = {"elementwise": elementwise, "async_copy": async_copy, "gemm": gemm}
DTYPE_NAMES = tuple(DTYPES)
