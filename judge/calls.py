"""The system calls that a student's process keeps: a seccomp filter, as bytes.

Runs inside the worker. Hides the numbers of calls on each machine and the filter's little language.
Landlock governs opening, making and removing files; what it does not know (modes, owners and times
of files, other processes, clocks, mounts by the newer calls) is denied here.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable, Mapping, Sequence

NO_NEW_PRIVS, SET_SECCOMP, SECCOMP_FILTER = 38, 22, 2
EPERM, ENOSYS = 1, 38

# What a pure function has no use for.
# fmt: off
EVERYWHERE = {  # calls newer than the machines' common numbering
    "pidfd_send_signal": 424, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434,
    "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "process_mrelease": 448,
    "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "open_tree_attr": 467,
    "file_setattr": 469,
}
X86_64 = EVERYWHERE | {
    # other processes and programs
    "fork": 57, "vfork": 58, "execve": 59, "kill": 62, "ptrace": 101, "rt_sigqueueinfo": 129,
    "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "setrlimit": 160,
    "tkill": 200, "ioprio_set": 251, "migrate_pages": 256, "move_pages": 279,
    "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "setns": 308, "unshare": 272,
    "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "sched_setattr": 314,
    "execveat": 322,
    # modes, owners, times and attributes of files
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "utimes": 235, "fchownat": 260, "futimesat": 261,
    "fchmodat": 268, "utimensat": 280, "open_by_handle_at": 304,
    # what other processes see, and what outlives this one
    "socket": 41, "socketpair": 53, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    "add_key": 248, "request_key": 249, "keyctl": 250,
    # the machine
    "syslog": 103, "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163,
    "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
    "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "clock_settime": 227,
    "kexec_load": 246, "fanotify_init": 300, "clock_adjtime": 305, "finit_module": 313,
    "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
}
AARCH64 = EVERYWHERE | {
    "setpriority": 140, "ioprio_set": 30, "unshare": 97, "ptrace": 117, "sched_setparam": 118,
    "sched_setscheduler": 119, "kill": 129, "tkill": 130, "rt_sigqueueinfo": 138,
    "setrlimit": 164, "execve": 221, "migrate_pages": 238, "move_pages": 239,
    "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "setns": 268, "process_vm_readv": 270,
    "process_vm_writev": 271, "kcmp": 272, "sched_setattr": 274, "execveat": 281,
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
    "fremovexattr": 16, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55,
    "utimensat": 88, "open_by_handle_at": 265,
    "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198,
    "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219,
    "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "acct": 89,
    "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
    "syslog": 116, "reboot": 142, "sethostname": 161, "setdomainname": 162,
    "settimeofday": 170, "adjtimex": 171, "swapon": 224, "swapoff": 225, "fanotify_init": 262,
    "clock_adjtime": 266, "finit_module": 273, "bpf": 280, "userfaultfd": 282,
    "kexec_file_load": 294,
}
# fmt: on
# machine: (audit architecture, number of clone, denied calls, {call with bound arguments: number})
MACHINES = {
    "x86_64": (
        0xC000003E,
        56,
        X86_64,
        {"tgkill": 234, "sched_setaffinity": 203, "prlimit64": 302, "fcntl": 72},
    ),
    "aarch64": (
        0xC00000B7,
        220,
        AARCH64,
        {"tgkill": 131, "sched_setaffinity": 122, "prlimit64": 261, "fcntl": 25},
    ),
}  # fmt: skip
CLONE3, CLONE_THREAD, X32_BIT = 435, 0x00010000, 0x40000000
FILE_CONTROLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032, 1033, 1034)
"""Of fcntl: duplicates, flags, locks, seals, the size of a pipe. Not: whom a file sends signals
(F_SETOWN, F_SETSIG: a `kill` by another name), leases, notices, a pipe of another size."""
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, FAIL, KILL = 0x7FFF0000, 0x00050000, 0x80000000
ARGUMENTS = 16  # where a call's arguments begin: 8 bytes each, the low word first
Op = tuple[int, int, int, int]
Words = Sequence[tuple[int, Sequence[int]]]
"""(word of the arguments, values that it may have)."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def filter_program(
    audit: int, clone: int, denied: Iterable[int], bound: Mapping[int, Words] | None = None
) -> bytes:
    """The filter: threads may start, processes may not; denied calls fail with EPERM, and so do
    those of `bound` whose arguments have other values than are listed.

    clone3 hides its flags behind a pointer, so it "does not exist" and libc falls back to clone.
    """
    ops: list[Op] = [
        (LOAD, 0, 0, 4),  # architecture
        (EQUAL, 1, 0, audit),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, 0),  # number of the call
        (AT_LEAST, 0, 1, X32_BIT),
        (RETURN, 0, 0, FAIL | ENOSYS),
        (EQUAL, 0, 1, CLONE3),
        (RETURN, 0, 0, FAIL | ENOSYS),
        (EQUAL, 0, 4, clone),
        (LOAD, 0, 0, ARGUMENTS),  # low word of the first argument: the flags
        (ANY_BIT, 0, 1, CLONE_THREAD),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, FAIL | EPERM),
    ]
    for number in denied:
        ops += [(EQUAL, 0, 1, number), (RETURN, 0, 0, FAIL | EPERM)]
    for number, words in (bound or {}).items():
        checks = [op for word, values in words for op in _one_of(word, values)]
        ops += [(EQUAL, 0, len(checks) + 1, number), *checks, (RETURN, 0, 0, ALLOW)]
    ops.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *op) for op in ops)


def _one_of(word: int, values: Sequence[int]) -> list[Op]:
    """Fail unless a word of the arguments has one of some values."""
    count = len(values)
    tests: list[Op] = [(EQUAL, count - k, 0, value) for k, value in enumerate(values)]
    return [(LOAD, 0, 0, ARGUMENTS + 4 * word), *tests, (RETURN, 0, 0, FAIL | EPERM)]


def filter_calls(libc: ctypes.CDLL | None) -> str:
    """Put the filter into force for this process and its threads; "" where that fails."""
    machine = MACHINES.get(platform.machine())
    if libc is None or machine is None or libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return ""
    audit, clone, denied, about = machine
    own = (0, [0, os.getpid()])
    bound: dict[int, Words] = {
        about["tgkill"]: [own],
        about["sched_setaffinity"]: [own],
        about["fcntl"]: [(2, FILE_CONTROLS)],
        about["prlimit64"]: [own, (4, [0]), (5, [0])],  # no new limit: asking is all
    }
    code = filter_program(audit, clone, denied.values(), bound)
    program = _Program(len(code) // 8, code)
    done = libc.prctl(SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(program), 0, 0) == 0
    return "seccomp" if done else ""
