"""What a student can do next, by the kind of failure. Hides the table of codes and sentences.

The hints of an exercise help against wrong results; who has no kernel yet needs others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.checks import CaseResult

OF_RESULTS = ("WRONG_VALUES", "UNWRITTEN", "OUT_OF_BOUNDS", "INPUT_CHANGED")
"""A kernel ran, and what it left behind is not right."""
ONLY_HIDDEN = (
    "the public cases are right: does a number in the program belong to their sizes? Sizes, grids "
    "and loops follow from the arguments"
)
_ADVICE = {
    "RAISED": "Python stopped before there was a kernel: mend the line that is named first",
    "NO_ENTRY": "the starter's `def` line is what the judge calls: keep its name",
    "SIGNATURE": "task.md says which parameters the kernel has; the starter's docstring does too",
    "TIMEOUT": "try it by yourself with one small size, and print where it is",
    "MEMORY": "does a list or a tensor grow with the number of elements?",
    "SLOW": "move 16 bytes a thread (bigger tiles in T.Parallel), and launch enough blocks",
}
_HAPPENED = {
    "FINDING_TL2010": "the kernel takes more steps than any sensible one",
    "TIMEOUT": "there is no answer in time",
    "WRONG_VALUES": "elements are wrong",
    "UNWRITTEN": "elements are never written",
    "OUT_OF_BOUNDS": "memory beside a tensor is written",
    "INPUT_CHANGED": "an input is changed",
    "RAISED": "an exception is raised",
}


def advice(code: str, hints: Sequence[str]) -> str:
    """The sentence for a code; the exercise's first hint where it is about results."""
    return _ADVICE.get(code) or (hints[0] if hints else "")


def in_hidden(case: CaseResult) -> str:
    """What happened in a hidden case, without its sizes."""
    happened = _HAPPENED.get(case.code, "it fails")
    return f'{happened} in a case of the kind "{case.category}"'


_NOT_CALLED = (
    "return the kernel itself, not a call of it: the judge compiles it and calls it with tensors"
)
_FAULTS = {
    "SyntaxError": "Python cannot read on from here: look at this line and the end of the one "
    "before (a colon, a bracket, a quote)",
    "IndentationError": "lines of one block begin in the same column",
    "TabError": "indent with spaces only",
    "ModuleNotFoundError": "a file may import tilelang, torch, numpy and Python's own library",
    "EOFError": "nobody types while the judge runs: numbers come from the arguments",
    "AssertionError": "an assert of the file's own: the task asks for every size, tails too",
    "RecursionError": "a function calls itself without an end",
    "PermissionError": "a file may not read, write or connect: the kernel gets its tensors",
}


def likely_fault(error: Mapping[str, Any], code: str, tensors: Sequence[str]) -> str:
    """Why there is no kernel, and what to do: the error's own advice where it has any that is of
    use here."""
    text = str(error.get("text", ""))
    if code == "TIMEOUT":
        return "a loop that never ends? Sizes are Python numbers here, and this runs before any GPU"
    if error.get("type") == "NameError" and any(f"'{name}'" in text for name in tensors):
        return _NOT_CALLED
    if code == "TL1480":  # its advice is for who calls the kernel
        return _NOT_CALLED
    return str(error.get("hint", "")) or _FAULTS.get(str(error.get("type")), "")
