"""The judge's own faults: an exception of their own, so that none reads as a student's failure.

Hides nothing: one exception, and the block that turns whatever a step of the judge raises into it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

CODE = "JUDGE_FAILED"
"""The code of a verdict that says nothing about the solution (exit code 4)."""


class JudgeFailed(Exception):
    """The judge could not do its own part; says nothing about the solution."""


@contextlib.contextmanager
def own(step: str) -> Generator[None]:
    """Whatever is raised inside is the judge's own fault: JudgeFailed that names the step."""
    try:
        yield
    except JudgeFailed:
        raise
    except Exception as error:
        raise JudgeFailed(f"{step}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """Type and first line of an exception."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first[:200]}" if first else type(error).__name__
