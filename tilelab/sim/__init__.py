"""The simulator: thread IR on numpy arrays, with findings, counters and events."""

from tilelab.sim.counters import KernelCounters, LineCounters
from tilelab.sim.findings import ALL_CHECKS, OPTIONAL_CHECKS, Finding, chosen_checks
from tilelab.sim.report import SimReport
from tilelab.sim.scheduler import SCHEDULES, Schedule
from tilelab.sim.simulate import simulate
from tilelab.sim.timeline import Event

__all__ = [
    "ALL_CHECKS", "OPTIONAL_CHECKS", "SCHEDULES", "Event", "Finding", "KernelCounters",
    "LineCounters", "Schedule", "SimReport", "chosen_checks", "simulate",
]  # fmt: skip
