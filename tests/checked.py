"""`pytest --checked-everything`: every simulated run of the suite under all checks.

A run that its test simulates with fewer checks is simulated with all of them, and the first run
of one test in eight under 20 permuted schedules too. A finding that the test did not ask for
fails it, so a green run says: no false alarm on any right program. Tests of findings are named in
EXPECTING, or marked with `expects_findings`.
"""

from __future__ import annotations

import sys
import time
import zlib
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

import pytest

import tilelab.sim
from tilelab.sim.findings import ALL_CHECKS, KINDS, chosen_checks

EXPECTING = (
    "tests/sim/detection/", "tests/sim/test_findings.py", "tests/sim/test_global_races.py",
    "tests/sim/test_deleted_syncs.py", "tests/sim/test_nans.py",
    # The notebook shows a deadlock.
    "tests/views/test_every_kernel.py::test_budget_equals_the_compiled_kernel[notebook 05",
)  # fmt: skip
"""Tests whose programs are wrong on purpose, from the first line of their id on."""
SCHEDULES = 20
QUICK = 0.3  # seconds; slower runs are tried under a quarter of the schedules
ONE_IN = 8  # tests whose first run is tried under other schedules: a fixed sample


class Checked:
    """The plugin: stands in for `simulate` while tests run."""

    def __init__(self) -> None:
        module = sys.modules["tilelab.sim.simulate"]
        self.real = module.simulate  # type: ignore[attr-defined]
        module.simulate = self.simulate  # type: ignore[attr-defined]
        tilelab.sim.simulate = self.simulate
        self.problems: list[str] = []
        self.sampled = False
        self.totals: Counter[str] = Counter()

    def simulate(self, program: Any, arrays: Any, scalars: Any = None, **options: Any) -> Any:
        """As the simulator does, under all checks; a caller sees the findings it asked for."""
        asked = options.get("checks", True)
        chosen = chosen_checks(asked)
        fresh = {name: array.copy() for name, array in arrays.items()}
        started = time.perf_counter()
        report = self.real(program, arrays, scalars, **{**options, "checks": chosen | ALL_CHECKS})
        seconds = time.perf_counter() - started
        self.totals["runs"] += 1
        found = _only(report.findings, ALL_CHECKS)
        if found:
            self.problems.append(f"{found[0]}")
        elif self.sampled:
            self.sampled = False
            self._permuted(program, fresh, scalars, options, seconds)
        if asked is True:
            return report
        kept = {name: _only(getattr(report, name), chosen) for name in ("findings", "notes")}
        return replace(report, **kept)

    def _permuted(
        self, program: Any, fresh: Any, scalars: Any, options: Any, seconds: float
    ) -> None:
        for seed in range(SCHEDULES if seconds < QUICK else SCHEDULES // 4):
            copies = {name: array.copy() for name, array in fresh.items()}
            more = {"checks": True, "schedule": "random", "seed": seed, "to_tables": False}
            report = self.real(program, copies, scalars, **{**options, **more})
            self.totals["permuted runs"] += 1
            if not report.ok:
                self.problems.append(f"random schedule {seed}: {report.findings[0]}")
                return

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A test fails by findings that it does not expect."""
        self.problems, self.sampled = [], zlib.crc32(item.nodeid.encode()) % ONE_IN == 0
        outcome = yield
        marked = item.get_closest_marker("expects_findings") is not None
        if self.problems and not marked and not item.nodeid.startswith(EXPECTING):
            pytest.fail("findings:\n" + "\n".join(self.problems[:5]), pytrace=False)
        return outcome

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the counts of a worker to the process that started it."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["checked"] = dict(self.totals)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Add up what the workers did (pytest-xdist)."""
        self.totals.update(getattr(node, "workeroutput", {}).get("checked", {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """How much was run."""
        counts = ", ".join(f"{n:,} {what}" for what, n in self.totals.items())
        terminalreporter.write_line(f"checked everything: {counts or 'nothing was simulated'}")


def _only(found: Iterable[Any], chosen: frozenset[str]) -> tuple[Any, ...]:
    return tuple(f for f in found if KINDS[f.code] in chosen)
