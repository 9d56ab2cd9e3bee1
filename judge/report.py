"""The verdict as data and as text: one schema, at most 40 lines for a person.

Hides wording, cleaning of untrusted text, and the shape of the JSON that docs/judge.md documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from judge.checks import CaseResult, Outcome, Status
from judge.failure import CODE as JUDGE_FAILED
from judge.sandbox import missing

SCHEMA = 2
MAX_LINES, MAX_WIDTH = 40, 110


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one submission."""

    exercise: str
    submission: str
    outcome: Outcome
    seconds: float

    @property
    def status(self) -> Status:
        """ "pass" when every assessed case passed, "not assessed" when there was none."""
        assessed = [r for r in self.outcome.results if r.status != "not assessed"]
        if not assessed:
            return "not assessed"
        return "pass" if all(r.status == "pass" for r in assessed) else "fail"

    @property
    def points(self) -> tuple[int, int, int]:
        """Points won, points assessed, points in all."""
        results = self.outcome.results
        won = sum(r.points for r in results)
        assessed = sum(r.max_points for r in results if r.status != "not assessed")
        return won, assessed, sum(r.max_points for r in results)

    @property
    def sandbox_missing(self) -> list[str]:
        """Parts of the sandbox that were not in force; none where no worker ran."""
        return missing(self.outcome.sandbox) if self.outcome.sandbox else []

    @property
    def sandbox_state(self) -> str:
        """ "full", "partial", or "unknown" where no worker ran."""
        if not self.outcome.sandbox:
            return "unknown"
        return "partial" if self.sandbox_missing else "full"


def to_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict under the schema of docs/judge.md."""
    won, assessed, total = verdict.points
    outcome = verdict.outcome
    return {
        "schema": SCHEMA,
        "exercise": verdict.exercise,
        "submission": verdict.submission,
        "status": verdict.status,
        "score": {"points": won, "assessed": assessed, "total": total},
        "code": outcome.code,
        "cause": clean(outcome.cause),
        "hint": clean(outcome.hint),
        "flags": list(outcome.flags),
        "sandbox": {
            "state": verdict.sandbox_state,
            "missing": verdict.sandbox_missing,
            "parts": outcome.sandbox,
        },
        "device": outcome.device or "simulator",
        "seconds": round(verdict.seconds, 3),
        "cases": [_case_json(r) for r in outcome.results],
    }


def _case_json(result: CaseResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "category": result.category,
        "hidden": result.hidden,
        "status": result.status,
        "points": result.points,
        "max_points": result.max_points,
        "code": result.code,
        "message": clean(result.message),
        "part": result.part,
        "args": result.args,
        "detail": _cleaned(result.detail),
        "expected": result.expected,
        "got": result.got,
    }


def _cleaned(value: Any) -> Any:
    """Plain data with every text cleaned."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {key: _cleaned(item) for key, item in items.items()}
    return clean(value) if isinstance(value, str) else value


# Every key with the types of its values; a list's or dict's content is checked by its own table.
TOP: dict[str, type | tuple[type, ...]] = {
    "schema": int, "exercise": str, "submission": str, "status": str, "score": dict, "code": str,
    "cause": str, "hint": str, "flags": list, "sandbox": dict, "device": str,
    "seconds": (int, float), "cases": list,
}  # fmt: skip
CASE: dict[str, type | tuple[type, ...]] = {
    "id": str, "category": str, "hidden": bool, "status": str, "points": int, "max_points": int,
    "code": str, "message": str, "part": str, "args": dict, "detail": dict, "expected": dict,
    "got": dict,
}  # fmt: skip
SCORE: dict[str, type | tuple[type, ...]] = {"points": int, "assessed": int, "total": int}
STATUSES = ("pass", "fail", "not assessed")


def validate(report: dict[str, Any]) -> list[str]:
    """What in `report` breaks the schema; empty when nothing does."""
    problems = _check("report", report, TOP)
    if problems:
        return problems
    problems += _check("score", report["score"], SCORE)
    ids = [case.get("id") for case in report["cases"]]
    problems += [f"case id {i} occurs twice" for i, n in Counter(ids).items() if n > 1]
    for case in report["cases"]:
        problems += _check(f"case {case.get('id')}", case, CASE)
        told = [case.get(key) for key in ("args", "expected", "got", "detail")]
        if not problems and case["hidden"] and any(told):
            problems.append(f"case {case['id']} is hidden and tells its values")
    statuses = [report["status"], *(case.get("status") for case in report["cases"])]
    return problems + [f"{s!r} is no status" for s in statuses if s not in STATUSES]


def _check(
    what: str, value: dict[str, Any], table: dict[str, type | tuple[type, ...]]
) -> list[str]:
    if set(value) != set(table):
        return [f"{what} has the keys {sorted(value)}, wanted {sorted(table)}"]
    return [
        f"{what}.{key} is a {type(value[key]).__name__}"
        for key, kinds in table.items()
        if not isinstance(value[key], kinds)
    ]


# -- for a person ---------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Untrusted text on one line: no control characters (terminals obey them), not too long."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown if len(shown) <= MAX_WIDTH * 3 else shown[: MAX_WIDTH * 3] + "…"


def to_text(verdict: Verdict) -> str:
    """The terminal report."""
    won, assessed, total = verdict.points
    outcome = verdict.outcome
    status = "judge failed" if outcome.code == JUDGE_FAILED else verdict.status
    lines = [
        f"{verdict.exercise}: {status.upper()}, {won} of {assessed} points assessed"
        + (f" (of {total})" if assessed != total else ""),
        f"  graded {clean(verdict.submission)} in {verdict.seconds:.1f} s"
        + (f" on {outcome.device}" if outcome.device else ""),
    ]
    lines += _public_lines([r for r in outcome.results if not r.hidden])
    lines += _hidden_lines([r for r in outcome.results if r.hidden])
    lines += [
        f"  {r.category}: {clean(r.message)}"
        for r in outcome.results
        if r.status == "not assessed" or (r.part == "performance" and r.status == "pass")
    ]
    if outcome.code:
        lines.append(f"  reason {outcome.code}: {clean(outcome.cause)}")
        lines += [f"  hint   {clean(outcome.hint)}"] if outcome.hint else []
    printed = [clean(line) for line in outcome.output.splitlines() if line.strip()]
    if printed:
        lines.append("  printed before the hidden cases:")
        lines += [f"    {line[:MAX_WIDTH]}" for line in printed[-4:]]
    lines += [f"  flagged: {', '.join(outcome.flags)}"] if outcome.flags else []
    if verdict.sandbox_missing:
        lines.append(f"  sandbox partial: without {', '.join(verdict.sandbox_missing)}")
    return "\n".join(lines[:MAX_LINES])


def _public_lines(results: Sequence[CaseResult]) -> list[str]:
    seen = [r for r in results if r.status != "not assessed"]
    passed = sum(r.status == "pass" for r in seen)
    lines = [f"  public cases: {passed} of {len(seen)} pass"]
    told: CaseResult | None = None
    # The case says more than the line on compiling that follows from it.
    bad = [r for r in seen if r.status == "fail" and r.code != "NOT_RUN"]
    for result in sorted(bad, key=lambda r: r.part == "compile")[:3]:
        says_more = bool(result.got) or "index" in result.detail
        if told and not says_more and (told.code, told.message) == (result.code, result.message):
            lines.append(f"    {result.id} ({result.category}): the same")
            continue
        told = result
        lines.append(f"    {result.id} ({result.category}): {clean(result.message)}")
        if result.args:
            arguments = ", ".join(f"{k}={v}" for k, v in result.args.items())
            lines.append(f"      asked    {arguments}")
        if result.got:
            lines.append(f"      expected {_fields(result.expected)}")
            lines.append(f"      got      {_fields(result.got)}")
        lines += [f"      {clean(line)}" for line in _detail_lines(result.detail)]
    return lines + _note_lines(seen)


def _note_lines(results: Sequence[CaseResult]) -> list[str]:
    """What is right and yet seldom meant, once."""
    note = next((r.detail["note"] for r in results if "note" in r.detail), None)
    if note is None:
        return []
    where = f"line {note['line']}: " if "line" in note else ""
    return [f"    note   {where}{clean(note['text'])}", f"           {clean(note['cause'])}"]


def _detail_lines(detail: dict[str, Any]) -> list[str]:
    """The first wrong element, who wrote it, the line, the likely cause."""
    lines: list[str] = []
    if "index" in detail:
        lines.append(
            f"first wrong element {detail['index']}: expected {detail['expected']}, got "
            f"{detail['got']} (allowed error {detail['allowed']})"
        )
    owner = detail.get("owner")
    if owner:
        lines.append(
            f"written by block {owner['block']}, warp {owner['warp']}, lane {owner['lane']}"
        )
    place = detail.get("finding", {})
    if place.get("block"):
        lines.append(f"seen in block {place['block']}, warp {place['warp']}, lane {place['lane']}")
    if "line" in place:
        lines.append(f"line {place['line']}: {place['text']}")
    return lines + ([f"cause    {detail['cause']}"] if detail.get("cause") else [])


def _fields(values: dict[str, Any]) -> str:
    return clean(", ".join(f"{name}={value}" for name, value in values.items()))


def _hidden_lines(results: Sequence[CaseResult]) -> list[str]:
    passed = sum(r.status == "pass" for r in results)
    lines = [f"  hidden cases: {passed} of {len(results)} pass"]
    by_category = Counter(r.category for r in results)
    failed = Counter(r.category for r in results if r.status == "fail")
    if results and passed == 0:
        return [*lines, f"    every category fails: {', '.join(failed)}"]
    for category, count in list(failed.items())[:10]:
        lines.append(f"    {category}: {count} of {by_category[category]} fail")
    return lines
