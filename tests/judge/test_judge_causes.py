"""What a wrong output tells about the mistake behind it: each guess on outputs made for it, and
none on outputs that only look alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from judge.causes import likely_cause
from judge.compare import difference, tolerance
from judge.exercise import load_exercise
from judge.seen import Seen

NAN = float("nan")
OVERLAPPING = {0: 0, 1: 1, 2: 2, 3: 3, 4: 3}
SIZES = {"03": {"N": 1000}, "05": {"M": 12, "N": 300}, "10": {"M": 24, "N": 24, "K": 96}}


def _cause(name: str, make: Callable[..., Any], **known: Any) -> Any:
    """The cause of the output `make(reference, *inputs)`, for small sizes."""
    task, sizes = load_exercise(name).kernel_task, known.pop("sizes", SIZES[name])
    generator = torch.Generator().manual_seed(5)
    inputs = [
        torch.randn(t.extents(sizes), generator=generator, dtype=torch.float64) for t in task.inputs
    ]
    reference = task.reference(*inputs)
    magnitude = task.reference(*(x.abs() for x in inputs))
    allowed = tolerance(reference, magnitude, task.output.dtype, task.reduction(sizes))
    got = make(reference.clone(), *inputs)
    found = difference(got, reference, allowed)
    assert found is not None
    return likely_cause(Seen(task, sizes, found, inputs, got, reference, allowed, **known))


def _filled(keep: Callable[[int], bool]) -> Callable[..., Any]:
    """An output whose elements i (of the first axis) are only written where `keep(i)`."""

    def make(reference: Any, *_: Any) -> Any:
        for i in range(len(reference)):
            if not keep(i):
                reference[i] = NAN
        return reference

    return make


@pytest.mark.parametrize(
    ("keep", "known", "words", "at_launch"),
    [
        (lambda i: False, {}, "nothing was written to C", False),
        (lambda i: False, {"stores": True}, "stored to, and never where it has an element", False),
        (lambda i: False, {"block_of": lambda at: 2}, "NaN was stored: C is NaN before", False),
        (lambda i: i < 640, {"blocks": 4, "block_of": lambda at: OVERLAPPING.get(at[0] // 128)},
         "each block writes 256 elements, the next one begins only 128 further", False),
        (lambda i: i < 768, {"blocks": 4, "block_of": lambda at: (0, 1, 2, None)[at[0] // 256]},
         "3 of 4 blocks write", False),
        (lambda i: i < 999, {}, "a guard such as `i < N - 1`", False),
        (lambda i: i < 768, {"blocks": 3}, "the grid of 3 blocks covers 768 elements", True),
        (lambda i: i < 768, {}, "the grid ends too early", True),
        (lambda i: i < 256, {"blocks": 4, "block_of": lambda at: 3 if at[0] < 256 else None},
         "4 blocks write the same", False),
        (lambda i: i < 128, {"blocks": 1, "threads": 128}, "each of its 128 threads wrote one",
         True),
        (lambda i: i < 4, {"blocks": 1, "threads": 128}, "4 of 128 threads wrote an element",
         False),
        (lambda i: i % 256 < 128, {"blocks": 4}, "elements 128 to 255 are not written, 256 is",
         False),
        (lambda i: i % 64 == 0, {"blocks": 16}, "of 64 elements only one is written", False),
        (lambda i: i >= 8, {}, "the first 8 elements are never written", False),
    ],
)  # fmt: skip
def test_what_is_missing(
    keep: Callable[[int], bool], known: dict[str, Any], words: str, at_launch: bool
) -> None:
    cause = _cause("03", _filled(keep), **known)
    assert words in cause.text
    assert cause.at_launch == at_launch


def test_what_is_missing_of_a_matrix() -> None:
    """Whole columns have a pattern; a corner has none."""

    def columns(reference: Any, *_: Any) -> Any:
        reference[:, 16:] = NAN
        return reference

    def corner(reference: Any, *_: Any) -> Any:
        reference[16:, 16:] = NAN
        return reference

    assert "covers 16 columns" in _cause("10", columns, blocks=2).text
    assert (
        "there are 16 (K) columns: is a guard"
        in _cause("10", columns, sizes={"M": 24, "N": 40, "K": 16}).text
    )
    assert "the grid of 4 blocks or a guard" in _cause("10", corner, blocks=4).text


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("05", lambda r, a: a[:, :256].sum(1), "the first 256 of 300 terms"),
        ("05", lambda r, a: a[:, :12].sum(1), "the first 12 (M) of 300 terms"),
        ("05", lambda r, a: a[:, 256:].sum(1), "the last 44 of 300 terms"),
        ("05", lambda r, a: 2 * a[:, :128].sum(1) + a[:, :44].sum(1),
         "the first 128 of 300 terms are added again"),
        ("05", lambda r, a: a.mean(1), "the mean of the terms"),
        ("05", lambda r, a: a.max(1).values, "the largest term"),
        ("05", lambda r, a: a.abs().sum(1), "absolute values"),
        ("05", lambda r, a: torch.zeros(12), "nothing was added"),
        ("03", lambda r, a, b: r * 0, "every element is 0"),
        ("05", lambda r, a: a.T.sum(1)[:12], "A is read with its axes exchanged"),
        ("05", lambda r, a: r * 3, "a whole multiple"),
        ("05", lambda r, a: r.half().double(), "close, but less accurate"),
        ("05", lambda r, a: r + torch.linspace(3, 7, 12), "terms are missing"),
        ("10", lambda r, a, b: a[:, :64] @ b[:64], "the first 64 of 96 terms"),
        ("10", lambda r, a, b: a[:, 64:] @ b[64:], "the last 32 of 96 terms"),
        ("10", lambda r, a, b: r.T, "the output is transposed"),
        ("03", lambda r, a, b: torch.cat([r[1:], r[:1]]), "right values at wrong places"),
        ("03", lambda r, a, b: r.flip(0), "in the opposite order"),
        ("03", lambda r, a, b: 2 * b, "B is read in place of A"),
        ("03", lambda r, a, b: r.half().double(), "rounded to float16"),
        ("03", lambda r, a, b: (a.bfloat16() + b.bfloat16()).double(), "rounded to bfloat16"),
        ("03", lambda r, a, b: (a.int() + b.int()).double(), "rounded to int32"),
        ("10", lambda r, a, b: a[:, 1:] @ b[:-1], "A is read one column further"),
        ("10", lambda r, a, b: a[:, :-1] @ b[1:], "A is read one column before"),
        ("10", lambda r, a, b: a[:, :32].repeat(1, 3) @ b, "A is read in every step at its"),
        ("05", lambda r, a: r + 256, "every sum is off by 256"),
        ("05", lambda r, a: a.int().sum(1).double(), "rounded to int32"),
        ("05", lambda r, a: r.sort().values, "every value is right, and stands elsewhere"),
        ("03", lambda r, a, b: a - b, "computed from other elements"),
        ("03", lambda r, a, b: torch.cat([r[:998], r[998:] + 1]), "look at the tail"),
        ("03", lambda r, a, b: torch.cat([r[:9] * 2, r[9:-9], r[-9:] * NAN]), "NaN spreads"),
    ],
)  # fmt: skip
def test_what_a_wrong_value_is(name: str, make: Callable[..., Any], words: str) -> None:
    assert words in _cause(name, make).text


def test_buffers_of_halves_are_named() -> None:
    said = _cause("05", lambda r, a: r.half().double(), halves=("part",)).text
    assert "part is a buffer of 16-bit floats" in said


def test_noise_names_no_mistake() -> None:
    """Outputs that no range of terms gives: the sentence stays general, whatever the seed."""
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)

        def noise(reference: Any, *_: Any, generator: Any = generator) -> Any:
            return reference + 3 + torch.rand(reference.shape, generator=generator) * 9

        for name in ("05", "10"):
            assert "terms are missing, or others were added" in _cause(name, noise).text, seed
        assert "with another formula" in _cause("03", noise).text, seed
