"""Conditions that a kernel checks while it runs."""

from __future__ import annotations

import os
from typing import Any

from tilelab.frontend.session import Session
from tilelab.ir import Stmt, as_bool
from tilelab.thread.intrinsics.debug import device_assert
from tilelab.thread.nodes import Invoke


def check_in_kernel(session: Session, cond: Any, message: str, *, with_line: bool = True) -> Stmt:
    """Emit the check of a run-time condition: where it fails, the kernel ends with `message`.
    Outside of kernels it waits for the next one."""
    loc = session.loc()
    text = "assertion failed" + (f": {message}" if message else "")
    if loc is not None and with_line:
        text += f" ({os.path.basename(loc.file)}, line {loc.line})"
    check = Invoke(device_assert(text), (as_bool(cond),), loc=loc)
    if session.kernel is not None:
        return session.emit(check)
    session.checks.append(check)
    return check
