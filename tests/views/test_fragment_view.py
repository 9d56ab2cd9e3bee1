"""Fragment maps: equal to enumeration, fast, small, deterministic."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelab.layout import Fragment, atoms, from_function
from tilelab.views import fragment_view, from_json

LIMIT = 300_000


@st.composite
def fragments(draw: st.DrawFn) -> Fragment:
    shape = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    threads = draw(st.sampled_from([1, 4, 32, 48, 64]))
    made = Fragment.blocked(shape, threads, draw(st.sampled_from([1, 2, 4])))
    return made.replicate(draw(st.sampled_from([1, 2, 3])))


@settings(max_examples=500, deadline=None)
@given(fragments())
def test_map_equals_enumeration_both_ways(fragment: Fragment) -> None:
    view = fragment_view(fragment)
    held: dict[int, list[tuple[int, ...]]] = {}
    for indices in np.ndindex(*fragment.shape):
        threads, slot = view.where(*indices)
        expected = [fragment.thread_of(indices, r) for r in range(fragment.replication)]
        assert list(threads) == expected
        assert slot == fragment.register_of(indices)
        for thread in set(threads):
            held.setdefault(thread, []).append(indices)
    for thread, elements in held.items():
        assert sorted(view.held_by(thread)) == sorted(elements)
    assert ElementTree.fromstring(view.to_svg()).tag.endswith("svg")
    assert from_json(view.to_json()) == view


def test_accumulator_128_is_fast_small_and_the_same_every_time() -> None:
    fragment = atoms.wgmma_accumulator(128).repeat(2, 1)
    started = time.process_time()
    picture = fragment_view(fragment, buffer="C_local").to_svg()
    seconds = time.process_time() - started
    assert seconds <= 0.3
    assert len(picture.encode()) <= LIMIT
    assert picture == fragment_view(fragment, buffer="C_local").to_svg()


@pytest.mark.parametrize(
    "fragment",
    [
        Fragment.blocked((128, 128), 128, 1),
        Fragment.blocked((256, 256), 256, 1),
        Fragment.blocked((512, 512), 256, 1),
        Fragment.blocked((1, 4096), 128, 2),
        from_function((128, 128), lambda i, j: ((i * 7 + j) % 128, i), 128),
    ],
    ids=["row-major", "256", "raster", "wide", "scattered"],
)
def test_worst_cases_stay_under_the_limit(fragment: Fragment) -> None:
    started = time.process_time()
    picture = fragment_view(fragment).to_svg()
    assert time.process_time() - started <= 1
    assert len(picture.encode()) <= LIMIT
    ElementTree.fromstring(picture)


def test_small_tile_labels_every_cell() -> None:
    picture = fragment_view(atoms.mma_c(), buffer="c").to_svg()
    words = {e.text for e in ElementTree.fromstring(picture).iter() if e.tag.endswith("text")}
    assert {f"T{t}" for t in range(32)} <= words
    assert {f"R{r}" for r in range(4)} <= words


def test_text_twin_names_owner_reason_and_warps() -> None:
    view = fragment_view(
        atoms.wgmma_accumulator(64), buffer="acc", reason="wgmma fixes its accumulator"
    )
    text = view.to_text()
    assert "acc: 64x64 float32 in the registers of 128 threads, 32 registers each" in text
    assert "why: wgmma fixes its accumulator" in text
    assert "T4:R0" in text and "T0:R2" in text
    assert "48-63" in text  # rows of warp 3


def test_replicated_fragment_says_so() -> None:
    view = fragment_view(atoms.mma_c().reduce(1), buffer="row_max")
    assert "every element in 4 threads" in view.summary()
    assert view.where(0) == ((0, 1, 2, 3), 0)
