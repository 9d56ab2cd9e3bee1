"""CUDA text to machine code (cubin) through NVRTC, with what ptxas says about it.

Works on a machine without a GPU or a CUDA toolkit. Hides the C API and the format of its log.
"""

from __future__ import annotations

import ctypes
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilelab.codegen.imported import HOST_HEADERS
from tilelab.errors import Loc, TileError, TileRuntimeError, TileValueError
from tilelab.runtime import wheels

# C++17 for `if constexpr` in helpers. --minimal leaves out textures and the runtime API, which
# no kernel here uses, and saves about 10 ms of parsing for each compilation. --no-cache: where
# there is a driver NVRTC keeps results of its own, and answers a repeat with an empty log.
BASE_OPTIONS = ("--std=c++17", "--minimal", "--no-cache", "--ptxas-options=-v")

Locate = Callable[[int], "Loc | None"]


@dataclass(frozen=True)
class Resources:
    """What one kernel takes, as ptxas reports it (bytes; registers of each thread)."""

    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack_bytes: int = 0
    static_shared: int = 0

    @property
    def spills(self) -> bool:
        return self.spill_stores > 0 or self.spill_loads > 0


@dataclass(frozen=True)
class CompilerWarning:
    """A remark of ptxas that costs speed: `code` is "C7508", "C7510".. or "spill"."""

    code: str
    text: str
    kernel: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture, and the compiler's report on it."""

    image: bytes
    log: str
    arch: str
    resources: dict[str, Resources]
    warnings: tuple[CompilerWarning, ...]
    seconds: float


class _Api:
    """The loaded library with typed entry points; every call checks its result."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: Any) -> int:
        """The raw result of an entry point."""
        return int(getattr(self._library, name)(*arguments))

    def check(self, name: str, *arguments: Any) -> None:
        """Call an entry point; TileRuntimeError when it fails."""
        status = self.call(name, *arguments)
        if status:
            text = self._library.nvrtcGetErrorString(status).decode()
            raise TileRuntimeError(f"{name} failed: {text}", code="TL1602")

    def text(self, program: ctypes.c_void_p, what: str) -> bytes:
        """A buffer result: "ProgramLog" or "CUBIN"."""
        size = ctypes.c_size_t()
        self.check(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        self.check(f"nvrtcGet{what}", program, buffer)
        return buffer.raw[: size.value]


_LOADING = threading.Lock()


@lru_cache(maxsize=1)
def _load() -> _Api:
    path = wheels.nvrtc_library()
    if path is None:
        raise wheels.missing(wheels.NVRTC, "NVRTC, the CUDA compiler library,")
    try:
        # NVRTC 13.0 opens its built-in functions by bare name: they must be loaded already.
        for builtins in path.parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins))
        return _Api(ctypes.CDLL(str(path)))
    except OSError as error:
        raise TileRuntimeError(
            f"{path.name} could not be loaded: {error}",
            code="TL1602",
            hint=f"reinstall it: {wheels.pip_command(wheels.NVRTC)}",
        ) from error


def _api() -> _Api:
    with _LOADING:
        return _load()


@lru_cache(maxsize=1)
def version() -> tuple[int, int]:
    """(major, minor) of NVRTC. TileRuntimeError (TL1601) with the pip command when missing."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _api().check("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def compile_cubin(
    source: str,
    arch: str,
    *,
    options: Sequence[str] = (),
    name: str = "kernel.cu",
    locate: Locate | None = None,
) -> Cubin:
    """Compile CUDA text for `arch` ("sm_90a"). `locate` maps a line of the text to the Python
    place it came from; a compile error then shows both lines."""
    api = _api()
    started = time.perf_counter()
    arguments = [f"--gpu-architecture={arch}", *BASE_OPTIONS, *_include_options(source), *options]
    program = ctypes.c_void_p()
    texts, names = _texts(HOST_HEADERS.values()), _texts(HOST_HEADERS)
    api.check(
        "nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(),
        ctypes.c_int(len(HOST_HEADERS)), texts, names,
    )  # fmt: skip
    try:
        status = api.call("nvrtcCompileProgram", program, len(arguments), _texts(arguments))
        log = api.text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status:
            raise _failure(log, source, arch, name, locate)
        image = api.text(program, "CUBIN")
    finally:
        api.call("nvrtcDestroyProgram", ctypes.byref(program))
    resources = parse_resources(log)
    warnings = parse_warnings(log, resources)
    return Cubin(image, log, arch, resources, warnings, time.perf_counter() - started)


def _texts(texts: Iterable[str]) -> ctypes.Array[ctypes.c_char_p]:
    encoded = [t.encode() for t in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _include_options(source: str) -> list[str]:
    if "#include" not in source:
        return []
    folder = wheels.include_folder()
    if folder is None:
        raise wheels.missing(wheels.HEADERS, "the header cuda_fp16.h")
    return [f"--include-path={folder}"]


# ---- the log ---------------------------------------------------------------------------------

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FUNCTION = re.compile(r"Function properties for '?([^'\s]+)'?")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_REMARK = re.compile(r"\(C(\d{4})\)\s*(.*)")
_IN_FUNCTION = re.compile(r"in (?:the )?function '([^']+)'")


def parse_resources(log: str) -> dict[str, Resources]:
    """Kernel name -> resources, from a log made with --ptxas-options=-v."""
    found: dict[str, Resources] = {}
    entry = function = ""
    frames: dict[str, tuple[int, int, int]] = {}
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = function = match[1]
        elif match := _FUNCTION.search(line):
            function = match[1]
        elif match := _FRAME.search(line):
            frames[function] = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _USED.search(line)) and entry:
            shared = _SHARED.search(line)
            stack, stores, loads = frames.get(entry, (0, 0, 0))
            size = int(shared[1]) if shared else 0
            found[entry] = Resources(int(match[1]), stores, loads, stack, size)
    return found


def parse_warnings(log: str, resources: dict[str, Resources]) -> tuple[CompilerWarning, ...]:
    """The numbered remarks of ptxas (C7508, C7510 to C7514, ...) and one entry for each kernel
    that spills registers."""
    found: list[CompilerWarning] = []
    for line in log.splitlines():
        if match := _REMARK.search(line):
            kernel = _IN_FUNCTION.search(line)
            found.append(CompilerWarning(f"C{match[1]}", match[2], kernel[1] if kernel else ""))
    for kernel, used in resources.items():
        if used.spills:
            text = (
                f"{kernel} keeps {used.spill_stores} bytes of registers in local memory: "
                f"{used.registers} registers a thread are not enough"
            )
            found.append(CompilerWarning("spill", text, kernel))
    return tuple(dict.fromkeys(found))


def _failure(log: str, source: str, arch: str, name: str, locate: Locate | None) -> TileError:
    """The first error of the log as a TileError: the line of CUDA text, and of Python."""
    if "invalid value for --gpu-architecture" in log:
        return TileValueError(
            f"NVRTC {'.'.join(map(str, version()))} cannot compile for {arch}",
            code="TL1603",
            hint="install a newer NVRTC (" + wheels.pip_command(wheels.NVRTC) + ")",
        )
    match = re.search(rf"{re.escape(name)}\((\d+)\): (?:catastrophic )?error: (.*)", log)
    if match is None:
        first = next((li for li in log.splitlines() if "error" in li or "fatal" in li), log)
        return TileRuntimeError(
            f"NVRTC could not compile the CUDA text for {arch}: {first.strip()}",
            code="TL1604", notes=log.splitlines()[:20],
        )  # fmt: skip
    number = int(match[1])
    lines = source.splitlines()
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return TileRuntimeError(
        f"NVRTC rejects line {number} of the CUDA text: {match[2].strip()}",
        code="TL1604",
        loc=locate(number) if locate is not None else None,
        notes=(f"{name}:{number}: {text}",),
        hint="look at the whole text with kernel.show_source()",
    )
