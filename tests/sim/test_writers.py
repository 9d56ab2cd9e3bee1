"""Sets of writers against dictionaries, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tilelab.sim import writers
from tilelab.sim.writers import Writers

AT = 28
THREADS, PLACES = 70, 12


class _Plain:
    """The same, one place and one thread at a time."""

    def __init__(self):
        self.before = [{} for _ in range(PLACES)]
        self.now = [{} for _ in range(PLACES)]

    def write(self, places, threads, marks, same, follows):
        for place in sorted(set(places.tolist())):
            on = places == place
            new = dict(zip(threads[on].tolist(), marks[on].tolist(), strict=True))
            if not same[place]:
                self.before[place], self.now[place] = {}, new
            elif follows[place]:
                self.before[place] = {**self.before[place], **self.now[place]}
                self.now[place] = new
            else:
                self.now[place] = {**self.now[place], **new}
            for thread in self.now[place]:
                self.before[place].pop(thread, None)

    def marks(self, place):
        return {**self.before[place], **self.now[place]}


def _step(rng, made, plain, last, when):
    """One write of random threads to random places, recorded in both."""
    count = int(rng.integers(1, 40))
    places, threads = rng.integers(0, PLACES, count), rng.integers(0, THREADS, count)
    marks = threads.astype(np.int64) << AT | when
    same = (rng.random(PLACES) < 0.7) & (last > 0)
    follows = rng.random(PLACES) < 0.4
    old = np.where(same[places], last[places], 0)
    other = (old >> AT != threads) | (made.sets((places,)) != 0)
    plain.write(places, threads, marks, same, follows)
    last[places] = marks
    several = (last[places] >> AT != threads) | (other & (old > 0))
    if several.any():
        made.wrote((places,), marks, several, old, follows[places] & (old > 0))
    else:
        made.forget((places,))


@pytest.mark.parametrize("limit", [1 << 24, 2000])  # the second: sets are dropped all the time
@pytest.mark.parametrize("seed", range(5))
def test_random_writes(seed, limit, monkeypatch):
    monkeypatch.setattr(writers, "_LARGE", limit)
    rng, made, plain = np.random.default_rng(seed), Writers((PLACES,), AT), _Plain()
    last = np.zeros(PLACES, np.int64)
    for when in range(1, 60):
        _step(rng, made, plain, last, when)
        places, threads = rng.integers(0, PLACES, 50), rng.integers(0, THREADS, 50)
        sets, mine = made.sets((places,)), threads.astype(np.int64) << AT
        if made.of is None:
            continue
        known = rng.random((50, THREADS)) < 0.05
        several = sets != 0
        assert all(len(plain.marks(p)) > 1 for p in places[several])

        def unordered(i, marks, known=known):
            return ~known[i, marks >> AT]

        fine = made.harmless(sets, mine, several, unordered)
        stray = made.strays(sets, several, unordered)
        warps = made.warps(sets, several, 4)
        # Which entries do harm is not told after the first; whether any does is.
        wanted = [
            t in plain.marks(p) or bool(known[i, list(plain.now[p])].any())
            for i, (p, t) in enumerate(zip(places, threads, strict=True)) if several[i]
        ]  # fmt: skip
        assert bool(fine[several].all()) is all(wanted)
        for i in np.flatnonzero(several):
            marks = plain.marks(places[i])
            strangers = {m for t, m in marks.items() if not known[i, t]}
            assert stray[i] in strangers or (stray[i] == 0 and not strangers)
            assert set(np.flatnonzero(warps[i])) == {t // 32 for t in marks}


def test_a_program_of_one_writer_each_keeps_no_sets(monkeypatch):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
             C: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            a, b = T.alloc_shared((32, 32), "float16"), T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((32, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[bx * 32, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * 32, 0])

    def fail(*_):
        raise AssertionError("a place has several writers")

    monkeypatch.setattr(Writers, "wrote", fail)
    for target in ("sm_90a", "sm_80"):
        kernel = tilelab.compile(main, target=target)
        tensors = [np.ones((64, 64), p) for p in ("float16", "float16", "float32")]
        torch = pytest.importorskip("torch")
        assert kernel.simulate(*map(torch.from_numpy, tensors)).ok
