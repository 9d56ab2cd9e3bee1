"""What a student's code tries beside its task, by name: a watch inside the worker.

Runs inside the worker. Hides Python's audit events and how patched modules are noticed. It stops
nothing (the sandbox does): it names what was tried, and a name can only cost the student.
"""

from __future__ import annotations

import builtins
import os
import signal
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

FLAGS = frozenset({
    "network", "process", "signal", "writes_file", "reads_judge", "native_code", "patched",
    "channel_tampered", "worker_exit", "introspection", "artifact_invalid",
    "environment", "limits", "denied",
})  # fmt: skip
"""Every flag that a verdict may carry."""

_EVENTS = {
    "socket.": "network", "subprocess.": "process", "os.fork": "process", "os.exec": "process",
    "os.posix_spawn": "process", "os.spawn": "process", "os.system": "process",
    "pty.spawn": "process", "os.kill": "signal", "ctypes.": "native_code",
    "os.mkdir": "writes_file", "os.symlink": "writes_file", "os.link": "writes_file",
    "os.rename": "writes_file", "os.remove": "writes_file", "os.rmdir": "writes_file",
    "os.truncate": "writes_file", "os.chmod": "writes_file", "os.chown": "writes_file",
    "shutil.": "writes_file", "gc.get_objects": "introspection",
    "gc.get_referrers": "introspection", "sys.setprofile": "introspection",
    "sys.settrace": "introspection", "os.putenv": "environment", "os.unsetenv": "environment",
    "resource.setrlimit": "limits", "resource.prlimit": "limits", "os.utime": "writes_file",
    "os.setxattr": "writes_file", "os.removexattr": "writes_file", "signal.pthread_kill": "signal",
}  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TRACED = ("/judge/worker.py", "/judge/compiling.py")  # a traceback quotes these
_WATCHED = (
    "__main__",
    "time",
    "json",
    "os",
    "random",
    "builtins",
    "torch",
    "numpy",
    "judge",
    "tilelab",
)


class Watch:
    """Names of what was tried; `tell` is called once for each, at the moment of the attempt.

    `file` is the student's, `own` the folder that may be written, `private` those that may not
    be read."""

    def __init__(
        self, tell: Callable[[str], None], file: str, own: str, private: Iterable[str]
    ) -> None:
        self._tell, self._file = tell, file
        self._own = own
        self._private = tuple(private)
        self._told: set[str] = set()
        self.on = False
        self._known: dict[str, dict[str, Any]] = {}
        self._handlers: dict[int, Any] = {}

    def begin(self) -> None:
        """Watch from now on; cannot be undone in this process."""
        self._known = {name: _callables(vars(m)) for name, m in _modules()}
        self._handlers = _signal_handlers()
        self.on = True
        sys.addaudithook(self._hook)

    def look_for_patches(self) -> None:
        """Compare the functions of known modules with what they were."""
        for name, module in _modules():
            before, now = self._known.get(name, {}), dict(vars(module))
            replaced = any(now.get(key) is not value for key, value in before.items())
            if replaced or any(_is_students(value, self._file) for value in now.values()):
                self.name("patched")
        if any(_is_students(getattr(f, "find_spec", f), self._file) for f in _finders()):
            self.name("patched")
        if _signal_handlers() != self._handlers:
            self.name("signal")

    def name(self, flag: str) -> None:
        """Say a flag, once."""
        if flag not in self._told:
            self._told.add(flag)
            self._tell(flag)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            self._opened(*args[:3])
            return
        if event == "import":
            if str(args[0]).partition(".")[0] in ("judge", "exercises"):
                self.name("reads_judge")
            return
        if event in ("os.listdir", "os.scandir"):
            self._listed(args[0])
            return
        for start, flag in _EVENTS.items():
            if event.startswith(start) and not self._is_own(args):
                self.name(flag)

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if not isinstance(path, str | bytes):
            return
        text = os.path.abspath(os.fsdecode(path))
        writes = isinstance(flags, int) and flags & _WRITES
        if writes and text != os.devnull and not text.startswith(self._own):
            self.name("writes_file")
        elif _is_introspection(text):
            self.name("introspection")
        elif text.startswith(self._private) and not text.endswith(_TRACED):
            self.name("reads_judge")

    def _listed(self, path: Any) -> None:
        """Looking for the answers' file counts as reading it: the sandbox hides the folder."""
        if isinstance(path, str | bytes):
            text = os.path.abspath(os.fsdecode(path))
            if text.startswith(self._private):
                self.name("reads_judge")

    def _is_own(self, args: tuple[Any, ...]) -> bool:
        """Whether a call about files is about the temporary folder."""
        paths = [os.fsdecode(a) for a in args if isinstance(a, str | bytes)]
        return bool(self._own and paths) and all(
            os.path.abspath(p).startswith(self._own) for p in paths
        )


def _modules() -> list[tuple[str, types.ModuleType]]:
    """Loaded modules that a cheat may patch, and classes of ours as if they were modules."""
    found: list[tuple[str, Any]] = [("builtins", builtins)]
    for name, module in list(sys.modules.items()):
        given: Any = module  # a program may have put anything there
        if name.partition(".")[0] in _WATCHED and isinstance(given, types.ModuleType):
            found.append((name, module))
            ours = name.startswith(("tilelab", "judge"))
            found += [
                (f"{name}:{key}", value)
                for key, value in list(vars(module).items())
                if ours and isinstance(value, type) and value.__module__ == name
            ]
    return found


def _finders() -> list[Any]:
    """What stands between an import statement and a module."""
    return [*sys.meta_path, *sys.path_hooks]


def _signal_handlers() -> dict[int, Any]:
    return {int(number): signal.getsignal(number) for number in signal.valid_signals()}


def _is_introspection(path: str) -> bool:
    """Whether a file tells of other processes, or is the memory of this one."""
    own = path.startswith("/proc/self/") and not path.endswith("/mem")
    return path.startswith("/proc/") and not own


def _is_students(given: Any, file: str) -> bool:
    """Whether a function found in somebody else's module was defined in the student's file."""
    bound = _is(given, (types.MethodType, classmethod, staticmethod))
    value = given.__func__ if bound else given
    return _is(value, (types.FunctionType,)) and value.__code__.co_filename == file


def _callables(values: Mapping[str, Any]) -> dict[str, Any]:
    kinds = (types.FunctionType, types.BuiltinFunctionType, type, property, classmethod)
    return {key: value for key, value in values.items() if _is(value, kinds)}


def _is(value: Any, kinds: tuple[type, ...]) -> bool:
    """isinstance by the value's own type: a library's lazy attribute answers a question for its
    class by running code."""
    return issubclass(type(value), kinds)
