"""A reader of the output that leaves early, as in `tilelab show k.py | head`.

Hides what Python does at the end of a process whose output nobody reads any more.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Generator
from contextlib import contextmanager

CLOSED = 141
"""The exit code of a command whose reader left: what a shell gives for SIGPIPE, 128 + 13."""


class ReaderLeft(Exception):
    """Nobody reads the output any more."""


@contextmanager
def reader_may_leave() -> Generator[None]:
    """Turn writing to a closed standard output into ReaderLeft, and keep Python quiet about what
    is left to write. A BrokenPipeError of another pipe goes on."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _is_closed():
            raise
        raise ReaderLeft from None


def _is_closed() -> bool:
    """Whether standard output is a pipe without a reader; then it goes nowhere from now on."""
    out = sys.stdout.fileno()
    poll = select.poll()
    poll.register(out, select.POLLOUT)
    if not any(events & select.POLLERR for _, events in poll.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, out)
    os.close(nowhere)
    return True
