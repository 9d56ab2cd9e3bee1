"""What the worker's process gives up before it runs a student's code.

Runs inside the worker. Hides rlimits, the network namespace and Landlock (`calls.py` has seccomp);
says which of them took hold, so that the judge can call a partial sandbox partial. None of it needs
root.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from judge.calls import NO_NEW_PRIVS, filter_calls

CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS = 0x10000000, 0x40000000, 0x00020000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 2, 4, 1 << 14, 1 << 18
TEMPORARY_BYTES = 16 << 20


@dataclass(frozen=True)
class Limits:
    """Seconds of CPU, bytes of memory, bytes of one file, open files.

    The memory is what a process may write to; its addresses may be as many more as libraries take
    that it may yet load."""

    cpu_seconds: int = 30
    memory_bytes: int = 1 << 30
    file_bytes: int = 1 << 20
    open_files: int = 64


def lock_down(
    limits: Limits, readable: Sequence[str] = (), temporary: str = "", outer: str = ""
) -> dict[str, str]:
    """Give up everything that a pure function does not need; {part: how}, "" where it failed.

    The Python installation and `readable` can be read. The folder `temporary` becomes a small
    file system in memory and can be written, nothing else can; where that cannot be had, nothing
    at all. `outer` names a sandbox that this process runs in already, which has made such a
    folder. The order matters: namespaces need rights that the later steps take away.
    """
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    network = _leave_network(libc)
    state = {"limits": _set_limits(limits), "network": outer or network}
    writable = bool(temporary) and (bool(outer) or _mount_temporary(libc, temporary))
    folders = [*python_folders(), *readable]
    state["files"] = _restrict_files(libc, folders, temporary if writable else "")
    state["calls"] = filter_calls(libc)
    return state


def bubblewrap(temporary: str) -> list[str]:
    """The command that runs what follows it inside bubblewrap, with `temporary` as a small file
    system in memory; empty where bubblewrap is not installed or not allowed."""
    binary = _working_bubblewrap()
    if not binary:
        return []
    return [
        binary, "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
        "--size", str(TEMPORARY_BYTES), "--tmpfs", temporary, "--clearenv", "--",
    ]  # fmt: skip


@cache
def _working_bubblewrap() -> str:
    binary = shutil.which("bwrap") or ""
    trial = [
        binary, "--unshare-net", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc",
        "--size", "4096", "--tmpfs", tempfile.gettempdir(), "--", sys.executable, "-V",
    ]  # fmt: skip
    if not binary:
        return ""
    done = subprocess.run(trial, capture_output=True, check=False, timeout=20)
    return binary if done.returncode == 0 else ""


def missing(state: dict[str, str]) -> list[str]:
    """The parts of the sandbox that are not in force; seccomp also keeps the network out."""
    parts = [part for part in ("limits", "files", "calls") if not state.get(part)]
    if not state.get("network") and not state.get("calls"):
        parts.append("network")
    return parts


def _set_limits(limits: Limits) -> str:
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_AS: limits.memory_bytes + mapped_bytes() + library_bytes(),
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
    }
    try:
        for kind, value in wanted.items():
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):
        return ""
    return "rlimits"


def mapped_bytes() -> int:
    """Addresses that this process has mapped; 0 where the system does not tell."""
    return _memory("self", 0)


def resident_bytes(pid: int) -> int:
    """Memory that a process holds; 0 where the system does not tell."""
    return _memory(pid, 1)


def _memory(process: int | str, column: int) -> int:
    """Bytes by a column of /proc/PID/statm: 0 is what is mapped, 1 what is resident."""
    try:
        pages = Path(f"/proc/{process}/statm").read_text("ascii").split()[column]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


def library_bytes() -> int:
    """Sizes of the shared libraries that `import torch` maps: hundreds of megabytes, or many
    gigabytes where they are CUDA's."""
    places = ("torch/lib/*.so*", "nvidia/*/lib/*.so*")
    found = {lib for path in sys.path if path for place in places for lib in Path(path).glob(place)}
    return sum(lib.stat().st_size for lib in found if lib.is_file())


def _leave_network(libc: ctypes.CDLL | None) -> str:
    """An empty network namespace (and mounts of its own), as root or in a user namespace."""
    if libc is None:
        return ""
    own = CLONE_NEWNET | CLONE_NEWNS
    for flags in (own, own | CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNET | CLONE_NEWUSER):
        if libc.unshare(flags) == 0:
            return "namespace"
    return ""


def _mount_temporary(libc: ctypes.CDLL | None, folder: str) -> bool:
    """A bounded file system in memory that only this process sees."""
    if libc is None or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return False
    options = f"size={TEMPORARY_BYTES},nr_inodes=1024,mode=0700".encode()
    flags = MS_NOSUID | MS_NODEV
    return libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options) == 0


# -- files: Landlock (Documentation/userspace-api/landlock.rst; one number on every machine) ------

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
READ_FILE, READ_DIR = 1 << 2, 1 << 3
# Write, remove folders and files, make folders and files: no links, devices or sockets.
WRITE_PLAIN = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8
# How many file rights each version of the interface knows, so that all of them are denied.
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
LATEST_FILE_RIGHTS = 16


def python_folders() -> list[str]:
    """Folders that Python itself reads from: libraries of the environment and of its base."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    folders = {os.path.join(prefix, lib) for prefix in prefixes for lib in ("lib", "lib64")}
    folders |= {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"}
    folders |= {"/dev/null", "/dev/urandom", "/usr/share/zoneinfo", "/proc/cpuinfo"}
    folders |= {path for path in sys.path if path and ("site-packages" in path or "lib" in path)}
    return sorted(folders)


def _restrict_files(libc: ctypes.CDLL | None, readable: Iterable[str], writable: str) -> str:
    """Deny all files except reading what is listed, and files of the folder `writable`; also TCP
    and signals where known."""
    if libc is None:
        return ""
    version = libc.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1 or libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return ""
    rights = (1 << FILE_RIGHTS.get(version, LATEST_FILE_RIGHTS)) - 1
    network = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    attributes = struct.pack("QQQ", rights, network, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    if rules < 0:
        return ""
    try:
        for path in readable:
            _allow(libc, rules, path, READ_FILE | READ_DIR)
        if writable:
            _allow(libc, rules, writable, READ_FILE | READ_DIR | WRITE_PLAIN)
        done = libc.syscall(RESTRICT_SELF, rules, 0) == 0
    finally:
        os.close(rules)
    return f"landlock {version}" if done else ""


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a folder that this system does not have
    try:
        rights = rights if Path(path).is_dir() else READ_FILE
        libc.syscall(ADD_RULE, rules, 1, struct.pack("=Qi", rights, handle), 0)
    finally:
        os.close(handle)
