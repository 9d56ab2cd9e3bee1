"""Grades a kernel exercise: compiles in the worker, runs in the runner, counts points.

Hides the order: everything is compiled for sizes whose purpose is not told, then run; and that a
point for compiling, structure or speed needs right results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from judge.checks import FAILURES, CaseResult, Outcome, failure, public_only
from judge.hints import OF_RESULTS, ONLY_HIDDEN, advice, in_hidden, likely_fault
from judge.kernels import POINTS, KernelCase, KernelTask, Part, spread
from judge.runner import Runner, request_for
from judge.session import Answer, Session

VOID = ("channel_tampered", "patched")
"""Flags that cost every point."""
ENDLESS, MAX_ENDLESS = ("FINDING_TL2010", "TIMEOUT"), 3
"""A kernel that did not end so often is not run again."""
_SHOWN = ("cause", "index", "got", "expected", "allowed", "owner", "finding", "note")


@dataclass
class _Graded:
    """Results by part, while they come in."""

    results: list[CaseResult]

    def passed(self, part: Part) -> int:
        return sum(r.status == "pass" for r in self.results if r.part == part)

    def all_passed(self, *parts: Part) -> bool:
        return all(r.status == "pass" for r in self.results if r.part in parts)


_NOT_RUN_AGAIN: dict[str, Any] = {
    "status": "fail", "code": "NOT_RUN",
    "message": f"not run: {MAX_ENDLESS} cases before it did not end",
}  # fmt: skip


class NoGpu(Exception):
    """A GPU was asked for and there is none."""


def grade_kernel(
    task: KernelTask, session: Session, runner: Runner, rng: Random, wanted: bool | None = None
) -> Outcome:
    """Load, compile, run, check, time, sum up. `wanted`: on the GPU or not, None where there is
    one. Raises NoGpu."""
    here = runner.hello()
    gpu, target = str(here["gpu"]), str(here["target"])
    no_gpu = _why_no_gpu(here, wanted)
    if wanted and not gpu:
        raise NoGpu(f"--gpu: {no_gpu} (leave --gpu out to use the simulator)")
    cases = _with_points([*task.public, *task.draw(rng)])
    loaded = session.load()
    answers: dict[str, Answer] = {}
    for case, _ in cases:
        if case.hidden and not any(c.hidden for c, _ in cases if c.id in answers):
            session.show_output_until_now()
        answers[case.id] = session.compile(case.sizes, target) if loaded.kind == "value" else loaded
    extra = _compile_rest(task, session, target, bool(gpu), loaded)
    session.finish()
    seed = rng.getrandbits(40)
    graded = _Graded([])
    for number, (case, points) in enumerate(cases):
        found = _NOT_RUN_AGAIN
        if sum(r.code in ENDLESS for r in graded.results) < MAX_ENDLESS:
            found = _run(task, runner, session, case, answers[case.id], seed + 1000 * number)
        graded.results.append(_case_result(case, points, found))
        if found.get("code") == "ARTIFACT_INVALID" and "artifact_invalid" not in session.flags:
            session.flags.append("artifact_invalid")
    graded.results.insert(0, _compile_result(graded, answers))
    graded.results += _structure(task, graded, runner, session, extra["structure"], seed)
    graded.results.append(_performance(task, graded, runner, session, extra, no_gpu, seed))
    return _sum_up(task, graded.results, session, gpu)


def _why_no_gpu(here: dict[str, Any], wanted: bool | None) -> str:
    """Why kernels are not run on a GPU; empty where they are."""
    if here["gpu"]:
        return ""
    if wanted is False:
        return "the simulator was asked for"
    trouble = here["trouble"]
    return f"a GPU is here and cannot be used ({trouble})" if trouble else "no GPU"


def _with_points(cases: Sequence[KernelCase]) -> list[tuple[KernelCase, int]]:
    found: list[tuple[KernelCase, int]] = [(c, 0) for c in cases if not c.part]
    for part in ("correctness", "edges"):
        own = [c for c in cases if c.part == part]
        found += zip(own, spread(POINTS[part], len(own)), strict=True)
    return found


def _compile_rest(
    task: KernelTask, session: Session, target: str, gpu: bool, loaded: Answer
) -> dict[str, Answer]:
    if loaded.kind != "value":
        return {"structure": loaded, "performance": loaded}
    extra = {"structure": session.compile(task.structure_sizes, target)}
    if gpu:
        extra["performance"] = session.compile(task.performance.sizes, target)
    return extra


def _run(
    task: KernelTask, runner: Runner, session: Session, case: KernelCase, answer: Answer, seed: int
) -> dict[str, Any]:
    if answer.kind != "value":
        return _not_compiled(session, answer, [t.name for t in task.tensors])
    return runner.ask(request_for(case, answer.value, seed), session.budget.case)


def _not_compiled(session: Session, answer: Answer, tensors: Sequence[str]) -> dict[str, Any]:
    """A case without a kernel: what was raised, with the student's line, and what to do."""
    code, text = failure(answer)
    detail = str(answer.error.get("text", ""))
    number, lines = answer.error.get("line"), session.source.splitlines()
    found: dict[str, Any] = {}
    if isinstance(number, int) and 0 < number <= len(lines):
        found["finding"] = {"line": number, "text": lines[number - 1].strip()}
    return {
        "status": "fail", "code": code, "message": text + (f": {detail}" if detail else ""),
        "cause": likely_fault(answer.error, code, tensors), **found,
    }  # fmt: skip


def _case_result(case: KernelCase, points: int, found: dict[str, Any]) -> CaseResult:
    passed = found["status"] == "pass"
    shown = not case.hidden
    return CaseResult(
        id=case.id, category=case.category, hidden=case.hidden,
        status="pass" if passed else "fail", points=points if passed else 0, max_points=points,
        code=found.get("code", ""), message=found.get("message", "") if shown else "",
        args=case.sizes if shown else {}, part=case.part,
        detail={k: found[k] for k in _SHOWN if k in found} if shown else {},
    )  # fmt: skip


def _compile_result(graded: _Graded, answers: dict[str, Answer]) -> CaseResult:
    """Every size compiles; counts when at least one result with points is right."""
    bad = [a for a in answers.values() if a.kind != "value"]
    invalid = [r for r in graded.results if r.code in ("ARTIFACT_INVALID", "SIGNATURE")]
    code, text = failure(bad[0]) if bad else ("", "")
    if invalid and not bad:
        code, text = invalid[0].code, "what was compiled is not the kernel that is asked for"
    earned = not code and bool(graded.passed("correctness") + graded.passed("edges"))
    points = POINTS["compile"]
    return CaseResult(
        id="compile", category="compiles", hidden=False, status="fail" if code else "pass",
        points=points if earned else 0, max_points=points, code=code, message=text, part="compile",
    )  # fmt: skip


def _structure(
    task: KernelTask, graded: _Graded, runner: Runner, session: Session, answer: Answer, seed: int
) -> list[CaseResult]:
    shares = spread(POINTS["structure"], len(task.structure))
    right = graded.all_passed("correctness")
    found: dict[str, Any] = {}
    if answer.kind == "value" and right:
        request = {"op": "structure", "artifact": answer.value, "seed": seed}
        found = runner.ask(request, session.budget.case + session.budget.compile)
    results: list[CaseResult] = []
    for rule, points in zip(task.structure, shares, strict=True):
        base = CaseResult(rule.id, rule.category, False, "fail", 0, points, part="structure")
        problem: Any = found.get("rules", {}).get(rule.id, "not looked at")
        if not right:
            base = replace(base, code="NOT_RUN", message="needs all correctness cases")
        elif "rules" not in found:
            base = replace(base, code=found.get("code", "NOT_RUN"), message="could not be run")
        elif problem is None:
            base = replace(base, status="not assessed", message="cannot be seen here")
        elif problem:
            code = rule.id.replace(".", "_").upper()
            place = found.get("places", {}).get(rule.id)
            detail = {"cause": rule.hint, **({"finding": place} if place else {})}
            base = replace(base, code=code, message=problem, detail=detail)
        else:
            base = replace(base, status="pass", points=points)
        results.append(base)
    return results


def speed_points(ratio: float, floor: float, target: float) -> int:
    """Whole points for a ratio torch time / kernel time: 0 below `floor`, all from `target` on,
    linear between."""
    share = (ratio - floor) / (target - floor)
    return int(POINTS["performance"] * min(max(share, 0.0), 1.0) + 1e-9)


def _performance(
    task: KernelTask, graded: _Graded, runner: Runner, session: Session,
    extra: dict[str, Answer], no_gpu: str, seed: int,
) -> CaseResult:  # fmt: skip
    points, plan = POINTS["performance"], task.performance
    base = CaseResult(
        "performance", "speed against torch", False, "fail", 0, points, args=plan.sizes,
        part="performance",
    )  # fmt: skip
    if no_gpu:
        return replace(base, status="not assessed", message=f"not assessed here: {no_gpu}")
    if not graded.all_passed("correctness") or extra["performance"].kind != "value":
        return replace(base, code="NOT_RUN", message="needs all correctness cases")
    request = {"op": "bench", "artifact": extra["performance"].value, "seed": seed + 1}
    found = runner.ask(request, session.budget.bench)
    if found.get("code"):
        return replace(base, code=found["code"], message=found["message"])
    ratio = float(found["ratio"])
    won = speed_points(ratio, plan.floor, plan.target)
    text = (
        f"{found['kernel_us']:.1f} us, torch {found['torch_us']:.1f} us: ratio {ratio:.2f} "
        f"(points from {plan.floor} to {plan.target})"
    )
    slow = ratio < plan.floor
    return replace(
        base, status="fail" if slow else "pass", points=won, code="SLOW" if slow else "",
        message=text, detail={"ratio": round(ratio, 4)},
    )  # fmt: skip


def _sum_up(task: KernelTask, results: list[CaseResult], session: Session, gpu: str) -> Outcome:
    flags = tuple(session.flags)
    if any(flag in VOID for flag in flags):
        code, text = FAILURES["malformed"]
        if "channel_tampered" not in flags:
            code, text = "PATCHED", "functions of modules were replaced"
        results = [
            r if r.status == "not assessed"
            else replace(r, points=0, status="fail", code=code, detail={})
            for r in results
        ]  # fmt: skip
        return Outcome(tuple(results), code, text, "hand in a kernel, nothing else", flags,
                       session.sandbox, device=gpu)  # fmt: skip
    if known := public_only(results):
        return Outcome(tuple(results), *known, flags, session.sandbox, session.output(), gpu)
    bad = [r for r in results if r.status == "fail"]
    first = next((r for r in bad if r.code != "NOT_RUN"), None)
    code = first.code if first else ""
    cause, hint = "", advice(code, task.hints) if bad else ""
    if first is not None:
        cause = f"{first.id}: {first.message}" if first.message else in_hidden(first)
        hint = ONLY_HIDDEN if first.hidden and code in OF_RESULTS else hint
    # What is wrong with a program that does not compile is better said by a case that shows it.
    known = next((r for r in bad if r.code == code and r.detail), None)
    if known is not None and first is not None and first.part in ("structure", "compile"):
        cause, hint = f"{known.id}: {known.message}", str(known.detail.get("cause") or hint)
    return Outcome(
        tuple(results), code, cause, hint, flags, session.sandbox, session.output(), gpu
    )  # fmt: skip
