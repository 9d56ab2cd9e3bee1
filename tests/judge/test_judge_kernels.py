"""Kernels under the judge: what is caught, what never fails, how points add up."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tilelab
from judge.compare import difference, tolerance
from judge.exercise import Exercise, load_exercise
from judge.grading import speed_points
from judge.judge import KERNEL_BUDGET, grade
from judge.kernels import POINTS, spread
from judge.memory import Call, Data
from judge.report import to_text
from judge.running import run_case
from tilelab import artifact

KERNELS = [load_exercise(name) for name in ("03", "05", "10")]
FULL = os.environ.get("TILELAB_FULL") == "1"
SEEDS = 1000 if FULL else 50
SMALL = {
    "03_vector_add": {"N": 300}, "05_row_sum": {"M": 9, "N": 257},
    "10_tiled_gemm": {"M": 33, "N": 40, "K": 48},
}  # fmt: skip


def _loaded(exercise: Exercise, sizes: dict[str, int]) -> Any:
    """The shipped solution's kernel as an artefact."""
    scope: dict[str, Any] = {"__name__": "solution"}
    path = exercise.solution
    exec(compile(path.read_text("utf-8"), str(path), "exec"), scope)
    kernel = scope[exercise.task.entry].compile(**sizes)
    return artifact.load(artifact.save(kernel, "hopper"))


def _name(value: object) -> str:
    return value.id if isinstance(value, Exercise) else str(value)


@pytest.fixture(autouse=True, scope="module")
def _tilelang() -> Any:
    """`import tilelang` as in a student's file."""
    shim = __import__("tilelab.shim", fromlist=["shim"])
    shim.install()
    yield
    shim.uninstall()


FINE_COUNTERS = """
_right = vector_add


@tilelang.jit
def _idle(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                if bx * 128 + i < N:
                    C[bx * 128 + i] = A[bx * 128 + i] * B[bx * 128 + i]

    return add


def vector_add(N):
    return (_idle if N == 8192 else _right).compile(N=N)
"""


def test_a_kernel_for_the_counters_alone_earns_no_structure(tmp_path: Path) -> None:
    """Other sizes are right; for those of the structure it moves the same bytes and is wrong."""
    exercise = load_exercise("03")
    sizes = exercise.kernel_task.structure_sizes
    assert sizes == {"N": 8192}
    path = tmp_path / "mine.py"
    path.write_text(exercise.solution.read_text("utf-8") + FINE_COUNTERS)
    verdict = grade(exercise, path, seed=1, gpu=False)
    rules = [r for r in verdict.outcome.results if r.part == "structure"]
    assert rules and all((r.points, r.code) == (0, "WRONG_VALUES") for r in rules)
    assert verdict.points[0] == 70


@pytest.mark.parametrize("exercise", KERNELS, ids=_name)
def test_one_corrupted_element_is_always_caught(exercise: Exercise) -> None:
    """200 outputs of the honest kernel, each with one element that another index, a lost term or
    a rounding to fewer bits could give."""
    task, sizes = exercise.kernel_task, SMALL[exercise.id]
    kernel = _loaded(exercise, sizes)
    rng = random.Random(11)
    for number in range(200):
        call = Call(task, Data(sizes, number), "cpu")
        if number % 20 == 0:
            assert kernel.simulate(*call.tensors).ok
        else:  # the honest kernel was checked: its result is the reference, rounded
            call.output.copy_(call.expected()[0])
        reference, magnitude = call.expected()
        allowed = tolerance(reference, magnitude, task.output.dtype, task.reduction(sizes))
        assert difference(call.output, reference, allowed) is None
        flat = call.output.view(-1)
        place = rng.randrange(flat.numel())
        spread_of_values = float(reference.std())
        flat[place] += rng.choice((-1, 1)) * rng.uniform(0.05, 2.0) * spread_of_values
        found = difference(call.output, reference, allowed)
        assert found is not None and found.wrong == 1
        assert found.index == tuple(
            int(i) for i in torch.nonzero(torch.arange(flat.numel()).view(call.output.shape)
                                          == place)[0]
        )  # fmt: skip


@pytest.mark.parametrize("exercise", KERNELS, ids=_name)
def test_honest_kernels_never_fail(exercise: Exercise) -> None:
    """Zero false failures over many seeds, at the small sizes of the public cases' kind."""
    task, sizes = exercise.kernel_task, SMALL[exercise.id]
    kernel = _loaded(exercise, sizes)
    rng = random.Random(5)
    for seed in range(SEEDS):
        drawn = rng.choice(list(task.draw(rng)))
        case = type(drawn)(
            drawn.id, drawn.category, drawn.part, sizes, True, drawn.scale, drawn.shift
        )
        result = run_case(task, kernel, case, seed, False)
        assert result["status"] == "pass", (seed, case, result)


@pytest.mark.parametrize("exercise", KERNELS, ids=_name)
def test_solutions_take_few_steps(exercise: Exercise) -> None:
    """The limit that ends a hang is far from what right kernels need, at the largest sizes too."""
    task = exercise.kernel_task
    for case in (*task.public, *task.draw(random.Random(2))):
        call = Call(task, Data(case.sizes, 1), "cpu")
        report = _loaded(exercise, case.sizes).simulate(*call.tensors)
        assert 0 < 10 * report.steps < task.max_steps(case.sizes), case


@pytest.mark.parametrize("exercise", KERNELS, ids=_name)
def test_new_values_and_poisoned_outputs(exercise: Exercise) -> None:
    """Another seed gives other inputs; outputs are NaN, fences whole, inputs reproducible."""
    task, sizes = exercise.kernel_task, SMALL[exercise.id]
    one, two = (Call(task, Data(sizes, seed), "cpu") for seed in (1, 2))
    assert not torch.equal(one.tensors[0], two.tensors[0])
    assert bool(torch.isnan(one.output).all())
    assert not one.fences_broken() and not one.inputs_changed()
    assert one.tensors[0].data_ptr() != two.tensors[0].data_ptr()
    one.tensors[0].view(-1)[0] += 1
    assert one.inputs_changed()
    two.fences[-1].behind[0] = 0
    assert two.fences_broken()


def test_a_wrong_kernel_is_explained(tmp_path: Path) -> None:
    """First wrong element, both values, the thread that wrote it, its line, and a cause."""
    text = load_exercise("03").solution.read_text("utf-8").replace("] + B", "] - B")
    path = tmp_path / "mine.py"
    path.write_text(text)
    verdict = grade(load_exercise("03"), path, seed=2)
    shown = to_text(verdict)
    assert len(shown.splitlines()) <= 40
    for part in ("first wrong element [0]", "expected", "got", "written by block 0, warp 0, lane 0",
                 "- B[bx * block + i]", "cause", "hint"):  # fmt: skip
        assert part in shown, shown
    hidden = [r for r in verdict.outcome.results if r.hidden]
    assert hidden and not any(r.message or r.detail or r.args for r in hidden)


def test_a_kernel_that_never_ends_loses_its_case_only(tmp_path: Path) -> None:
    """One size hangs the simulator; the others keep their points."""
    text = load_exercise("03").solution.read_text("utf-8")
    guard = "                if bx * block"
    loop = "                if N == 1:\n                    while C[0] != 1.0:\n"
    loop += "                        C[0] = C[0] * 0.0\n"
    text = text.replace(guard, loop + guard)
    path = tmp_path / "mine.py"
    path.write_text(text)
    verdict = grade(load_exercise("03"), path, seed=3)
    bad = [r.id for r in verdict.outcome.results if r.status == "fail"]
    assert bad == ["edges.one"], to_text(verdict)
    assert verdict.points == (81, 85, 100)


@pytest.mark.parametrize(("points", "count"), [(45, 5), (20, 5), (15, 2), (45, 7), (15, 4)])
def test_points_are_spread_whole(points: int, count: int) -> None:
    shares = spread(points, count)
    assert sum(shares) == points and max(shares) - min(shares) <= 1


def test_speed_points_rise_with_the_ratio() -> None:
    """0 at the floor, all from the target on, never falling between."""
    values = [speed_points(r / 1000, 0.7, 0.95) for r in range(0, 2000)]
    assert values == sorted(values)
    assert speed_points(0.7, 0.7, 0.95) == 0
    assert speed_points(0.95, 0.7, 0.95) == POINTS["performance"] == values[-1]
    assert sum(POINTS.values()) == 100


def test_nothing_is_passed_where_nothing_was_assessed() -> None:
    """Without a GPU speed is neither passed nor lost, and the verdict says what was assessed."""
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    exercise = load_exercise("03")
    verdict = grade(exercise, exercise.solution, seed=1)
    assert verdict.points == (85, 85, 100)
    assert "85 of 85 points assessed (of 100)" in to_text(verdict)
    speed = next(r for r in verdict.outcome.results if r.part == "performance")
    assert (speed.status, speed.points) == ("not assessed", 0)


def test_the_target_is_named_not_numbered() -> None:
    """What the grader asks the worker to compile for."""
    assert all(tilelab.parse_target(name) is not None for name in ("hopper", "ampere"))


def test_products_of_one_term_may_be_subnormal() -> None:
    """Steps of float16 below 2**-14 do not shrink with the number: the bound must not either."""
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        a = torch.randn(60, 1, generator=generator).half()
        b = torch.randn(1, 60, generator=generator).half()
        reference = a.double() @ b.double()
        allowed = tolerance(reference, reference.abs(), "float16", 1)
        assert difference((a.float() @ b.float()).half(), reference, allowed) is None
        wrong = (a.float() @ b.float()).half()
        wrong[seed % 60, 7] += 2.0**-10 + wrong[seed % 60, 7].abs() * 2.0**-9
        assert difference(wrong, reference, allowed) is not None


@pytest.mark.parametrize(
    ("exercise", "old", "new", "told"),
    [
        ("03", "T.ceildiv(N, block)", "N // block", ["nothing was written from [768] on"]),
        ("03", "+ i < N:", "+ i <= N:", ["note   line", "(`i < N`, not `i <= N`)"]),
        ("03", "    return add\n", "", ["vector_add returns nothing", "end it with `return main`"]),
        ("03", "def vector_add", "def vectoradd", ["no function vector_add; it defines vec"]),
        ("03", "A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C",
         "C: T.Tensor((N,), dtype), A: T.Tensor((N,), dtype), B", ["asked for, in order: A, B, C"]),
        ("03", "block = 256", "block = size", ["line 11: block = size", "public.block: NameError"]),
        ("05", 'columns), "float32")', "columns), dtype)", ["accumulate in float32"]),
        ("05", "part[i, j] +=", "part[i, j] =", ["the last 256 of 1000 terms", "overwritten in"]),
        ("10", "            T.clear(total)\n", "", ["FINDING_TL2002", "T.clear"]),
    ],
)  # fmt: skip
def test_mistakes_are_explained(
    exercise: str, old: str, new: str, told: list[str], tmp_path: Path
) -> None:
    """What a beginner does wrong is named where it is: in words, with the line."""
    shipped = load_exercise(exercise)
    text = shipped.solution.read_text("utf-8")
    assert old in text
    (tmp_path / "mine.py").write_text(text.replace(old, new, 1))
    shown = to_text(grade(shipped, tmp_path / "mine.py", seed=3, gpu=False))
    assert all(words in shown for words in told), shown
    assert len(shown.splitlines()) <= 40


HANGS_ONCE = """
_right = vector_add


def vector_add(N):
    while N == 1000: pass
    return _right.compile(N=N)
"""


def test_a_compile_that_never_ends_loses_its_case_only(tmp_path: Path) -> None:
    """The worker is ended at its limit and started anew for the other sizes."""
    exercise = load_exercise("03")
    (hangs,) = {c.id for c in exercise.kernel_task.public if c.sizes == {"N": 1000}}
    path = tmp_path / "mine.py"
    path.write_text(exercise.solution.read_text("utf-8") + HANGS_ONCE)
    budget = replace(KERNEL_BUDGET, compile=10.0)
    results = grade(exercise, path, seed=1, budget=budget, gpu=False).outcome.results
    lost = {r.id for r in results if r.code == "TIMEOUT"}
    assert lost == {hangs, "compile"}
    assert all(r.status != "fail" for r in results if r.id not in lost)
