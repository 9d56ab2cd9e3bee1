"""The verdict for other programs: JUnit XML and Gradescope's results.json. Hides their schemas.

Both are made from the JSON of `report.to_json`, so they say what it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from judge.failure import CODE as JUDGE_FAILED

Report = dict[str, Any]
_KEPT = ("schema", "exercise", "code", "flags", "score")


def to_junit(reports: Sequence[Report]) -> str:
    """One test suite for each exercise, one test case for each case; "not assessed" is skipped."""
    root = ElementTree.Element("testsuites", name="judge")
    for report in reports:
        cases = report["cases"]
        ends = Counter(_end(case) for case in cases)
        suite = ElementTree.SubElement(
            root, "testsuite", name=report["exercise"], tests=str(len(cases)),
            failures=str(ends["failure"]), skipped=str(ends["skipped"]), errors=str(ends["error"]),
            time=f"{report['seconds']:.3f}",
        )  # fmt: skip
        for case in cases:
            test = ElementTree.SubElement(
                suite, "testcase", classname=f"judge.{report['exercise']}", name=case["id"]
            )
            text = case["message"] or case["category"]
            end = _end(case)
            if end in ("failure", "error"):
                ElementTree.SubElement(test, end, type=case["code"] or "FAIL", message=text)
            elif end:
                ElementTree.SubElement(test, end, message=text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _end(case: Report) -> str:
    """JUnit's element for how a case ended; empty when it passed."""
    if case["code"] == JUDGE_FAILED:
        return "error"
    return {"pass": "", "fail": "failure", "not assessed": "skipped"}[case["status"]]


def to_gradescope(report: Report, text: str) -> dict[str, Any]:
    """results.json: the score is what was won; hidden cases show their category and no more.

    What was not assessed counts in `max_score` of no test, and is said in the output."""
    score = report["score"]
    tests = [
        {
            "name": f"{case['id']} ({case['category']})",
            "score": case["points"], "max_score": case["max_points"],
            "status": "passed" if case["status"] == "pass" else "failed",
            "output": " ".join(x for x in (case["code"], case["message"]) if x),
            "visibility": "visible",
        }
        for case in report["cases"]
        if case["status"] != "not assessed"
    ]  # fmt: skip
    return {
        "score": score["points"],
        "execution_time": report["seconds"],
        "output": text,
        "output_format": "text",
        "visibility": "visible",
        "tests": tests,
        "extra_data": {
            key: report[key] for key in ("schema", "exercise", "code", "flags", "score")
        },
    }
