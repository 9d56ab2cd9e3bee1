"""Cases, answers and points of quiz and estimation exercises. Hides how an answer is read and how
a wrong idea is recognised from its numbers.

A quiz asks for integers with known names. Expected values are computed here, in the judge, and
never reach the process that runs the student's code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, cast

from judge.kernels import Part
from judge.session import Answer, Session

Args = Mapping[str, int]
Fields = Mapping[str, int]
Status = Literal["pass", "fail", "not assessed"]


@dataclass(frozen=True)
class Case:
    """One question. `id` is the same in every run; hidden cases draw their `args` anew."""

    id: str
    category: str
    args: dict[str, int]
    hidden: bool
    points: int = 0


@dataclass(frozen=True)
class WrongIdea:
    """A known mistake: what it computes, its code, and what the student is told."""

    code: str
    cause: str
    hint: str
    compute: Callable[..., Fields]


@dataclass(frozen=True)
class Measured:
    """A question whose right answer is measured from a real compile, as far as it says."""

    case: Case
    measure: Callable[[], Fields]


@dataclass(frozen=True)
class Quiz:
    """An exercise answered with integers: the student writes `entry`, the judge asks it cases.

    `public` cases carry no points and show everything; `draw` makes the hidden ones from a secret
    generator. `expected` is the reference. `starter_code` is what the untouched starter fails with.
    """

    entry: str
    fields: tuple[str, ...]
    public: tuple[Case, ...]
    draw: Callable[[Random], Sequence[Case]]
    expected: Callable[..., Fields]
    ideas: tuple[WrongIdea, ...]
    starter_code: str
    measured: tuple[Measured, ...] = ()
    hint_command: str = ""


@dataclass(frozen=True)
class CaseResult:
    """One graded case. `expected`, `got` and `detail` stay empty for hidden cases."""

    id: str
    category: str
    hidden: bool
    status: Status
    points: int
    max_points: int
    code: str = ""
    message: str = ""
    args: dict[str, int] = field(default_factory=dict[str, int])
    expected: dict[str, int] = field(default_factory=dict[str, int])
    got: dict[str, Any] = field(default_factory=dict[str, Any])
    part: Part = ""
    detail: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Outcome:
    """All cases of one run, the code that sums them up, cause and hint in a sentence each."""

    results: tuple[CaseResult, ...]
    code: str
    cause: str
    hint: str
    flags: tuple[str, ...]
    sandbox: dict[str, str]
    output: str = ""
    device: str = ""  # the GPU that kernels ran on; empty: the simulator, or no kernel


FAILURES: dict[str, tuple[str, str]] = {
    "raised": ("RAISED", "the function raised an exception"),
    "timeout": ("TIMEOUT", "no answer in time; the process was ended"),
    "died": ("WORKER_EXIT", "the process ended without an answer"),
    "malformed": ("CHANNEL_TAMPERED", "something else than one answer came back"),
    "no entry": ("NO_ENTRY", "the file defines no such function"),
    "not run": ("NOT_RUN", "not asked: the process was lost too often, or tampered with"),
}


_TILELAB_CODE = re.compile(r"TL\d{4}")
_OTHER_ARGUMENTS = re.compile(
    r"unexpected keyword argument|missing \d+ required|takes \d+ positional"
)


def other_arguments(entry: str, text: str) -> str:
    """The advice where a call of `entry` failed at its parameters, by Python's text; else empty."""
    if not text.startswith(f"{entry}() ") or not _OTHER_ARGUMENTS.search(text):
        return ""
    return "the judge passes every argument by its name in the task: keep the starter's `def` line"


def public_only(results: Sequence[CaseResult]) -> tuple[str, str, str] | None:
    """Code, cause and hint where all public cases pass and no hidden one does: what was made for
    the cases that it could see."""
    seen = [r for r in results if not r.hidden and r.part == ""]
    unseen = [r for r in results if r.hidden]
    if any(r.status != "pass" for r in seen) or any(r.status == "pass" for r in unseen):
        return None
    cause = "right in every public case and in no hidden one"
    cause += f"; the first of these ({unseen[0].category}): {unseen[0].code}" if unseen else ""
    hint = "the result must follow from the arguments: is it right for the public values alone?"
    return "PUBLIC_ONLY", cause, hint


def failure(answer: Answer) -> tuple[str, str]:
    """Code and sentence for an answer that is no value."""
    code, text = FAILURES[answer.kind]
    if answer.kind == "no entry":
        text = str(answer.value)
    if answer.kind == "raised":
        given = str(answer.error.get("code"))
        code = given if _TILELAB_CODE.fullmatch(given) else code
        kind = str(answer.error.get("type", "exception"))
        if answer.error.get("not_implemented") is True:
            code = "NOT_IMPLEMENTED"
        if answer.error.get("no_memory") is True:
            code = "MEMORY"
        if answer.error.get("no_room") is True:
            code = "STORAGE"
        text = f"{kind[:40]} was raised"
    line = answer.error.get("line")
    return code, text + (f" in line {line}" if isinstance(line, int) else "")


def read_fields(value: Any, names: Sequence[str]) -> dict[str, int] | str:
    """The named integers in a dict or in a sequence of the right length; else what is wrong."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if len(items) != len(names):
            return f"{len(items)} values were returned, {len(names)} are asked for"
        value = dict(zip(names, items, strict=True))
    if not isinstance(value, dict):
        return f"a dict or tuple is asked for, not {_kind(value)}"
    given = cast("dict[str, Any]", value)
    if set(given) != set(names):
        return f"the keys are asked to be {', '.join(names)}"
    for name in names:
        if type(given[name]) is not int:
            return f"{name} is {_kind(given[name])}, an int is asked for"
    return {name: given[name] for name in names}


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return f"a {str(given['unsupported'])[:40]}" if "unsupported" in given else "a dict"
    return "None" if value is None else f"a {type(value).__name__}"


# -- one run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    case: Case
    want: dict[str, int]
    answer: Answer


def grade_quiz(quiz: Quiz, session: Session, rng: Random) -> Outcome:
    """Load the student's file, ask every case, and sum up."""
    loaded = session.load()
    cases = [*quiz.public, *(m.case for m in quiz.measured), *quiz.draw(rng)]
    measured = {m.case.id: dict(m.measure()) for m in quiz.measured}
    asked: list[_Asked] = []
    for case in sorted(cases, key=lambda c: c.hidden):
        if case.hidden and not (asked and asked[-1].case.hidden):
            session.show_output_until_now()
        answer = session.call(case.args) if loaded.kind == "value" else loaded
        want = {**quiz.expected(**case.args), **measured.get(case.id, {})}
        asked.append(_Asked(case, want, answer))
    session.finish()
    results = tuple(_judge_case(quiz, one, session.tampered) for one in asked)
    code, cause, hint = _sum_up(quiz, asked, results, session)
    return Outcome(
        results, code, cause, hint, tuple(session.flags), session.sandbox, session.output()
    )


def _judge_case(quiz: Quiz, one: _Asked, tampered: bool) -> CaseResult:
    case, answer = one.case, one.answer
    got: dict[str, int] = {}
    if tampered:
        code, text = FAILURES["malformed"]
    elif answer.kind != "value":
        code, text = failure(answer)
        detail = str(answer.error.get("text", ""))
        text += f": {detail}" if detail and not case.hidden else ""
    else:
        read = read_fields(answer.value, quiz.fields)
        if isinstance(read, str):
            code, text = "ANSWER_FORM", read
        else:
            got = read
            wrong = [name for name in quiz.fields if got[name] != one.want[name]]
            code = f"WRONG_{wrong[0].upper()}" if wrong else ""
            text = f"{', '.join(wrong)} wrong" if wrong else ""
    shown = not case.hidden
    return CaseResult(
        id=case.id, category=case.category, hidden=case.hidden,
        status="fail" if code else "pass",
        points=0 if code else case.points, max_points=case.points, code=code, message=text,
        args=case.args if shown else {}, expected=one.want if shown else {},
        got=dict(got) if shown else {},
    )  # fmt: skip


def _sum_up(
    quiz: Quiz, asked: Sequence[_Asked], results: Sequence[CaseResult], session: Session
) -> tuple[str, str, str]:
    """Code, cause and hint of the whole run."""
    failed = [r for r in results if r.status == "fail"]
    if session.tampered:
        return "CHANNEL_TAMPERED", FAILURES["malformed"][1], "return the values, nothing else"
    if not failed:
        return "", "", ""
    idea = recognise(quiz, asked)
    if idea is not None:
        return idea.code, idea.cause, idea.hint
    first = failed[0]
    said = [str(one.answer.error.get("text", "")) for one in asked if one.case.id == first.id]
    hint = other_arguments(quiz.entry, "".join(said[:1])) or quiz.hint_command
    alone = (first.code, f"{first.id}: {first.message}", hint)
    return public_only(results) or alone


def recognise(quiz: Quiz, asked: Sequence[_Asked]) -> WrongIdea | None:
    """The wrong idea that explains every single answer, the right ones too."""
    answers = [
        (one.case.args, read_fields(one.answer.value, quiz.fields))
        for one in asked
        if one.answer.kind == "value"
    ]
    if len(answers) != len(asked):
        return None
    for idea in quiz.ideas:
        if all(dict(idea.compute(**args)) == given for args, given in answers):
            return idea
    return None
