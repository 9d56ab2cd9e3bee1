"""Reports of simulated calls, handed to whoever listens (a benchmark adds their times).

Hides the simulator from code that only times things.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol


class Timed(Protocol):
    """A simulated call: how long the model says it takes on the target."""

    @property
    def modelled_ms(self) -> float: ...


_LISTENERS: list[list[Timed]] = []


def announce(report: Timed) -> None:
    """Hand a report to everyone who listens now."""
    for heard in _LISTENERS:
        heard.append(report)


@contextmanager
def collect_reports() -> Generator[list[Timed]]:
    """The reports of all simulated calls made inside."""
    heard: list[Timed] = []
    _LISTENERS.append(heard)
    try:
        yield heard
    finally:
        _LISTENERS[:] = [other for other in _LISTENERS if other is not heard]
