"""The verdict for other programs: JUnit XML and Gradescope's results.json. Hides their schemas.

Both are made from the JSON of `report.to_json`, so they say what it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

Report = dict[str, Any]
_KEPT = ("schema", "exercise", "code", "flags", "score")


def to_junit(reports: Sequence[Report]) -> str:
    """One test suite for each exercise, one test case for each case; "not assessed" is skipped."""
    root = ElementTree.Element("testsuites", name="judge")
    for report in reports:
        cases = report["cases"]
        counts = {s: sum(c["status"] == s for c in cases) for s in ("fail", "not assessed")}
        suite = ElementTree.SubElement(
            root, "testsuite", name=report["exercise"], tests=str(len(cases)),
            failures=str(counts["fail"]), skipped=str(counts["not assessed"]), errors="0",
            time=f"{report['seconds']:.3f}",
        )  # fmt: skip
        for case in cases:
            test = ElementTree.SubElement(
                suite, "testcase", classname=f"judge.{report['exercise']}", name=case["id"]
            )
            text = case["message"] or case["category"]
            if case["status"] == "fail":
                ElementTree.SubElement(test, "failure", type=case["code"] or "FAIL", message=text)
            elif case["status"] == "not assessed":
                ElementTree.SubElement(test, "skipped", message=text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


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
