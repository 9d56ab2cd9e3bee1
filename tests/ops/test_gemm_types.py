"""T.gemm of every element type in the simulator, for both feature sets, and its instructions."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.gemm_programs import (
    OTHERS,
    TYPES,
    Case,
    check,
    check_async,
    check_condition,
    check_matrices,
    check_parts,
    instruction,
    program,
)
from tests.thread.nvrtc import needs_nvrtc
from tilelab.errors import TileError
from tilelab.runtime.sass import opcode_counts

TARGETS = {"hopper": HOPPER, "ampere": AMPERE}
target = pytest.mark.parametrize("name", list(TARGETS))


def _id(types: tuple[str, ...]) -> str:
    return "-".join(types)


@target
@pytest.mark.parametrize("types", TYPES, ids=_id)
@pytest.mark.parametrize(("ta", "tb"), list(itertools.product([False, True], repeat=2)))
def test_types_and_transposes(name: str, types: Any, ta: bool, tb: bool) -> None:
    kernel = check(Case(64, 48, 64, types, ta, tb), TARGETS[name])
    major = not ta and tb  # K is the last axis of both
    wide = types[0] in ("float16", "bfloat16")
    takes_wgmma = name == "hopper" and (major or wide) and types[0] != "float64"
    assert instruction(kernel) == ("wgmma" if takes_wgmma else "mma")


@target
@pytest.mark.parametrize("types", TYPES, ids=_id)
@pytest.mark.parametrize("where", ["rs", "sr", "rr"])
def test_operands_in_registers(name: str, types: Any, where: str) -> None:
    kernel = check(Case(64, 48, 64, types, tb=True, where=where, clear=True), TARGETS[name])
    fits = name == "hopper" and where == "rs" and types[0] != "float64"
    assert instruction(kernel) == ("wgmma" if fits else "mma")
    if where == "rr":
        check(Case(32, 16, 32, types, ta=True, where=where, threads=64), TARGETS[name])


@pytest.mark.parametrize("types", OTHERS, ids=_id)
@pytest.mark.parametrize("where", ["ss", "rr"])
def test_other_types(types: Any, where: str) -> None:
    for ta, tb in ((False, True), (True, False)):
        kernel = check(Case(24, 40, 12, types, ta, tb, where, clear=tb), HOPPER)
        assert instruction(kernel) == "SIMT"
        notes = [n.text for n in kernel.trace.warnings()]
        assert any("no tensor core multiplies" in text for text in notes), notes


TILES = [(176, 96, 48, 128), (96, 176, 32, 256), (48, 48, 16, 96), (192, 192, 64, 256),
         (8, 16, 16, 32), (16, 8, 8, 128), (5, 7, 3, 40), (64, 64, 24, 128), (1, 128, 64, 96),
         (192, 80, 32, 384)]  # fmt: skip


@target
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_tiles(name: str, tile: tuple[int, int, int, int]) -> None:
    *sizes, threads = tile
    check(Case(*sizes, threads=threads), TARGETS[name])
    check(Case(*sizes, types=("int8", "int8", "int32"), tb=True, threads=threads), TARGETS[name])


@target
def test_a_narrow_panel_begins_at_a_warpgroup(name: str) -> None:
    """Each of two warpgroups gets 96 columns: a 64-wide panel of B would be cut."""
    for n, policy in itertools.product((192, 128), (T.GemmWarpPolicy.FullCol, None)):
        check(Case(64, n, 32, threads=256, policy=policy), TARGETS[name])


@target
@pytest.mark.parametrize("types", [TYPES[0], TYPES[1], TYPES[3], TYPES[7]], ids=_id)
def test_slices_of_larger_buffers(name: str, types: Any) -> None:
    check_matrices(TARGETS[name], "cpu", types)


@target
def test_parts_of_fragments_and_conditions(name: str) -> None:
    check_parts(TARGETS[name], "cpu")
    check_condition(TARGETS[name], "cpu", wait=0)


@target
def test_waiting_in_the_program(name: str) -> None:
    check_condition(TARGETS[name], "cpu", wait=-1)
    check_async(TARGETS[name], "cpu", only_wgmma=False)
    if name == "hopper":
        check_async(TARGETS[name], "cpu", only_wgmma=True)


@pytest.mark.expects_findings
def test_a_missing_wait_is_found() -> None:
    with pytest.raises(TileError, match="still runs"):
        check_condition(HOPPER, "cpu", wait=-1, waits=False)


def test_errors() -> None:
    with pytest.raises(TileError, match=r"cannot use wgmma: .* has none") as caught:
        check_async(AMPERE, "cpu", only_wgmma=True)
    assert caught.value.code == "TL1515"

    with pytest.raises(TileError, match="gemm operand A lives in global memory") as caught:

        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16")):
            with T.Kernel(1, threads=128) as _:
                c = T.alloc_fragment((64, 64), "float32")
                T.gemm(A, A, c)

    assert caught.value.code == "TL1513"

    with pytest.raises(TileError, match=r"k_pack=3\) is not supported"):

        @T.prim_func
        def packs(A: T.Tensor((64, 64), "float16")):
            with T.Kernel(1, threads=128) as _:
                a = T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.gemm(a, a, c, k_pack=3)


def test_notes_say_what_was_passed_over() -> None:
    fp8 = ("float8_e4m3fn",) * 2 + ("float32",)
    texts = {
        n: "\n".join(
            note.text
            for _, note in tilelab.compile(program(Case(types=fp8)), target=t).trace.notes()
        )
        for n, t in TARGETS.items()
    }
    assert "it transposes 16-bit operands only, and K is not the last axis of B" in texts["hopper"]
    assert "operands are converted to float16 in registers" in texts["ampere"]


SASS = [
    (TYPES[0], "HGMMA", "HMMA"), (TYPES[1], "HGMMA", "HMMA"), (TYPES[2], "HGMMA", "HMMA"),
    (TYPES[3], "HGMMA", "HMMA"), (TYPES[4], "QGMMA", "HMMA"), (TYPES[5], "QGMMA", "HMMA"),
    (TYPES[6], "QGMMA", "HMMA"), (TYPES[7], "IGMMA", "IMMA"), (TYPES[8], "IGMMA", "IMMA"),
    (TYPES[9], "DMMA", "DMMA"),
]  # fmt: skip


@needs_nvrtc
@pytest.mark.parametrize(("types", "hopper", "ampere"), SASS, ids=lambda v: str(v))
def test_machine_code(types: Any, hopper: str, ampere: str) -> None:
    for name, opcode in (("hopper", hopper), ("ampere", ampere)):
        kernel = tilelab.compile(program(Case(types=types, tb=True)), target=TARGETS[name])
        sass = kernel.get_sass()
        found = {op for op in opcode_counts(sass) if op.endswith("MMA")}
        assert found == {opcode}
        if types[0] == "float32":
            assert re.search(rf"{opcode}\S*TF32", sass)


@given(
    st.sampled_from(TYPES), st.sampled_from([8, 16, 32, 48, 64, 80, 128]),
    st.sampled_from([8, 16, 40, 48, 64, 96]), st.sampled_from([4, 8, 16, 32, 48, 64]),
    st.booleans(), st.booleans(), st.sampled_from(["ss", "rs", "sr", "rr"]),
    st.sampled_from([32, 64, 128, 160, 256]), st.sampled_from([None, 0, 1, 2]),
    st.sampled_from(list(TARGETS)),
)  # fmt: skip
@settings(max_examples=40)
def test_any_tile(
    types: Any, m: int, n: int, k: int, ta: bool, tb: bool, where: str, threads: int, policy: Any,
    name: str,
) -> None:  # fmt: skip
    check(Case(m, n, k, types, ta, tb, where, threads, policy), TARGETS[name])


def test_an_accumulator_is_the_next_operand() -> None:
    """Two products in a row, of each type whose sums can be multiplied again."""

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), B: T.Tensor((32, 32), "float32"),
             C: T.Tensor((64, 32), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 32), "float32")
            b = T.alloc_shared((32, 32), "float32")
            c, d = T.alloc_fragment((64, 32), "float32"), T.alloc_fragment((64, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_B=True, clear_accum=True)
            T.gemm(c, b, d, transpose_B=True, clear_accum=True)
            T.copy(d, C)

    torch.manual_seed(0)
    a, b = (torch.randint(-3, 4, s).float() for s in ((64, 32), (32, 32)))
    for where in TARGETS.values():
        got = tilelab.compile(main, out_idx=[2], target=where)(a, b)
        assert torch.equal(got, a @ b.T @ b.T)
