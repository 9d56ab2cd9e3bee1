"""emit(): whole programs as text, their line map, and what NVRTC makes of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.codegen import programs
from tests.codegen.programs import do, exprs, kernel, loc, loop, program, tensor
from tests.thread.nvrtc import compile_cuda, needs_nvrtc
from tilelab.codegen import CudaSource, emit
from tilelab.codegen.roles import conditions
from tilelab.dtypes import BOOL, DTYPES, FLOAT16, FLOAT32, INT32
from tilelab.errors import Loc, TileInternalError
from tilelab.ir import (
    Break,
    Buffer,
    Cast,
    Const,
    For,
    If,
    Let,
    LoopKind,
    ScalarBuffer,
    Scope,
    Seq,
    Store,
    Var,
    While,
    as_expr,
)
from tilelab.layout import swizzled
from tilelab.target import SM80, SM90A
from tilelab.thread import Ref, Role, VectorCopy
from tilelab.thread import intrinsics as I
from tilelab.thread.nodes import SharedSlot

ZERO, ONE = as_expr(0), as_expr(1)
X = Var("x", lo=0)
OUT = tensor("out", (64,), FLOAT32)


def body_of(*stmts: Any, **parts: Any) -> list[str]:
    """Lines of a kernel's body; `out` and `x` are its parameters."""
    parts = {"tensors": (OUT,), "scalars": (X,)} | parts
    source = emit(program(kernel("k", Seq(stmts), **parts), parts["tensors"]))
    lines = source.kernel_text("k").splitlines()
    return lines[next(i for i, line in enumerate(lines) if line.endswith("{")) + 1 : -1]


def put(index: Any, value: Any = 0.0) -> Store:
    return Store(OUT, exprs(index), as_expr(value), loc=loc(5))


# ---- whole programs -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", programs.ALL)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    source = emit(programs.ALL[name]())
    golden(f"cuda_{name}", source.kernel_text(source.kernel_names[0]))


@pytest.mark.parametrize("name", programs.ALL)
def test_text_is_deterministic_and_narrow(name: str) -> None:
    first, second = (emit(programs.ALL[name]()) for _ in range(2))
    assert first.text == second.text
    for line in first.kernel_text(first.kernel_names[0]).splitlines():
        assert len(line.split("  // ")[0]) <= 100


def test_gemm_has_the_textbook_structure() -> None:
    text = emit(programs.gemm()).kernel_text("gemm")
    assert len(text.splitlines()) <= 99
    for part in (
        '__launch_bounds__(256, 1)', "const __grid_constant__ TensorMap A_desc",
        "u64 mbarrier[6];", "buf_dyn_shmem + 49152", "if (threadIdx.x >= 128) {",
        "tl::warpgroup_reg_dealloc<24>();", "tl::warpgroup_reg_alloc<240>();",
        "tl::wgmma_ss<64, 128, 16, half, 0, 1>(", "tl::tma_load(A_desc, mbarrier[ko % 3],",
    ):  # fmt: skip
        assert part in text, part


def test_only_what_is_used_stands_in_the_head() -> None:
    plain = emit(programs.elementwise()).text
    assert "namespace" not in plain and "TensorMap" not in plain and "typedef" not in plain
    assert plain.startswith("#include <cuda_fp16.h>\n")
    gemm = emit(programs.gemm()).text
    helpers = re.findall(r"void (\w+)[(<]", gemm.split('extern "C"')[0])
    assert "cp_async" not in helpers and gemm.count("void mbarrier_wait(") == 1
    assert "cuda_bf16" not in gemm and "typedef unsigned int u32;" in gemm


@needs_nvrtc
@pytest.mark.parametrize(
    ("name", "target", "sass"),
    [
        ("elementwise", SM80, ()),
        ("elementwise", SM90A, ()),
        ("async_copy", SM80, ("LDGSTS",)),
        ("async_copy", SM90A, ("LDGSTS",)),
        ("gemm", SM90A, ("HGMMA", "UTMALDG", "USETMAXREG", "SYNCS")),
    ],
    ids=str,
)
def test_compiles_without_spills(name: str, target: Any, sass: tuple[str, ...]) -> None:
    code, log = compile_cuda(emit(programs.ALL[name]()).text, target)
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    assert not re.search(r"C75\d\d", log), log  # wgmma was not serialised
    for instruction in sass:
        assert instruction in code, instruction


@needs_nvrtc
@pytest.mark.parametrize("target", [SM80, SM90A], ids=str)
def test_every_conversion_compiles(target: Any) -> None:
    kinds = list(DTYPES.values())
    outs = [Buffer(f"to_{d}", (64,), d, Scope.GLOBAL) for d in kinds]
    ins = [Buffer(f"from_{d}", (64,), d, Scope.GLOBAL) for d in kinds]
    stores = [
        Store(out, exprs(n), Cast(out.dtype, src[n]) if out.dtype != src.dtype else src[n])
        for out in outs
        for n, src in enumerate(ins)
    ]
    consts = [Store(out, exprs(63), Const(1, out.dtype)) for out in outs]
    k = kernel("convert", Seq((*stores, *consts)), tensors=(*outs, *ins))
    compile_cuda(emit(program(k, (*outs, *ins))).text, target)


@needs_nvrtc
def test_awkward_programs_compile() -> None:
    """Floor helpers, 64-bit addresses, dynamic steps, unusual names, two kernels of one name."""
    n, step = Var("n", lo=0, role="size"), Var("int", lo=1)
    a = tensor("half", (n, n), FLOAT16)
    i, t = Var("class"), Var("threadIdx", lo=0)
    body = Seq((
        Let(t, (n - 7) // 3 % 5),
        For(i, t, n, step, LoopKind.SERIAL, Seq((Store(a, (i, t), a[t, i] + 1.0),))),
    ))  # fmt: skip
    kernels = [kernel("main", body, tensors=(a,), scalars=(n, step)) for _ in range(2)]
    source = emit(replace(program(kernels[0], (a,), (n,)), kernels=tuple(kernels)))
    assert source.kernel_names == ("main_kernel", "main_kernel_1")
    code, _ = compile_cuda(source.text, SM80)
    assert "main_kernel_1" in code


# ---- the line map -------------------------------------------------------------------------------


def lines(source: CudaSource, line: int) -> list[str]:
    text = source.text.splitlines()
    return [text[n - 1].strip() for n in source.lines_of_loc("user.py", line)]


def test_python_lines_lead_to_cuda_lines() -> None:
    source = emit(programs.gemm())
    clear = "for (int i = 0; i < 128; ++i) C_local[i] = 0.0f;"
    assert lines(source, 6) == ["#pragma unroll", clear]
    assert any("C[" in line for line in lines(source, 12))
    assert lines(source, 999) == [] and source.lines_of_loc("other.py", 6) == ()


def test_links_lead_back_to_nodes() -> None:
    source = emit(programs.elementwise())
    number = next(n for n, line in enumerate(source.text.splitlines(), 1) if "fmaxf" in line)
    assert [type(k.node).__name__ for k in source.links_of_line(number)] == ["If", "Store"]


def test_callers_of_macros_are_found_too() -> None:
    inner = Loc("user.py", 40, caller=Loc("user.py", 50, end_line=52))
    k = kernel("k", Seq((Store(OUT, exprs(0), as_expr(0.0), loc=inner),)), tensors=(OUT,))
    source = emit(program(k, (OUT,)))
    assert source.lines_of_loc("user.py", 40) == source.lines_of_loc("user.py", 51) != ()


def test_kernel_text_lists_names() -> None:
    with pytest.raises(KeyError, match="relu"):
        emit(programs.elementwise()).kernel_text("other")


# ---- statements ---------------------------------------------------------------------------------


def test_loops() -> None:
    i = Var("i")
    twice = (put(i), put(i + 1))
    assert body_of(loop(i, 4, *twice))[0] == "  for (int i = 0; i < 4; ++i) {"
    assert body_of(loop(i, X, put(i))) == ["  for (int i = 0; i < x; ++i) out[i] = 0.0f;"]
    assert body_of(loop(i, 4, put(i), kind=LoopKind.UNROLL))[0] == "  #pragma unroll"
    down = For(i, as_expr(8), as_expr(4), as_expr(-2), LoopKind.SERIAL, Seq((put(i),)))
    assert body_of(down) == ["  for (int i = 8; i > 0; i -= 2) out[i] = 0.0f;"]
    assert body_of(loop(i, 0, put(i))) == []


def test_a_loop_of_one_iteration_leaves_no_text() -> None:
    i, j = Var("i"), Var("j")
    assert body_of(loop(i, 1, loop(j, 1, put(i + j + X)))) == ["  out[x] = 0.0f;"]
    once = For(i, X * 2, ONE, ONE, LoopKind.SERIAL, Seq((put(i),)))
    assert body_of(once) == ["  const int i = x * 2;", "  out[i] = 0.0f;"]
    kept = loop(i, 1, If(X < 1, Seq((Break(),))), put(i))
    assert body_of(kept)[0] == "  for (int i = 0; i < 1; ++i) {"


def test_a_loops_end_is_decided_before_it_starts() -> None:
    i = Var("i")
    count = ScalarBuffer("count", (1,), INT32, Scope.LOCAL)
    text = body_of(loop(i, count + 0, put(i)), locals=(count,))
    assert text[1] == "  for (int i = 0, i_end = count; i < i_end; ++i) out[i] = 0.0f;"


def test_a_step_known_at_run_time_counts_iterations() -> None:
    i, step = Var("i"), Var("step")
    stmt = For(i, X, as_expr(4), step, LoopKind.SERIAL, Seq((put(i),)))
    assert body_of(stmt, scalars=(X, step)) == [
        "  for (int i_count = 0; i_count < 4; ++i_count) {",
        "    const int i = x + i_count * step;",
        "    out[i] = 0.0f;",
        "  }",
    ]


def test_branches() -> None:
    chain = If(X < 1, Seq((put(0),)), Seq((If(X < 2, Seq((put(1),)), Seq((put(2),))),)))
    assert [line.strip() for line in body_of(chain)] == [
        "if (x < 1) {", "out[0] = 0.0f;", "} else if (x < 2) {", "out[1] = 0.0f;", "} else {",
        "out[2] = 0.0f;", "}",
    ]  # fmt: skip
    assert body_of(If(X < 1, Seq((put(0),)))) == ["  if (x < 1) out[0] = 0.0f;"]
    assert body_of(While(X < 1, Seq((put(0), put(1)))))[0] == "  while (x < 1) {"


def test_names_are_kept_and_told_apart() -> None:
    i, again, inner = Var("i"), Var("i"), Var("i")
    nested = loop(i, 4, loop(inner, 4, put(i + inner)))
    text = "\n".join(body_of(nested, loop(again, 4, put(again))))
    assert "out[i + i_1]" in text and "out[i] " in text
    v = Var("int", FLOAT32)
    assert body_of(Let(v, as_expr(1.0)), put(0, v))[0] == "  const float int_1 = 1.0f;"
    v = Var("größe")
    assert body_of(Let(v, X), put(v))[1] == "  out[gr_uf6_udfe] = 0.0f;"


def test_compound_assignment() -> None:
    assert body_of(put(X, OUT[X] + 1.0)) == ["  out[x] += 1.0f;"]
    assert body_of(put(X, OUT[X + 1] * 2.0)) == ["  out[x] = out[x + 1] * 2.0f;"]


def test_scalar_variables_have_no_index() -> None:
    """One that may be read before anything is stored begins at 0."""
    v = ScalarBuffer("v", (1,), FLOAT32, Scope.LOCAL)
    text = body_of(Store(v, (ZERO,), v + 1.0), put(0, v.__expr__()), locals=(v,))
    assert text == ["  float v = 0.0f;", "  v += 1.0f;", "  out[0] = v;"]


@pytest.mark.parametrize(
    ("dtype", "count", "vector"),
    [(FLOAT16, 2, "u32"), (FLOAT16, 4, "uint2"), (FLOAT16, 8, "uint4"), (DTYPES["int8"], 2, "u16")],
)
def test_vector_copies(dtype: Any, count: int, vector: str) -> None:
    a, b = (tensor(n, (64,), dtype) for n in "ab")
    copy = VectorCopy(Ref(a, (X * count,)), Ref(b, (ZERO,)), count)
    (line,) = body_of(copy, tensors=(a, b))
    target = f"a + x * {count}"
    assert line.strip() == (
        f"*reinterpret_cast<{vector}*>({target}) = *reinterpret_cast<const {vector}*>(b);"
    )


def test_a_copy_of_one_element_is_an_assignment() -> None:
    a, b = (tensor(n, (64,), FLOAT16) for n in "ab")
    copy = VectorCopy(Ref(a, (X,)), Ref(b, (ONE,)), 1)
    assert body_of(copy, tensors=(a, b)) == ["  a[x] = b[1];"]


def test_impossible_vectors_are_reported() -> None:
    a, b = (tensor(n, (64,), FLOAT16) for n in "ab")
    with pytest.raises(TileInternalError, match="6 bytes"):
        body_of(VectorCopy(Ref(a, (X,)), Ref(b, (ONE,)), 3), tensors=(a, b))


# ---- addresses ----------------------------------------------------------------------------------


def stored(buffer: Buffer, *indices: Any, **parts: Any) -> str:
    stmt = Store(buffer, exprs(*indices), Const(0, buffer.dtype))
    parts = {"tensors": (buffer,), "scalars": (X, N)} | parts
    return body_of(stmt, **parts)[-1].strip().split(" = ")[0]


N = Var("n", lo=0, role="size")
Y = Var("y", lo=0)


def test_small_tensors_have_32_bit_addresses() -> None:
    assert stored(tensor("a", (8, 64)), X + 1, 2) == "a[(x + 1) * 64 + 2]"
    assert stored(tensor("a", (4, 8, 64)), X, 0, N) == "a[x * 512 + n]"


def test_large_and_dynamic_tensors_have_64_bit_addresses() -> None:
    assert stored(tensor("a", (1 << 16, 1 << 15)), X, N) == "a[i64(x) * 32768 + n]"
    assert stored(tensor("a", (N, N, N)), X, 1, X) == "a[i64(x) * i64(n) * n + n + x]"
    assert stored(tensor("a", (N, N)), X, N) == "a[i64(x) * n + n]"
    assert stored(tensor("a", (N,)), X) == "a[x]"


def test_given_strides_are_used() -> None:
    assert stored(tensor("a", (8, 8), strides=(1, 8)), X, N) == "a[x + n * 8]"
    assert stored(tensor("a", (8, 8), strides=(N, 1)), X, 3) == "a[i64(x) * n + 3]"


def test_shared_layouts_are_used() -> None:
    tile = Buffer("tile", (64, 64), FLOAT16, Scope.SHARED, layout=swizzled((64, 64), 16, 128))
    slot = SharedSlot(tile, 0, 8192, False)
    row = Var("r", lo=0, hi=63)
    text = stored(tile, row, 9, tensors=(), scalars=(row,), shared=(slot,))
    assert text == "tile[r * 64 + (1 ^ (r % 8)) * 8 + 1]"


# ---- signatures and roles -----------------------------------------------------------------------


def test_written_tensors_are_not_const() -> None:
    a, b = tensor("a", (64,)), tensor("b", (64,))
    text = emit(program(kernel("k", Seq((VectorCopy(Ref(a, (ZERO,)), Ref(b, (ZERO,)), 8),)),
                               tensors=(a, b)), (a, b))).text  # fmt: skip
    assert "k(half* __restrict__ a, const half* __restrict__ b) {" in text


def test_atomic_targets_and_tma_stores_are_written() -> None:
    c = tensor("c", (64, 64))
    m = programs.TensorMap("c_desc", c, (1, 0), (64, 8), 128)
    tile = Buffer("tile", (8, 64), FLOAT16, Scope.SHARED)
    send = do(I.tma_store(2), m, Ref(tile, (ZERO, ZERO)), 0, 0)
    slot = SharedSlot(tile, 0, 1024, True)
    k = kernel("k", Seq((send,)), maps=(m,), tensors=(c,), shared=(slot,))
    assert ", half* __restrict__ c)" in emit(program(k, (c,))).text


def roles(*spans: tuple[int, int]) -> list[Role]:
    return [Role("r", first, count, Seq(())) for first, count in spans]


@pytest.mark.parametrize(
    ("spans", "chain"),
    [
        (((128, 128), (0, 128)), ["threadIdx.x >= 128", ""]),
        (((0, 128), (128, 128)), ["threadIdx.x < 128", ""]),
        (((0, 64), (64, 64), (128, 128)), ["threadIdx.x < 64", "threadIdx.x < 128", ""]),
        (((64, 64), (0, 64)), ["threadIdx.x >= 64 && threadIdx.x < 128", "threadIdx.x < 64"]),
        (((0, 256),), ["true"]),
    ],
)
def test_roles(spans: tuple[tuple[int, int], ...], chain: list[str]) -> None:
    assert conditions(roles(*spans), (256,)) == chain


def test_roles_of_a_flat_index() -> None:
    assert conditions(roles((64, 64), (0, 64)), (16, 8)) == [
        "threadIdx.x + threadIdx.y * 16 >= 64", "",
    ]  # fmt: skip


# ---- what is refused ----------------------------------------------------------------------------


def test_undeclared_names_are_reported() -> None:
    with pytest.raises(TileInternalError, match="lost is used in kernel k"):
        body_of(put(Var("lost")))


def test_wrong_operand_counts_are_reported() -> None:
    with pytest.raises(TileInternalError, match="takes 0 operands"):
        body_of(do(programs.constant(I.SYNCTHREADS), 1))


def test_boolean_condition_buffers() -> None:
    flags = tensor("flags", (64,), BOOL)
    assert body_of(If(flags[X], Seq((put(0),))), tensors=(OUT, flags)) == [
        "  if (flags[x]) out[0] = 0.0f;"
    ]
