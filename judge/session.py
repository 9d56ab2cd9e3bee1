"""The judge's side of a worker: starts it, asks it with a deadline, and ends it for certain.

Everything that comes back is untrusted text. Hides the pipes, the nonces that tell an answer from
something written ahead of its question, and the restart after a hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from judge.failure import JudgeFailed
from judge.sandbox import Limits, bubblewrap
from judge.watch import FLAGS

WORKER = Path(__file__).resolve().parent / "worker.py"
MAX_LINE, MAX_ARTIFACT = 64 << 10, 8 << 20
MAX_RESTARTS = 3

Kind = Literal["value", "raised", "timeout", "died", "malformed", "no entry", "not run"]


@dataclass(frozen=True)
class Answer:
    """What became of one question. `error` describes an exception: type, text, line."""

    kind: Kind
    value: Any = None
    error: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Budget:
    """Wall seconds: starting up, loading the student's file, one question, compiling one kernel,
    one case on the simulator or GPU (where steps end a hang earlier), the benchmark. `processor`:
    processor seconds for compiling one kernel, which end a loop earlier, the same under any load
    (right kernels take 0.03 to 0.5)."""

    start: float = 30.0
    load: float = 10.0
    call: float = 2.0
    compile: float = 20.0
    processor: float = 5.0
    case: float = 60.0
    bench: float = 60.0
    limits: Limits = field(default_factory=Limits)


class _Lost(Exception):
    """The worker gave no usable answer; `kind` says why, `line` where it hung, if it said so."""

    def __init__(self, kind: Kind, line: int | None = None) -> None:
        super().__init__(kind)
        self.kind: Kind = kind
        self.line = line


class Session:
    """A student's program, asked one question after another.

    A hang or a crash loses its own question; the worker is started anew for the next, at most
    MAX_RESTARTS times. `flags` names what an honest program never does.
    """

    def __init__(
        self, source: str, entry: str, budget: Budget | None = None, *, kernels: bool = False
    ) -> None:
        self.budget = budget or Budget()
        self._kernels = kernels
        self._max_line = MAX_ARTIFACT if kernels else MAX_LINE
        self.flags: list[str] = []
        self.sandbox: dict[str, str] = {}
        self.source, self._entry = source, entry
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._restarts = 0
        self._folder = tempfile.mkdtemp(prefix="judge-")
        self._output = os.path.join(self._folder, "output")
        self._temporary = os.path.join(self._folder, "tmp")
        os.mkdir(self._temporary)
        self._visible = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def load(self) -> Answer:
        """Start a worker and run the student's file in it; kind "value" when that went well."""
        try:
            self._start()
            answer = self._ask({"op": "load", "source": self.source, "entry": self._entry},
                               self.budget.load)  # fmt: skip
        except _Lost as lost:
            return self._lose(lost)
        if answer.kind == "value" and not answer.value["callable"]:
            return Answer("no entry", _absent(self._entry, answer.value))
        return answer

    def call(self, args: dict[str, Any]) -> Answer:
        """One question. Loads the file again when the last question cost the worker its life."""
        return self._request({"op": "call", "args": args}, self.budget.call)

    def compile(self, sizes: dict[str, int], target: str) -> Answer:
        """The artefact of the kernel for these sizes, unchecked: untrusted data."""
        request = {
            "op": "compile", "args": sizes, "target": target, "processor": self.budget.processor,
        }  # fmt: skip
        return self._request(request, self.budget.compile)

    def _request(self, request: dict[str, Any], seconds: float) -> Answer:
        if self.tampered:
            return Answer("not run")
        if self._process is None:
            if self._restarts >= MAX_RESTARTS:
                return Answer("not run")
            self._restarts += 1
            loaded = self.load()
            if loaded.kind != "value":
                return loaded
        try:
            return self._ask(request, seconds)
        except _Lost as lost:
            return self._lose(lost)

    @property
    def tampered(self) -> bool:
        """Whether something was written to the result channel that was not asked for."""
        return "channel_tampered" in self.flags

    def finish(self) -> None:
        """Close the pipe and look once more for what nobody asked for."""
        self._stop(read_rest=True)

    def show_output_until_now(self) -> None:
        """What was printed so far may be shown. Later prints could tell hidden questions."""
        self._visible = os.path.getsize(self._output) if os.path.exists(self._output) else 0

    def output(self) -> str:
        """The student's prints that may be shown, at most the last 2,000 characters."""
        if not self._visible:
            return ""
        with open(self._output, "rb") as stream:
            return stream.read(self._visible)[-2000:].decode("utf-8", "replace")

    # -- the process ------------------------------------------------------------------------------

    def _start(self) -> None:
        requests_in, requests_out = os.pipe()
        results_in, results_out = os.pipe()
        with open(self._output, "ab") as output:
            told = {"limits": asdict(self.budget.limits), "kernels": self._kernels}
            self._process = subprocess.Popen(
                _command(requests_in, results_out, told, self._temporary),
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={}, cwd="/",
                pass_fds=(requests_in, results_out), start_new_session=True,
            )  # fmt: skip
        os.close(requests_in)
        os.close(results_out)
        self._pipes = (requests_out, results_in)
        self._buffer = b""
        self._told = set[str]()
        try:  # nothing of the student's has run before this line
            ready = self._read(time.monotonic() + self.budget.start)
        except _Lost as lost:
            self._stop()
            raise JudgeFailed(
                f"the worker did not start ({lost.kind}){_last_words(self._output)}"
            ) from None
        self.sandbox = cast("dict[str, str]", ready.get("sandbox", {}))

    def _stop(self, *, read_rest: bool = False) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        os.close(self._pipes[0])
        try:
            if read_rest and not self.tampered and self._rest(time.monotonic() + 1.0):
                self._flag("channel_tampered")
        finally:
            os.close(self._pipes[1])
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _lose(self, lost: _Lost) -> Answer:
        flag = {"malformed": "channel_tampered", "died": "worker_exit"}.get(lost.kind)
        if flag:
            self._flag(flag)
        self._stop()
        return Answer(lost.kind, error={} if lost.line is None else {"line": lost.line})

    # -- the protocol: one line out, one line back ------------------------------------------------

    def _ask(self, request: dict[str, Any], seconds: float) -> Answer:
        if self._buffer or self._readable(0.0):
            # Written since the last answer, though nobody asked; or the end of the pipe.
            unasked = self._buffer or os.read(self._pipes[1], MAX_LINE)
            raise _Lost("malformed" if unasked else "died")
        nonce = secrets.token_hex(16)
        try:
            _send(self._pipes[0], {**request, "nonce": nonce, "seconds": seconds})
        except BrokenPipeError:
            raise _Lost("died") from None
        reply = self._read(time.monotonic() + seconds)
        if reply.get("nonce") != nonce:
            raise _Lost("malformed")
        return _answer(reply)

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._pipes[1]], [], [], max(seconds, 0.0))[0])

    def _read(self, deadline: float) -> dict[str, Any]:
        while True:
            message = _parse(self._line(deadline))
            if not self._noted(message):
                return message

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            if not self._readable(deadline - time.monotonic()):
                raise _Lost("timeout")
            data = os.read(self._pipes[1], MAX_LINE)
            if not data:
                raise _Lost("malformed" if self._buffer else "died")
            self._buffer += data
            if len(self._buffer) > self._max_line:
                raise _Lost("malformed")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _noted(self, message: dict[str, Any]) -> bool:
        """Whether a message names something that was tried; noted, up to once each."""
        flag = message.get("flag")
        if set(message) != {"flag"} or flag not in FLAGS:
            return False
        if flag in self._told:
            raise _Lost("malformed")  # the watch says each name once in a process
        self._told.add(flag)
        self._flag(flag)
        return True

    def _flag(self, flag: str) -> None:
        if flag not in self.flags:
            self.flags.append(flag)

    def _rest(self, deadline: float) -> bytes:
        """What is still in the pipe; waits for its end, at most until the deadline."""
        rest = self._buffer
        while not rest and self._readable(deadline - time.monotonic()):
            data = os.read(self._pipes[1], MAX_LINE)
            if not data:
                break
            rest += data
        return rest


def _command(requests: int, results: int, told: dict[str, Any], temporary: str) -> list[str]:
    """What starts a worker: inside bubblewrap where there is one."""
    outer = bubblewrap(temporary)
    told = {**told, "temporary": temporary, "outer": "bubblewrap" if outer else ""}
    worker = [sys.executable, "-I", "-B", str(WORKER), str(requests), str(results)]
    return [*outer, *worker, json.dumps(told)]


def _send(pipe: int, request: dict[str, Any]) -> None:
    data = (json.dumps(request) + "\n").encode()
    while data:
        data = data[os.write(pipe, data) :]


def _last_words(output: str) -> str:
    """The last line that a worker wrote."""
    with open(output, "rb") as stream:
        lines = stream.read()[-2000:].decode("utf-8", "replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f": {last}" if last else ""


def _parse(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise _Lost("malformed") from None
    if not isinstance(message, dict):
        raise _Lost("malformed")
    return cast("dict[str, Any]", message)


def _absent(entry: str, loaded: dict[str, Any]) -> str:
    """What the file holds in place of the function that is asked for; cleaned."""
    kind, found = loaded["kind"], loaded["found"]
    if isinstance(kind, str) and kind.isidentifier():
        return f"{entry} is a {kind[:40]} and no function"
    names = cast("list[Any]", found) if isinstance(found, list) else []
    known = [n for n in names if isinstance(n, str) and n.isidentifier() and len(n) <= 40][:6]
    here = f"it defines {', '.join(known)}" if known else "it defines no function at all"
    return f"the file defines no function {entry}; {here}"


def _answer(reply: dict[str, Any]) -> Answer:
    if reply.get("op") == "loaded":
        return Answer("value", {key: reply.get(key) for key in ("callable", "found", "kind")})
    if reply.get("op") == "value" and "value" in reply:
        return Answer("value", reply["value"])
    if reply.get("op") == "hangs":
        line = reply.get("line")
        raise _Lost("timeout", line if type(line) is int else None)
    error = reply.get("error")
    if reply.get("op") == "raised" and isinstance(error, dict):
        return Answer("raised", error=cast("dict[str, Any]", error))
    raise _Lost("malformed")
