"""Notes: accesses that only the compiler's guard keeps inside, outputs that nobody writes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tilelab.errors import TileWarning
from tilelab.sim import SimReport

N = 1000
UNGUARDED = {"tl.disable_safe_memory_legalize": True}


def by_thread(shift: int, guarded: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(4, threads=256) as bx:
            i = bx * 256 + T.get_thread_binding()
            if not guarded or i + shift < N:
                B[i] = A[i + shift] * 2.0

    return main


def in_a_serial_loop(extent: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(N - 8, extent):
                B[i] = A[i]

    return main


def by_vectors(blocks: int, guarded: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(blocks, threads=64) as bx:
            for i in T.vectorized(4):
                p = bx * 256 + T.get_thread_binding() * 4 + i
                if not guarded or p < N:
                    B[p] = A[p] * 2.0

    return main


def atomically(extent: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            T.atomic_add(B[extent - 32 + tx], 1.0)

    return main


def in_parallel(blocks: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(blocks, threads=128) as bx:
            for i in T.Parallel(256):
                B[bx * 256 + i] = A[bx * 256 + i] * 2.0

    return main


def under_a_limit(limit: int, what: str) -> Any:
    """A condition of the program's own in T.Parallel."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            for i in T.Parallel(256):
                if what == "write":
                    if bx * 256 + i < limit:
                        B[bx * 256 + i] = 2.0
                else:
                    value = T.if_then_else(limit > bx * 256 + i, A[bx * 256 + i], 0.0)
                    if bx * 256 + i <= N - 1:
                        B[bx * 256 + i] = value

    return main


def updated(count: int) -> Any:
    """Writes a part of B, and reads all of it."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(N):
                if i < count:
                    B[i] = A[i] + B[i]

    return main


def _report(program: Any, out_idx: Any = None, configs: Any = None, **options: Any) -> SimReport:
    kernel = tilelab.compile(program, out_idx=out_idx, pass_configs=configs)
    tensors = [torch.ones(N) for _ in range(2 if out_idx is None else 1)]
    return kernel.simulate(*tensors, **options)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (by_thread(0, guarded=False), ["write of B[1000]"]),  # nor is A read for it
        (by_thread(1, guarded=False), ["write of B[1000]", "read of A[1000]"]),
        (by_thread(-1, guarded=False), ["write of B[1000]", "read of A[-1]"]),
        (in_a_serial_loop(N + 1), ["write of B[1000]"]),
        (by_vectors(4, guarded=False), ["write of B[1000]", "read of A[1000]"]),
        (atomically(N + 3), ["access of B[1000]"]),
        (under_a_limit(N + 1, "write"), ["write of B[1000]"]),
        (under_a_limit(N + 1, "read"), ["read of A[1000]"]),
        (under_a_limit(N + 9, "write"), ["write of B[1000]"]),
    ],
    ids=["by-thread", "next", "before", "serial", "vectors", "atomic", "at-most", "reads", "far"],
)  # fmt: skip
def test_an_access_that_the_compiler_guards_is_noted(program: Any, said: list[str]) -> None:
    """The program is right on a GPU, so the report is ok."""
    report = _report(program)
    notes = [n for n in report.notes if n.code == "TL2001"]
    assert report.ok and sorted(n.message.split(" is ")[0] for n in notes) == sorted(said)
    assert all(n.loc is not None and n.hint and n.level == "note" for n in notes)
    assert "TL2001 (note): " in str(report) and f"{len(report.notes)} note" in report.headline()


@pytest.mark.expects_findings
def test_without_the_guard_it_is_an_error() -> None:
    assert "TL2001" in _report(by_thread(0, guarded=False), configs=UNGUARDED).codes()


@pytest.mark.parametrize(
    "program",
    [
        by_thread(0, guarded=True),
        by_vectors(4, guarded=True),
        in_a_serial_loop(N),
        atomically(N),
        in_parallel(4),
        under_a_limit(N, "write"),
        under_a_limit(N, "read"),
        under_a_limit(N - 1, "write"),
    ],
    ids=["guarded", "vectors", "serial", "atomic", "parallel", "limit", "limit-read", "below"],
)
def test_what_the_program_guards_or_its_construct_leaves_out_is_not_noted(program: Any) -> None:
    report = _report(program)
    assert report.ok and "TL2001" not in [n.code for n in report.notes]


@tilelab.jit
def eager(A):
    A: T.Tensor((N,), "float32")
    B = T.empty((N,), "float32")
    with T.Kernel(3, threads=256) as bx:
        for i in T.Parallel(256):
            B[bx * 256 + i] = A[bx * 256 + i]
    return B


@pytest.mark.parametrize("way", ["compiled", "eager"])
def test_a_call_warns_of_notes_at_the_users_line(way: str) -> None:
    """Who calls the kernel sees no report, and would compute with numbers that nobody wrote."""
    call = tilelab.compile(in_parallel(3), out_idx=-1) if way == "compiled" else eager
    with pytest.warns(TileWarning, match="TL2002.*no block writes 232 of the 1,000") as caught:
        call(torch.ones(N))
    assert caught[0].filename == __file__


def test_a_call_without_notes_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    tilelab.compile(in_parallel(4), out_idx=-1)(torch.ones(N))
    assert not recwarn.list


def test_notes_follow_their_checks() -> None:
    assert not _report(by_thread(0, guarded=False), checks={"races"}).notes
    assert not _report(in_parallel(3), out_idx=-1, checks={"bounds"}).notes


@pytest.mark.parametrize(("out_idx", "kept"), [(None, "keep what they held"), (-1, "no value")])
def test_elements_of_an_output_that_nobody_writes_are_noted(out_idx: Any, kept: str) -> None:
    report = _report(in_parallel(3), out_idx=out_idx)
    (note,) = report.notes
    assert report.ok and note.code == "TL2002" and note.index == (768,)
    assert "232 of the 1,000 elements of B" in note.message and kept in note.message
    assert note.loc is not None and note.loc.text().strip().startswith("B[bx * 256 + i]")
    assert not _report(in_parallel(4), out_idx=out_idx).notes


def test_a_tensor_that_the_program_updates_is_no_output() -> None:
    assert not _report(updated(10)).notes


def test_notes_are_in_the_data() -> None:
    report = _report(in_parallel(3))
    again = SimReport.from_json(report.to_json())
    (was,), (now,) = report.notes, again.notes
    assert again.ok and (now.message, now.level, now.index) == (was.message, "note", was.index)
