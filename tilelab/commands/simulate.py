"""`tilelab simulate`: a script's calls on the simulator, their reports, and files of both kinds.

Hides where the command's own options stand: before the script, or after it up to a `--`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from tilelab.commands.arguments import Parser, counted, usage_error
from tilelab.commands.files import writable_file
from tilelab.runtime.reports import Timed
from tilelab.runtime.simulated import Policy
from tilelab.sim import ALL_CHECKS, OPTIONAL_CHECKS, Finding, SimReport
from tilelab.sim.trace import chrome_trace

SCHEMA = "tilelab.simulate/1"
_CALLS_APART = 1_000_000_000  # between the process numbers of two calls in a trace


def add_options(made: argparse.ArgumentParser) -> None:
    """The command's own options."""
    made.add_argument("--json", metavar="FILE", help="write the reports there")
    made.add_argument("--trace", metavar="FILE", help="write the modelled timelines there, for "
                      "ui.perfetto.dev")  # fmt: skip
    made.add_argument("--schedules", type=counted("number of schedules"), metavar="N",
                      help="run each call under N schedules (default: 1)")  # fmt: skip
    made.add_argument("--checks", type=_checks, metavar="NAMES", help="all, none, or some of "
                      + ",".join(sorted(ALL_CHECKS)) + " (default: all); "
                      + ",".join(OPTIONAL_CHECKS) + " only when named: default,nan")  # fmt: skip


def _checks(text: str) -> bool | tuple[str, ...]:
    if text in ("all", "none"):
        return text == "all"
    names = tuple(name for name in text.split(",") if name)
    every = ALL_CHECKS | OPTIONAL_CHECKS | {"default"}
    if not names or not every.issuperset(names):
        known = ", ".join(sorted(every))
        raise argparse.ArgumentTypeError(f"no check {text!r}: use all, none, or some of {known}")
    return names


def split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line, and those after a `--`: argparse would lose it."""
    at = words.index("--") if "--" in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def own_options(options: argparse.Namespace) -> list[str]:
    """Take the command's options out of the words after the script, too; the script's words."""
    parser = Parser(prog="tilelab simulate SCRIPT", add_help=False, allow_abbrev=False)
    add_options(parser)
    found, others = parser.parse_known_args(options.args)
    for name, value in vars(found).items():
        if value is not None and getattr(options, name) is not None:
            raise usage_error(f"--{name} is given twice", "give it once")
        if value is not None:
            setattr(options, name, value)
    return [*others, *options.rest]


def policy(options: argparse.Namespace) -> Policy:
    """How the script's calls are simulated: all of them run, whatever they find."""
    checks: Any = True if options.checks is None else options.checks
    return Policy(checks, options.schedules or 1, raises=False)


def reports_of(heard: Sequence[Timed]) -> list[SimReport]:
    """The simulator's reports among what was heard."""
    return [report for report in heard if isinstance(report, SimReport)]


def findings(reports: Sequence[SimReport]) -> list[Finding]:
    """Everything that the simulated calls of a run found."""
    return [found for report in reports for found in report.findings]


def summary(reports: Sequence[SimReport]) -> str:
    """The report of every call, and a last line."""
    if not reports:
        return "no kernel ran on the simulator"
    texts = [f"call {n}: {report}" for n, report in enumerate(reports, 1)]
    count = len(findings(reports))
    calls = f"{len(reports)} call{'' if len(reports) == 1 else 's'}"
    found = f"{count} finding{'' if count == 1 else 's'}" if count else "no findings"
    notes = sum(len(report.notes) for report in reports)
    found += f", {notes} note{'' if notes == 1 else 's'}" if notes else ""
    return "\n\n".join([*texts, f"{calls}: {found}"])


def write_files(options: argparse.Namespace, reports: Sequence[SimReport]) -> None:
    """The files that --json and --trace ask for."""
    if options.json:
        data = {"schema": SCHEMA, "reports": [report.to_dict() for report in reports]}
        writable_file(options.json).write_text(json.dumps(data), encoding="utf-8")
    if options.trace:
        writable_file(options.trace).write_text(json.dumps(joined_trace(reports)), encoding="utf-8")


def joined_trace(reports: Sequence[SimReport]) -> dict[str, Any]:
    """One trace of all calls; each has processes of its own."""
    events: list[dict[str, Any]] = []
    for number, report in enumerate(reports):
        made = chrome_trace(report.events, report.clock_hz, report.block, report.headline())
        for event in made["traceEvents"]:
            event["pid"] += number * _CALLS_APART
            if number and event["name"] == "process_name":
                event["args"]["name"] += f", call {number + 1}"
            events.append(event)
    about = f"{len(reports)} simulated calls; times are modelled, not measured"
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"about": about}}
