"""What the generated code must contain: the textbook Hopper structure, the Ampere pipeline."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER, build
from tilelab.passes.pipeline import PASSES
from tilelab.runtime.sass import disassemble, opcode_counts

PLAIN = {"tl.plain_pipeline": True}


@pytest.fixture(scope="module")
def seed() -> Any:
    """The seed's configuration at 1024^3 for Hopper, in the textbook structure."""
    return build(1024, 1024, 1024, target=HOPPER, configs=PLAIN)


def _global_function(source: str) -> str:
    return source[source.index('extern "C" __global__') :].rstrip()


def test_seed_structure(seed: Any) -> None:
    source = seed.get_kernel_source()
    body = _global_function(source)
    assert len(body.splitlines()) <= 99
    assert "u64 mbarrier[6]" in body  # 3 "data has arrived" + 3 "slot is free"
    for piece in (
        "__launch_bounds__(256, 1)", "tl::tma_load(A_desc", "tl::tma_load(B_desc", "tl::wgmma_ss<",
        "tl::warpgroup_reg_dealloc<24>()", "tl::warpgroup_reg_alloc<240>()",
        "const __grid_constant__ TensorMap A_desc",
    ):  # fmt: skip
        assert piece in body, piece
    assert seed.program.kernels[0].dynamic_bytes == 98_304
    assert seed.program.kernels[0].num_threads == 256


def test_seed_expects_the_bytes_that_its_loads_bring(seed: Any) -> None:
    body = _global_function(seed.get_kernel_source())
    expected = int(re.search(r"mbarrier_expect_tx\([^,]+, (\d+)\)", body).group(1))  # type: ignore[union-attr]
    maps = {m.name: m for m in seed.program.kernels[0].maps}
    loads = re.findall(r"tl::tma_load\((\w+)", body)
    brought = sum(2 * maps[name].box[0] * maps[name].box[1] for name in loads)
    assert expected == brought == 32_768


def test_seed_machine_code(seed: Any) -> None:
    counts = opcode_counts(disassemble(seed.cubin.image))
    assert counts["HGMMA"] >= 8 and counts["UTMALDG"] >= 3
    resources = seed.resources["kernel_kernel"]
    assert resources.spill_stores == resources.spill_loads == resources.stack_bytes == 0
    assert not seed.cubin.warnings


def test_ampere_machine_code() -> None:
    kernel = build(1024, 1024, 1024, target=AMPERE)
    counts = opcode_counts(disassemble(kernel.cubin.image))
    assert counts["HMMA"] >= 128 and counts["LDSM"] >= 32 and counts["LDGSTS"] >= 16
    assert "HGMMA" not in counts
    resources = kernel.resources["kernel_kernel"]
    assert resources.spill_stores == resources.spill_loads == 0
    assert kernel.trace.pipelines[0].mechanism == "cp.async"


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_ring_has_one_barrier_pair_per_stage(stages: int) -> None:
    kernel = build(256, 256, 256, stages=stages, target=HOPPER, configs=PLAIN)
    body = _global_function(kernel.get_kernel_source())
    assert f"u64 mbarrier[{2 * stages}]" in body
    assert kernel.program.kernels[0].dynamic_bytes == stages * 32_768
    plan = kernel.trace.pipelines[0]
    assert (plan.mechanism, plan.num_stages, plan.prefetch) == ("tma", stages, stages)


def test_no_stages_means_no_pipeline() -> None:
    kernel = build(256, 256, 256, stages=0, target=HOPPER)
    body = _global_function(kernel.get_kernel_source())
    assert "mbarrier" not in body and "__syncthreads()" in body
    assert kernel.trace.pipelines[0].mechanism == "sync"


def test_each_pass_is_recorded_with_before_and_after(seed: Any) -> None:
    steps = seed.trace.steps
    names = [s.name for s in steps]
    assert names == [p.name for p in PASSES]
    order = ("check-ops", "plan-pipeline", "warp-specialize", "infer-layouts", "lower-tile-ops")
    places = [names.index(n) for n in (*order, "plan-shared-memory", "insert-sync")]
    assert places == sorted(places)
    for first, second in itertools.pairwise(steps):
        assert first.after is second.before
    assert all(s.caption for s in steps)
    assert "wgmma.m64n128k16 fixes it" in seed.trace.layout_of("C_local").reason


def test_cuda_lines_lead_back_to_python(seed: Any) -> None:
    lines = seed.source.text.splitlines()
    loads = [link for link in seed.source.links if "tl::tma_load" in lines[link.line - 1]]
    assert loads
    texts = {link.loc.text().strip() for link in loads if link.loc is not None}
    copies = ("A[by * bm, ko * bk], A_shared", "B[ko * bk, bx * bn], B_shared")
    assert texts == {f"T.copy({c})" for c in copies}


def test_a_second_compile_gives_the_same_text(seed: Any) -> None:
    again = build(1024, 1024, 1024, target=HOPPER, configs=PLAIN)
    assert again.get_kernel_source() == seed.get_kernel_source()
