"""The judge's side of its other process, which takes artefacts, runs, checks and times.

Hides how that process is started (from a server that has touched neither a GPU nor a student's
file), the deadline and the memory of each question, and that a hang or a crash (a kernel can bring
down its process) loses its own case only. After a question that ended badly a kernel of the judge's
own is run: where that fails too the fault is the judge's.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from dataclasses import asdict
from multiprocessing import forkserver
from typing import Any

from judge.exercise import ROOT
from judge.failure import JudgeFailed
from judge.kernels import KernelCase
from judge.running import failed
from judge.sandbox import resident_bytes
from judge.serve import MEMORY_BYTES, serve

START_SECONDS = 120.0
"""Loading torch, opening the driver and running the control kernel, on a slow disk."""
_UNSURE = ("RUNNER_EXIT", "RUN_FAILED", "TIMEOUT", "MEMORY")
"""Ends that a broken machine can have too; nothing that they leave behind is used again."""
_PRELOAD = ["torch", "numpy.random", "judge.serve"]
_LOOK_SECONDS = 0.1


class Runner:
    """One question at a time, each with a deadline."""

    def __init__(self, exercise: str, source: str, gpu: bool) -> None:
        self._exercise, self._source, self._gpu = exercise, source, gpu
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def hello(self) -> dict[str, Any]:
        """`gpu` (empty: the simulator), its `capability`, and `trouble`: why a GPU that is here
        cannot be used. JudgeFailed where the control kernel does not run."""
        answer = self._answer({"op": "hello"}, START_SECONDS)
        if "gpu" not in answer:
            raise JudgeFailed(answer.get("broken") or f"the runner does not work: {answer}")
        return answer

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The runner's answer; a failed case when it hangs or dies. JudgeFailed where the fault is
        not the kernel's."""
        if self._process is None:
            self.hello()
        answer = self._answer(request, seconds)
        if "broken" in answer:
            raise JudgeFailed(answer["broken"])
        if answer.get("code") in _UNSURE:
            self.stop()
            self.hello()
        return answer

    def _answer(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        if self._process is None:
            self._start()
        try:
            self._pipe.send_bytes(json.dumps(request).encode())
            problem = self._wait(seconds)
            if problem is None:
                return json.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            problem = failed("RUNNER_EXIT", "the kernel brought its process down")
        self.stop()
        return problem

    def _wait(self, seconds: float) -> dict[str, Any] | None:
        """Until there is an answer: None; else what went wrong."""
        deadline = time.monotonic() + seconds
        while not self._pipe.poll(min(_LOOK_SECONDS, max(deadline - time.monotonic(), 0.0))):
            if resident_bytes(self._process.pid) > MEMORY_BYTES:
                return failed("MEMORY", "the call takes more memory than a case may")
            if time.monotonic() > deadline:
                return failed("TIMEOUT", f"no result in {seconds:.0f} s; the process was ended")
        return None

    def stop(self) -> None:
        """End the process for certain."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
            self._pipe.close()

    def _start(self) -> None:
        context = _context()
        self._pipe, far = context.Pipe()
        self._process = context.Process(
            target=serve, args=(far, self._exercise, self._source, self._gpu), daemon=True
        )
        self._process.start()
        far.close()


def _context() -> Any:
    """How the process is started: forked from a server with torch loaded, where there are such.

    Not from the judge itself: whoever forks after a driver was opened (a quiz that compiles opens
    it) has a child that can use no GPU and owns hundreds of gigabytes of addresses."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    kept = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *([kept] if kept else [])])
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if kept is not None:
            os.environ["PYTHONPATH"] = kept
    return context


def request_for(case: KernelCase, artifact: Any, seed: int) -> dict[str, Any]:
    """The question for one case."""
    return {"op": "case", "case": asdict(case), "artifact": artifact, "seed": seed}
