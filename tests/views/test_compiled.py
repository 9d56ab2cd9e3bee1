"""Views of kernels that were really compiled: numbers equal the kernel's, pictures repeat."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tilelab.demo.kernels import gemm
from tilelab.ir import walk
from tilelab.kernel import JITKernel
from tilelab.target import SM80, SM90A, Target
from tilelab.thread.nodes import Invoke
from tilelab.views import MAKERS, from_json, show

CASES = [
    (target, stages, tile_k)
    for target in (SM80, SM90A)
    for stages, tile_k in ((0, 64), (1, 64), (2, 32), (3, 64), (4, 32))
]


def compiled(target: Target, stages: int = 3, tile_k: int = 64) -> JITKernel:
    program: Any = gemm(512, 512, 512, tile_k=tile_k, stages=stages)
    return JITKernel(program.function, out_idx=[2], target=target)


@pytest.mark.parametrize(("target", "stages", "tile_k"), CASES, ids=str)
def test_budget_equals_the_compiled_kernel(target: Target, stages: int, tile_k: int) -> None:
    kernel = compiled(target, stages, tile_k)
    (part,) = kernel.program.kernels
    view: Any = show(kernel, "memory").views[0]
    assert view.dynamic_bytes == part.dynamic_bytes and view.static_bytes == part.static_bytes
    assert sum(r.num_bytes for r in view.rows if r.dynamic) == part.dynamic_bytes
    assert sum(r.num_bytes for r in view.rows if not r.dynamic) == part.static_bytes
    tiles = {r.name: r for r in view.rows if r.use == "tile"}
    for name in ("a_tile", "b_tile"):
        assert tiles[name].bytes_per_stage == 128 * tile_k * 2
        assert tiles[name].stages == max(stages, 1)
    used = kernel.resources[kernel.source.kernels[0].name]
    assert view.registers == used.registers and view.spill_bytes == used.spill_stores


@pytest.mark.parametrize("target", [SM80, SM90A], ids=str)
def test_largest_stage_count_compiles_and_one_more_does_not(target: Target) -> None:
    view: Any = show(compiled(target, 3), "memory").views[0]
    largest = view.fits[0].largest
    assert compiled(target, largest).program.kernels[0].dynamic_bytes <= view.shared_per_block
    with pytest.raises(Exception, match="shared memory"):
        _ = compiled(target, largest + 1).program


@pytest.mark.parametrize("target", [SM80, SM90A], ids=str)
def test_timeline_equals_the_code(target: Target) -> None:
    """Iterations, slots and bytes of the picture are those of the plan and of the code."""
    kernel = compiled(target, 3)
    (part,) = kernel.program.kernels
    view: Any = show(kernel, "pipeline").views[0]
    assert view.trip_count == 8 and view.slots == 3 and len(view.iterations) == 8
    assert view.mechanism == ("tma" if target is SM90A else "cp.async")
    names = Counter(n.intrinsic.name for n in walk(part.body) if isinstance(n, Invoke))
    waits = sum(c for name, c in names.items() if name.startswith("mbarrier_wait"))
    assert (waits > 0) == bool(view.barriers)
    assert sum(b.count for b in view.barriers) == part.static_bytes // 8
    if view.barriers:
        assert view.barriers[0].expected_bytes == sum(b.bytes_per_version for b in view.buffers)


@pytest.mark.parametrize("target", [SM80, SM90A], ids=str)
def test_fragment_is_the_accumulator_and_sources_are_linked(target: Target) -> None:
    report = show(compiled(target), *MAKERS)
    fragment: Any = report["fragment"]
    assert fragment.buffer == "sums" and fragment.shape == (128, 128) and fragment.reason
    source: Any = report["source"]
    gemm_line = next(n.number for n in source.python if "T.gemm(" in n.text)
    word = "wgmma" if target is SM90A else "mma"
    cuda = {n.number: n.text for n in source.cuda}
    assert any(word in cuda[n] for n in source.cuda_of(gemm_line))


@pytest.mark.parametrize("target", [SM80, SM90A], ids=str)
def test_two_compilations_give_the_same_pictures(target: Target) -> None:
    first, second = (show(compiled(target), *MAKERS) for _ in range(2))
    for one, two in zip(first.views, second.views, strict=True):
        assert one.to_svg() == two.to_svg() == from_json(one.to_json()).to_svg()
        assert len(one.to_svg().encode()) <= 300_000
