"""The budget: every byte, the limits of the seed's exercise, what occupies a multiprocessor."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

import tilelab
import tilelab.language as T
from tilelab.target import SM80, SM90A
from tilelab.views import from_json, memory_view, occupancy

from .samples import STAGE, kernel, plan, slot

SVG = "http://www.w3.org/2000/svg"


def test_gemm_of_three_stages() -> None:
    view = memory_view(kernel(), SM90A, plans=[plan()], registers=168)
    assert view.dynamic_bytes == 98_304 and view.static_bytes == 48
    by_name = {b.resource: b.blocks for b in view.occupancy.bounds}
    assert by_name == {"shared memory": 2, "registers": 1, "threads": 8, "block slots": 32}
    assert view.occupancy.limiters == ("registers",)
    assert view.fits[0].bytes_per_stage == 2 * STAGE and view.fits[0].other_bytes == 0
    text = view.to_text()
    for part in ("98,304 B", "232,448", "limited by registers", "at most 7 fit"):
        assert part in text


@pytest.mark.parametrize(("limit", "largest"), [(101_376, 3), (166_912, 5), (232_448, 7)])
def test_largest_stage_count(limit: int, largest: int) -> None:
    target = replace(SM90A, limits=replace(SM90A.limits, shared_per_block=limit))
    assert memory_view(kernel(), target, plans=[plan()]).fits[0].largest == largest


def test_tiles_barriers_and_padding_cover_every_dynamic_byte() -> None:
    made = kernel(extra=(slot("C_shared", 99_328, 32_768),))
    view = memory_view(made, SM90A, plans=[plan()])
    assert sum(r.num_bytes for r in view.rows if r.dynamic) == view.dynamic_bytes == 132_096
    assert sum(r.num_bytes for r in view.rows if not r.dynamic) == view.static_bytes
    padding = [r for r in view.rows if r.use == "padding"]
    assert [(p.offset, p.num_bytes) for p in padding] == [(98_304, 1024)]
    assert view.fits[0].other_bytes == 33_792
    assert view.fits[0].largest == (232_448 - 33_792) // (2 * STAGE + 16)


def test_a_buffer_in_another_ones_bytes_is_named() -> None:
    view = memory_view(kernel(extra=(slot("C_shared", 0, 32_768),)), SM90A, plans=[plan()])
    row = next(r for r in view.rows if r.name == "C_shared")
    assert row.shares_with == ("A_shared",)
    assert "shares bytes with A_shared" in view.to_text()
    assert view.dynamic_bytes == 98_304


def test_too_much_is_said_with_the_excess() -> None:
    view = memory_view(kernel(8), SM90A, plans=[plan(stages=8)])
    assert view.verdict().startswith("does not fit: 29,824 B over")
    assert view.occupancy.blocks == 0
    ElementTree.fromstring(view.to_svg())


def test_unknown_registers_do_not_limit() -> None:
    view = memory_view(kernel(), SM80, plans=[plan()])
    assert view.occupancy.blocks == 1 and view.occupancy.limiters == ("shared memory",)
    assert "?" in view.to_text() and "known once" in view.to_svg()


def test_registers_come_in_whole_warps_of_a_quarter() -> None:
    # 168 registers: 5376 a warp, three warps in each quarter of 16,384
    assert occupancy(0, 384, 168, SM90A.limits).blocks == 1
    assert occupancy(0, 416, 168, SM90A.limits).blocks == 0
    assert occupancy(0, 128, 32, SM90A.limits).blocks == 16


def test_json_and_bytes_are_stable() -> None:
    view = memory_view(kernel(), SM90A, plans=[plan()], registers=168, spill_bytes=8)
    again = from_json(view.to_json())
    assert again == view and again.to_svg() == view.to_svg()
    assert "8 B are spilled" in view.to_text()


def test_tiles_that_take_turns_are_drawn_one_below_the_other() -> None:
    @T.prim_func
    def turns(A: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            first = T.alloc_shared((128, 64), "float16")
            last = T.alloc_shared((128, 128), "float32")
            sums = T.alloc_fragment((128, 128), "float32")
            T.copy(A, first)
            T.clear(sums)
            T.gemm(first, first, sums, transpose_B=True)
            T.copy(sums, last)
            T.copy(last, C)

    merge = {"tl.enable_aggressive_shared_memory_merge": True}
    made = tilelab.compile(turns, target="sm_90a", pass_configs=merge)
    view = memory_view(made.program.kernels[0], SM90A)
    rows = {r.name: r for r in view.rows}
    assert view.phases == 2 and view.dynamic_bytes == 128 * 128 * 4
    assert [(rows[n].first, rows[n].last) for n in ("first", "last")] == [(0, 0), (1, 1)]
    assert "shares bytes with first; its own in phase 2" in view.to_text()
    boxes = {
        title.text.split(":")[0]: (float(box.get("y")), float(box.get("height")))  # type: ignore[union-attr, arg-type]
        for box in ElementTree.fromstring(view.to_svg()).iter(f"{{{SVG}}}rect")
        if (title := box.find(f"{{{SVG}}}title")) is not None
    }
    assert boxes["first"][0] + boxes["first"][1] == boxes["last"][0]  # all of both can be seen
    assert from_json(view.to_json()) == view


def test_labels_of_narrow_boxes_are_whole_or_left_out() -> None:
    wide = replace(SM90A, limits=replace(SM90A.limits, shared_per_block=1_000_000))
    root = ElementTree.fromstring(memory_view(kernel(), wide, plans=[plan()]).to_svg())
    said = [text.text for text in root.iter(f"{{{SVG}}}text")]
    assert {"0", "1", "2"} <= set(said) and "stage 0" not in said
    assert not [
        words for words in said if words and words.startswith(("sta", "16 K")) and "…" in words
    ]


def test_no_shared_memory_and_many_small_blocks() -> None:
    none = replace(kernel(), shared=(), dynamic_bytes=0, static_bytes=0)
    picture = memory_view(none, SM90A, registers=16).to_svg()
    assert "uses no shared memory" in picture
    boxes = [r for r in ElementTree.fromstring(picture).iter(f"{{{SVG}}}rect")]
    assert all(float(box.get("width", "0")) >= 5 for box in boxes)
