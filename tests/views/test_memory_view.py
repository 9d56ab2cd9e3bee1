"""The budget: every byte, the limits of the seed's exercise, what occupies a multiprocessor."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from tilelab.target import SM80, SM90A
from tilelab.views import from_json, memory_view, occupancy

from .samples import STAGE, kernel, plan, slot


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
