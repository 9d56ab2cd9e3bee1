"""Work on the host that a repeated call does: how many functions it calls. Its time is a row of
`tilelab bench launch`: hosts differ, and their load does."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

MOST_CALLS = 30
"""Functions, of Python and of C, that a call may call: some 0.1 us each."""
FIRST_TIME = frozenset({"_new_record", "_build", "pack", "bind", "facts_of", "misaligned"})
"""What belongs to the first call with a signature and addresses, by name."""


def called(call: Callable[[], Any]) -> Counter[str]:
    """How often one call calls which function, once all that is remembered is."""
    found: Counter[str] = Counter()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            found[frame.f_code.co_name] += 1
        if event == "c_call":
            found[getattr(argument, "__name__", str(argument))] += 1

    for _ in range(3):
        call()  # its output is freed, so that the allocator gives the same addresses again
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    torch.cuda.synchronize()
    return found


def check(what: str, call: Callable[[], Any]) -> None:
    """A repeated call makes nothing anew and calls few functions, which are printed."""
    found = called(call)
    print(f"\n{what}: {found.total()} calls: {dict(found)}")
    assert not FIRST_TIME & set(found)
    assert found.total() <= MOST_CALLS
