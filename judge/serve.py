"""The runner's process: answers the judge's questions about artefacts, as plain data.

It never sees a line of the student's Python run. Hides its own limits, and which of its failures
are a kernel's and which are the judge's.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import linecache
import os
import resource
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from judge.bench import measure
from judge.control import check_runner
from judge.device import Gpu, find_gpu
from judge.exercise import load_exercise
from judge.failure import JudgeFailed, describe, own
from judge.kernels import KernelCase, KernelTask
from judge.running import FILE, Refused, evidence, failed, load, run_case
from judge.sandbox import mapped_bytes

MEMORY_BYTES = 12 << 30
PARENT_DEATH = 1  # prctl


def serve(pipe: Connection, exercise: str, source: str, gpu: bool) -> None:
    """Answer until the judge hangs up. What kernels print goes nowhere."""
    _end_with_the_server()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = io.StringIO()
    # Quoted beside findings, never run.
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    asked = _Asked(exercise, gpu)
    while True:
        try:
            request = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        pipe.send_bytes(json.dumps(asked.answer(request)).encode())


def _end_with_the_server() -> None:
    """A judge that is killed leaves no kernel running behind it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL, 0, 0, 0)


def limit_addresses(spare: int) -> None:
    """Let the process map `spare` bytes more than it has mapped now, where that can be known.

    An allocation that is too large then raises MemoryError in its own place."""
    mapped, hard = mapped_bytes(), resource.getrlimit(resource.RLIMIT_AS)[1]
    if mapped and (hard == resource.RLIM_INFINITY or mapped + spare < hard):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (mapped + spare, hard))


class _Asked:
    """The exercise, and the GPU once the judge has said hello."""

    def __init__(self, exercise: str, gpu: bool) -> None:
        self._exercise, self._wanted = exercise, gpu
        self._task: KernelTask | None = None
        self._gpu = Gpu()

    @property
    def task(self) -> KernelTask:
        if self._task is None:
            with own("loading the exercise"):
                self._task = load_exercise(self._exercise).kernel_task
        return self._task

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """What became of one question; {"broken": why} where the judge is at fault."""
        try:
            return _ACTIONS[request["op"]](self, request)
        except JudgeFailed as error:
            return {"broken": str(error)}
        except Refused as refused:
            return failed(refused.code, refused.text, **refused.detail)
        except MemoryError:
            return failed("MEMORY", "the call takes more memory than there is")
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            cause = f"raised in {os.path.basename(last.filename)}"
            return failed("RUN_FAILED", describe(error), cause=cause)

    def hello(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._wanted:
            with own("looking for a GPU"):
                self._gpu = find_gpu()
        on_gpu = bool(self._gpu.name)
        if not on_gpu:  # a driver reserves far more addresses than it uses memory
            limit_addresses(MEMORY_BYTES)
        check_runner(target_for(self._gpu), on_gpu)
        return {
            "gpu": self._gpu.name, "trouble": self._gpu.trouble, "target": target_for(self._gpu),
        }  # fmt: skip

    def case(self, request: dict[str, Any]) -> dict[str, Any]:
        case = KernelCase(**request["case"])
        kernel = load(self.task, request["artifact"], case.sizes)
        return run_case(self.task, kernel, case, request["seed"], bool(self._gpu.name))

    def structure(self, request: dict[str, Any]) -> dict[str, Any]:
        task = self.task
        kernel = load(task, request["artifact"], task.structure_sizes)
        seen = evidence(task, kernel, request["seed"])
        return {
            "rules": {rule.id: rule.problem(seen) for rule in task.structure},
            "places": {rule.id: dict(seen.places.get(rule.place, {})) for rule in task.structure},
        }

    def bench(self, request: dict[str, Any]) -> dict[str, Any]:
        kernel = load(self.task, request["artifact"], self.task.performance.sizes)
        return measure(self.task, kernel, request["seed"])


_ACTIONS: dict[str, Any] = {
    "hello": _Asked.hello, "case": _Asked.case, "structure": _Asked.structure,
    "bench": _Asked.bench,
}  # fmt: skip


def target_for(gpu: Gpu) -> str:
    """The compiler's target: the GPU's, or Hopper's for the simulator."""
    return "ampere" if gpu.name and gpu.capability != (9, 0) else "hopper"
