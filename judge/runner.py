"""The judge's other process: takes artefacts, makes inputs, runs, checks, times.

It never sees a line of the student's Python. Hides how it is started, the deadline of each
question, and that a hang or a crash (a kernel can bring down its process) loses its own case only.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import multiprocessing
import os
import resource
import sys
import traceback
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from judge.bench import measure
from judge.exercise import load_exercise
from judge.kernels import KernelCase, KernelTask
from judge.running import FILE, Refused, evidence, failed, load, run_case

MEMORY_BYTES = 12 << 30
# Forked where that is safe: torch and the exercise are loaded then, and no driver is open yet.
_CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


class Runner:
    """The judge's side: one question at a time, each with a deadline."""

    def __init__(self, exercise: str, source: str, gpu: bool) -> None:
        self._exercise, self._source, self._gpu = exercise, source, gpu
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def hello(self, seconds: float) -> dict[str, Any]:
        """Name and compute capability of the GPU that is used; an empty name: the simulator."""
        return self.ask({"op": "hello"}, seconds)

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The runner's answer; a failed case when it hangs or dies."""
        if self._process is None:
            self._start()
        try:
            self._pipe.send_bytes(json.dumps(request).encode())
            if self._pipe.poll(seconds):
                return json.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self.stop()
            return failed("RUNNER_EXIT", "the kernel brought its process down")
        self.stop()
        return failed("TIMEOUT", f"no result in {seconds:.0f} s; the process was ended")

    def stop(self) -> None:
        """End the process for certain."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
            self._pipe.close()

    def _start(self) -> None:
        self._pipe, far = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(far, self._exercise, self._source, self._gpu), daemon=True
        )
        self._process.start()
        far.close()


def _serve(pipe: Connection, exercise: str, source: str, gpu: bool) -> None:
    """Answer until the judge hangs up. What kernels print goes nowhere."""
    gpu = gpu and _gpu_name() != ""
    with contextlib.suppress(ValueError, OSError):
        if not gpu:  # a driver maps far more than it uses
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout = io.StringIO()
    # Quoted beside findings, never run.
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    task = load_exercise(exercise).kernel_task
    while True:
        try:
            request = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        pipe.send_bytes(json.dumps(_answer(task, request, gpu)).encode())


def _answer(task: KernelTask, request: dict[str, Any], gpu: bool) -> dict[str, Any]:
    try:
        return _ACTIONS[request["op"]](task, request, gpu)
    except Refused as refused:
        return failed(refused.code, refused.text)
    except MemoryError:
        return failed("MEMORY", "the call takes more memory than there is")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
        return failed("RUN_FAILED", text, cause=f"raised in {os.path.basename(last.filename)}")


def _case(task: KernelTask, request: dict[str, Any], gpu: bool) -> dict[str, Any]:
    case = KernelCase(**request["case"])
    kernel = load(task, request["artifact"], case.sizes)
    return run_case(task, kernel, case, request["seed"], gpu)


def _structure(task: KernelTask, request: dict[str, Any], gpu: bool) -> dict[str, Any]:
    kernel = load(task, request["artifact"], task.structure_sizes)
    seen = evidence(task, kernel, request["seed"])
    return {
        "rules": {rule.id: rule.problem(seen) for rule in task.structure},
        "evidence": {k: v for k, v in asdict(seen).items() if k not in ("costs", "counters")},
    }


def _bench(task: KernelTask, request: dict[str, Any], gpu: bool) -> dict[str, Any]:
    kernel = load(task, request["artifact"], task.performance.sizes)
    return measure(task, kernel, request["seed"])


def _gpu_name() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def _hello(task: KernelTask, request: dict[str, Any], gpu: bool) -> dict[str, Any]:
    import torch

    capability = list(torch.cuda.get_device_capability()) if gpu else [0, 0]
    return {"gpu": _gpu_name() if gpu else "", "capability": capability}


_ACTIONS: dict[str, Any] = {
    "case": _case, "structure": _structure, "bench": _bench, "hello": _hello,
}  # fmt: skip


def request_for(case: KernelCase, artifact: Any, seed: int) -> dict[str, Any]:
    """The question for one case."""
    return {"op": "case", "case": asdict(case), "artifact": artifact, "seed": seed}
