"""Programs that try to earn points without the answer, or to harm: none does.

First line of each file: `# expects: CODE [flag or -] [part of the sandbox that it needs or -]
[exercise]`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge.exercise import UsageError, load_exercise
from judge.judge import KERNEL_BUDGET, grade
from judge.report import to_json, to_text, validate
from judge.session import Budget

ATTACKS = sorted((Path(__file__).parent / "attacks").glob("*.py"))
LEFT_BEHIND = Path("/tmp/tilelab-judge-attack")
QUICK = Budget(load=5.0, call=1.0)
SAYS_LITTLE = ("RAISED", "WRONG_VALUES", "WRONG_BYTES_PER_STAGE", "ANSWER_FORM")
"""Codes that say that something is wrong and not what was tried."""
UNNAMED = {
    "deep_answer": "an answer of the wrong form, as a beginner's mistake gives it",
    "fake_verdict": "prints in place of returning, as a beginner's mistake does",
    "advice_that_passes": "an exception with advice, as many have it; cleaned before it is shown",
    "fake_code_object": "an entry that is an object of a class, as a style may have it",
    "kernel_looks_beside_its_tensors": "an index out of range, as a beginner's mistake gives it",
    "signature_without_end": "a function of other parameters, as a beginner's mistake gives it",
    "half_a_character": "an exception with odd text; cleaned before it is shown",
    "equal_to_everything": "an answer of the wrong form, as a beginner's mistake gives it",
    "huge_integer": "an answer of the wrong form, as a beginner's mistake gives it",
    "kernel_line_of_another_file": "a place that is not in the student's file is dropped unseen",
    "kernel_prints": "prints of a kernel go nowhere, honest ones too",
    "names_its_own_code": "a class of that name is the student's own affair; its code is not read",
    "parser_bomb": "a syntax error, as a beginner's mistake gives it",
    "lying_integer": "arrives as the plain integer that it holds, which is wrong",
}
"""The attacks that look like honest mistakes, and why nothing tells them apart."""
KERNEL_QUICK = replace(KERNEL_BUDGET, load=15.0)


def _expects(path: Path) -> list[str]:
    words = path.read_text("utf-8").splitlines()[0].split()[2:]
    return words + ["-", "-", "-", "01"][len(words) :]


def test_attacks_are_many_and_named() -> None:
    """At least thirty; nine of ten with a flag or a code that says what was tried, the rest listed.
    `test_attack_gains_nothing` holds each first line against the verdict."""
    expected = {path.stem: _expects(path) for path in ATTACKS}
    unnamed = {n for n, (code, flag, *_) in expected.items() if flag == "-" and code in SAYS_LITTLE}
    assert unnamed == set(UNNAMED), "name the trick in the file's first line, or say why not here"
    assert len(ATTACKS) >= 30
    assert len(unnamed) <= 0.1 * len(ATTACKS)


@pytest.mark.parametrize("path", ATTACKS, ids=lambda p: p.stem)
def test_attack_gains_nothing(path: Path) -> None:
    """No point, the expected code and flag, with a report that stays readable. That it ends is
    the judge's own limits' doing, in wall seconds: a test of those would hang on the machine."""
    code, flag, part, exercise = _expects(path)
    LEFT_BEHIND.unlink(missing_ok=True)
    budget = QUICK if exercise == "01" else KERNEL_QUICK
    verdict = grade(load_exercise(exercise), path, seed=1, budget=budget, gpu=False)
    if part in verdict.sandbox_missing:
        assert "sandbox partial" in to_text(verdict)
        pytest.skip(f"this machine's sandbox is partial: no {part}")
    assert verdict.points[0] == 0
    assert (verdict.status, verdict.outcome.code) == ("fail", code), to_text(verdict)
    assert flag == "-" or flag in verdict.outcome.flags
    assert not LEFT_BEHIND.exists()
    text = to_text(verdict)
    assert len(text.splitlines()) <= 40
    assert not validate(to_json(verdict))


def _grade_text(tmp_path: Path, text: str):
    path = tmp_path / "mine.py"
    path.write_text(text)
    return grade(load_exercise("01"), path, seed=1, budget=QUICK)


def test_a_hang_loses_its_own_case_only(tmp_path: Path) -> None:
    """One question that is never answered leaves the other 63 points."""
    solution = load_exercise("01").solution.read_text("utf-8")
    trap = (
        "\n_budget, _asked = budget, []\n\ndef budget(**config):\n    while config['bits'] == 32 "
    )
    trap += "and config['num_stages'] == 0: pass\n    return _budget(**config)\n"
    verdict = _grade_text(tmp_path, solution + trap)
    hung = [r.id for r in verdict.outcome.results if r.code == "TIMEOUT"]
    others = [r for r in verdict.outcome.results if r.code not in ("TIMEOUT", "")]
    assert 1 <= len(hung) <= 3, "draw another seed"
    assert not others
    assert verdict.points[0] == 64 - len(hung)


def test_hidden_values_stay_hidden(tmp_path: Path) -> None:
    """What is printed or raised while hidden cases are asked is not shown."""
    verdict = _grade_text(
        tmp_path,
        'print("loaded")\n\ndef budget(**config):\n'
        "    print(config)\n    raise ValueError(config)\n",
    )
    report = to_json(verdict)
    hidden = [case for case in report["cases"] if case["hidden"]]
    assert all(case["message"] == "ValueError was raised in line 5" for case in hidden)
    public = sum(not case["hidden"] for case in report["cases"])
    assert verdict.outcome.output.count("block_M") == public
    assert "loaded" in verdict.outcome.output


def test_terminal_escapes_are_cleaned(tmp_path: Path) -> None:
    """Text from the student's side cannot steer the terminal."""
    verdict = _grade_text(tmp_path, 'raise ValueError("\\x1b[2J\\n\\n all passed")')
    assert "\x1b" not in to_text(verdict)
    assert verdict.status == "fail"


def test_a_file_that_does_not_parse_names_its_line(tmp_path: Path) -> None:
    """A syntax error is the student's, with its line."""
    verdict = _grade_text(tmp_path, "\ndef budget(block_M)\n    return 0\n")
    assert verdict.outcome.code == "RAISED"
    assert "SyntaxError was raised in line 2" in verdict.outcome.cause


def test_links_and_huge_files_are_refused(tmp_path: Path) -> None:
    """A submission is a regular file of a sensible size."""
    exercise = load_exercise("01")
    link = tmp_path / "link.py"
    link.symlink_to(exercise.solution)
    huge = tmp_path / "huge.py"
    huge.write_bytes(b"#" * (300 << 10))
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (link, huge, binary, tmp_path, tmp_path / "absent.py"):
        with pytest.raises(UsageError):
            grade(exercise, path)
