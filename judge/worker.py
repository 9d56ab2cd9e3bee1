"""The process in which a student's code runs: told one thing at a time, answers in plain data.

Started by `session.py` with two pipes. It locks itself down first. It knows no right answer and
no case before it is asked, so nothing that the code does to this process can earn a point. For a
kernel exercise it compiles, and hands over an artefact: thread IR as plain data.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import linecache
import operator
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, cast

REPOSITORY = str(Path(__file__).resolve().parent.parent)
sys.path.insert(0, REPOSITORY)
from judge.sandbox import Limits, lock_down  # noqa: E402
from judge.watch import Watch  # noqa: E402

FILE = "solution.py"
LIBRARIES = ("numpy", "torch")
"""What a file may well import, loaded before the watch begins."""
MAX_DEPTH, MAX_TEXT, MAX_BITS = 4, 300, 256
DENIED = (errno.EPERM, errno.EACCES, errno.EROFS)
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Where a function lies says nothing, and differs from case to case."""
LAST_TENTH = 0.9
"""When a question is nearly out of time, the worker says itself where it hangs, if it can."""
NO_ROOM = (errno.EFBIG, errno.ENOSPC, errno.EDQUOT, errno.EMFILE)


def plain(value: Any, depth: int = 0) -> Any:
    """`value` as JSON data; what is none becomes {"unsupported": type name}."""
    if value is None or type(value) in (bool, str, float):
        return value
    if depth < MAX_DEPTH and isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return {str(key): plain(item, depth + 1) for key, item in items.items()}
    if depth < MAX_DEPTH and isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in cast("list[Any]", value)]
    try:
        number = operator.index(value)  # Python's and numpy's integers alike
    except TypeError:
        return {"unsupported": type(value).__name__}
    return number if number.bit_length() <= MAX_BITS else {"unsupported": "huge int"}


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: type, text, and the last line of the student's file in its trace."""
    lines: list[Any] = [
        number
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == FILE
    ]
    if isinstance(error, SyntaxError) and error.filename == FILE:
        lines.append(error.lineno)
    place = getattr(error, "loc", None)  # a TileError names its line itself
    if getattr(place, "file", "") == FILE:
        lines.append(getattr(place, "line", None))
    kinds = [kind.__name__ for kind in type(error).__mro__]
    code = getattr(error, "code", "")
    return {
        "type": kinds[0],
        "not_implemented": "NotImplementedError" in kinds and "TileError" not in kinds,
        "no_room": getattr(error, "errno", None) in NO_ROOM,
        "no_memory": "MemoryError" in kinds
        or getattr(error, "errno", None) == errno.ENOMEM
        or str(error) == "can't start new thread",
        "text": ADDRESS.sub("", _text(error))[:MAX_TEXT],
        "hint": str(getattr(error, "hint", ""))[:MAX_TEXT],
        "code": code if isinstance(code, str) and "TileError" in kinds else "",
        "line": lines[-1] if lines else None,
    }


def _text(error: BaseException) -> str:
    """An exception's own words; a SyntaxError's without its file."""
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return str(error.msg)
    return str(getattr(error, "message", None) or error)


def line_of(frame: FrameType | None) -> int | None:
    """The innermost line of the student's file that a frame was called from."""
    while frame is not None and frame.f_code.co_filename != FILE:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


def _is_defined_here(value: Any) -> bool:
    """Whether a callable of the student's file is the file's own, and not imported."""
    return getattr(value, "__module__", "solution") == "solution"


class Worker:
    """Answers requests: `load` a source text, `call` its entry function with arguments, or
    `compile` what it gives."""

    def __init__(self, requests: int, results: int) -> None:
        self._requests = os.fdopen(requests, "r", encoding="utf-8")
        self._results = results
        self._entry: Callable[..., Any] | None = None
        self.save: Callable[..., dict[str, Any]] | None = None
        self.watch: Watch | None = None
        self._nonce: str = ""

    def hangs(self, number: int, frame: FrameType | None) -> None:
        """Called when a question is nearly out of time: say where, and end."""
        self.say({"op": "hangs", "line": line_of(frame), "nonce": self._nonce})
        os._exit(0)

    def say(self, message: dict[str, Any]) -> None:
        """Send one line."""
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(self._results, data) :]

    def tell(self, flag: str) -> None:
        """Send the name of something that was tried."""
        os.write(self._results, b'{"flag": "%s"}\n' % flag.encode())

    def serve(self) -> None:
        """Answer until the judge closes the pipe."""
        actions = {"load": self.load, "call": self.call, "compile": self.compile}
        while line := self._requests.readline():
            request = json.loads(line)
            watch = self.watch  # the student's code may put another in its place
            self._nonce = request["nonce"]
            signal.setitimer(signal.ITIMER_REAL, LAST_TENTH * request["seconds"])
            signal.setitimer(signal.ITIMER_PROF, request.get("processor", 0.0))
            try:
                answer = actions[request["op"]](request)
            except BaseException as error:  # SystemExit and KeyboardInterrupt are the student's
                answer = {"op": "raised", "error": self._describe(error)}
                if watch is not None:
                    self._name(watch, error)
            for timer in (signal.ITIMER_REAL, signal.ITIMER_PROF):
                signal.setitimer(timer, 0.0)
            with contextlib.suppress(Exception):  # a full or replaced stdout is the student's
                sys.stdout.flush()
            if watch is not None:
                if self.watch is not watch:
                    watch.name("patched")
                watch.look_for_patches()
            self.say({**answer, "nonce": request["nonce"]})

    def _name(self, watch: Watch, error: BaseException) -> None:
        """Say what an exception tells of what was tried."""
        if isinstance(error, SystemExit):
            watch.name("worker_exit")  # kept alive here; what was tried is the same
        if getattr(error, "errno", None) in DENIED:
            watch.name("denied")

    def _describe(self, error: BaseException) -> dict[str, Any]:
        """An exception as data; one from no line of the student's belongs to the entry function."""
        told = describe(error)
        code: Any = getattr(getattr(self._entry, "func", self._entry), "__code__", None)
        if told["line"] is None and getattr(code, "co_filename", "") == FILE:
            lines = linecache.getlines(FILE)[code.co_firstlineno - 1 :]
            decorators = next((n for n, s in enumerate(lines) if s.startswith("def ")), 0)
            told["line"] = code.co_firstlineno + decorators
        return told

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run the student's file as a module and find its entry function."""
        scope: dict[str, Any] = {"__name__": "solution", "__file__": FILE}
        source: str = request["source"]
        self._begin(source)
        # Tracing a kernel reads its source, and tracebacks quote it.
        linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
        exec(compile(source, FILE, "exec"), scope)
        self._entry = scope.get(request["entry"])
        found = [k for k, v in scope.items() if callable(v) and _is_defined_here(v)]
        kind = "" if self._entry is None else type(self._entry).__name__
        return {"op": "loaded", "callable": callable(self._entry), "found": found, "kind": kind}

    def _begin(self, source: str) -> None:
        """Watch, once the libraries are there that the file may import: what they do while they
        are imported (threads, native code) is none of the student's."""
        if self.watch is None or self.watch.on:
            return
        for name in LIBRARIES:
            if name in source:
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
        self.watch.begin()

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call the entry function."""
        if self._entry is None:
            raise RuntimeError("nothing is loaded")
        return {"op": "value", "value": plain(self._entry(**request["args"]))}

    def compile(self, request: dict[str, Any]) -> dict[str, Any]:
        """The kernel for these sizes, as an artefact."""
        if self._entry is None or self.save is None:
            raise RuntimeError("nothing is loaded")
        return {"op": "value", "value": self.save(self._entry, request["args"], request["target"])}


def _warning(message: Warning | str, category: type[Warning], *_: Any) -> str:
    """A warning as the student's report shows it: without the judge's own file."""
    return f"{category.__name__}: {message}\n"


def main() -> None:
    """Lock down, say so, serve."""
    requests, results, told = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    worker = Worker(requests, results)
    readable: list[str] = []
    if told["kernels"]:
        # Loaded before the doors close, and only where it is needed.
        worker.save = importlib.import_module("judge.compiling").artifact_of
        readable.append(str(Path(REPOSITORY) / "tilelab"))
    sys.path.remove(REPOSITORY)
    temporary = told["temporary"]
    os.environ["TMPDIR"] = temporary
    warnings.formatwarning = _warning
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, worker.hangs)
    private = [str(Path(REPOSITORY) / name) for name in ("judge", "exercises", "tests")]
    worker.watch = Watch(worker.tell, FILE, temporary, private)
    state = lock_down(Limits(**told["limits"]), readable, temporary, told["outer"])
    with contextlib.suppress(OSError):
        os.chdir(temporary)
    # Before any line of the student's has run, so this report can be trusted.
    worker.say({"op": "ready", "sandbox": state})
    worker.serve()
    os._exit(0)  # nothing of the student's runs after the last answer


if __name__ == "__main__":
    main()
