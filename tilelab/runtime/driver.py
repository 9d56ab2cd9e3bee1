"""The CUDA driver: is there a GPU, what can it do, load a cubin, ask about a kernel, launch it.

Everything answers on a machine without a driver (`find()` gives None). Hides libcuda's C API.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilelab.errors import TileRuntimeError
from tilelab.target import Target, for_capability

# CUdevice_attribute and CUfunction_attribute numbers (cuda.h).
_DEVICE_ATTRIBUTES = {
    "sms": 16, "l2_bytes": 38, "major": 75, "minor": 76, "shared_per_sm": 81,
    "shared_per_block": 97, "shared_reserved_per_block": 111, "registers_per_sm": 82,
    "threads_per_sm": 39, "blocks_per_sm": 106,
}  # fmt: skip
_FUNCTION_ATTRIBUTES = {"registers": 4, "dynamic_limit": 8}
_INVALID_CONTEXT = (201, 400)  # CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_HANDLE
_CAPTURE_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


@dataclass(frozen=True)
class DeviceInfo:
    """A GPU as the driver describes it (bytes and counts)."""

    index: int
    name: str
    capability: tuple[int, int]
    sms: int
    l2_bytes: int
    shared_per_block: int
    shared_per_sm: int
    shared_reserved_per_block: int
    registers_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    memory_bytes: int

    @property
    def target(self) -> Target:
        """The richest target this device can run. TileValueError when it is too old."""
        return for_capability(*self.capability)


@dataclass(frozen=True)
class Function:
    """A kernel loaded on a device, ready to launch."""

    handle: int
    name: str
    registers: int


class Driver:
    """libcuda with checked calls, and one primary context a device (the one torch uses)."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._contexts: dict[int, int] = {}
        self._lock = threading.Lock()
        # Without argtypes ctypes passes Python ints as C ints and c_void_p objects as they
        # are, which takes half the time; every pointer below is therefore a c_void_p.
        self.launch: Callable[..., int] = library["cuLaunchKernelEx"]

    def check(self, name: str, *arguments: Any, about: str = "") -> None:
        """Call an entry point; TileRuntimeError (TL1631) with the driver's words on failure."""
        status = int(getattr(self._library, name)(*arguments))
        if status:
            raise self.failure(status, about or name)

    def failure(self, status: int, what: str) -> TileRuntimeError:
        """The error for a status code."""
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        label = (name.value or b"CUDA error %d" % status).decode()
        return TileRuntimeError(
            f"{what} failed: {label} ({(text.value or b'no description').decode()})",
            code="TL1631",
            hint="an error of an earlier kernel can show up here: run the kernel on CPU tensors, "
            "the simulator names the statement",
        )

    def clear(self, pointer: int, words: int, stream: int, device: int) -> None:
        """Set 32-bit words of global memory to 0, in the order of a stream."""
        where, count = ctypes.c_void_p(pointer), ctypes.c_size_t(words)
        arguments = (where, 0, count, ctypes.c_void_p(stream))
        status = int(self._library.cuMemsetD32Async(*arguments))
        if self.wants_context(status):
            self.make_current(device)
            status = int(self._library.cuMemsetD32Async(*arguments))
        if status:
            raise self.failure(status, "clearing a counter")

    @property
    def version(self) -> tuple[int, int]:
        """The newest CUDA that the driver supports, as (major, minor)."""
        value = ctypes.c_int()
        self.check("cuDriverGetVersion", ctypes.byref(value))
        return value.value // 1000, value.value % 1000 // 10

    @property
    def device_count(self) -> int:
        value = ctypes.c_int()
        self.check("cuDeviceGetCount", ctypes.byref(value))
        return value.value

    def device(self, index: int) -> DeviceInfo:
        """What GPU `index` is."""
        handle = ctypes.c_int()
        self.check("cuDeviceGet", ctypes.byref(handle), index)
        name = ctypes.create_string_buffer(128)
        self.check("cuDeviceGetName", name, len(name), handle)
        memory = ctypes.c_size_t()
        self.check("cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
        facts: dict[str, int] = {}
        for key, number in _DEVICE_ATTRIBUTES.items():
            value = ctypes.c_int()
            self.check("cuDeviceGetAttribute", ctypes.byref(value), number, handle)
            facts[key] = value.value
        capability = (facts.pop("major"), facts.pop("minor"))
        text = name.value.decode(errors="replace")
        return DeviceInfo(index, text, capability, memory_bytes=memory.value, **facts)

    def make_current(self, index: int) -> None:
        """Make the primary context of GPU `index` current in this thread."""
        with self._lock:
            context = self._contexts.get(index)
            if context is None:
                handle, device = ctypes.c_void_p(), ctypes.c_int()
                self.check("cuDeviceGet", ctypes.byref(device), index)
                self.check("cuDevicePrimaryCtxRetain", ctypes.byref(handle), device)
                context = self._contexts[index] = handle.value or 0
        self.check("cuCtxSetCurrent", ctypes.c_void_p(context))

    @contextmanager
    def current(self, index: int) -> Generator[None]:
        """The primary context of GPU `index` is current inside; the one before is put back."""
        before = ctypes.c_void_p()
        self.check("cuCtxGetCurrent", ctypes.byref(before))
        if before.value is not None and before.value == self._contexts.get(index):
            yield
            return
        self.make_current(index)
        try:
            yield
        finally:
            if before.value is not None:
                self.check("cuCtxSetCurrent", before)

    @contextmanager
    def _outside_capture(self) -> Generator[None]:
        """Allow loading while a stream of this thread is captured into a graph."""
        mode = ctypes.c_int(_CAPTURE_RELAXED)
        self.check("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        try:
            yield
        finally:
            self.check("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    def load(self, image: bytes, index: int) -> ctypes.c_void_p:
        """A module made from a cubin on GPU `index`; it stays loaded."""
        module = ctypes.c_void_p()
        self.make_current(index)
        with self._outside_capture():
            self.check("cuModuleLoadData", ctypes.byref(module), image, about="loading a cubin")
        return module

    def function(self, module: ctypes.c_void_p, name: str, dynamic_bytes: int) -> Function:
        """A kernel of a module, allowed to use `dynamic_bytes` of dynamic shared memory."""
        handle = ctypes.c_void_p()
        with self._outside_capture():
            self.check(
                "cuModuleGetFunction", ctypes.byref(handle), module, name.encode(),
                about=f"looking up kernel {name}",
            )  # fmt: skip
            facts = {key: self._attribute(handle, n) for key, n in _FUNCTION_ATTRIBUTES.items()}
            if dynamic_bytes > facts.pop("dynamic_limit"):
                number = _FUNCTION_ATTRIBUTES["dynamic_limit"]
                about = f"asking for {dynamic_bytes} bytes of shared memory for {name}"
                self.check("cuFuncSetAttribute", handle, number, dynamic_bytes, about=about)
        return Function(handle.value or 0, name, **facts)

    def symbol(self, module: ctypes.c_void_p, name: str) -> tuple[ctypes.c_void_p, int]:
        """Address and size in bytes of a variable of a module."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.check(
            "cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), module,
            name.encode(), about=f"looking up {name}",
        )  # fmt: skip
        return address, size.value

    def _attribute(self, function: ctypes.c_void_p, number: int) -> int:
        value = ctypes.c_int()
        self.check("cuFuncGetAttribute", ctypes.byref(value), number, function)
        return value.value

    def occupancy(self, function: Function, threads: int, dynamic_bytes: int) -> int:
        """Blocks of a kernel that one SM holds at the same time."""
        value = ctypes.c_int()
        self.check(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(value),
            ctypes.c_void_p(function.handle), threads, ctypes.c_size_t(dynamic_bytes),
        )  # fmt: skip
        return value.value

    def encode_tensor_map(self, *arguments: Any) -> int:
        """The raw status of cuTensorMapEncodeTiled."""
        return int(self._library["cuTensorMapEncodeTiled"](*arguments))

    @staticmethod
    def wants_context(status: int) -> bool:
        """Whether a launch failed only because this thread has no (or another) context."""
        return status in _INVALID_CONTEXT


_NAMES = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}


@lru_cache(maxsize=1)
def library_problem() -> tuple[ctypes.CDLL | None, str]:
    """The driver library, initialised; or None and one sentence on what is missing."""
    name = _NAMES.get(sys.platform)
    if name is None:
        return None, f"there is no CUDA driver for {sys.platform}"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None, f"no NVIDIA driver is installed ({name} was not found)"
    status = int(library.cuInit(0))
    if status:
        return None, f"the NVIDIA driver does not start (cuInit gives {status})"
    return library, ""


@lru_cache(maxsize=1)
def find() -> Driver | None:
    """The driver when there is one with at least one GPU, else None; never raises."""
    library, _ = library_problem()
    if library is None:
        return None
    driver = Driver(library)
    try:
        return driver if driver.device_count > 0 else None
    except TileRuntimeError:
        return None


def require() -> Driver:
    """The driver; TileRuntimeError (TL1632) when this machine has no usable GPU."""
    driver = find()
    if driver is None:
        _, problem = library_problem()
        raise TileRuntimeError(
            f"this needs an NVIDIA GPU: {problem or 'the driver finds no device'}",
            code="TL1632",
            hint="call the kernel with CPU tensors: it then runs on the simulator",
        )
    return driver


@lru_cache(maxsize=16)
def device_info(index: int = 0) -> DeviceInfo:
    """What GPU `index` is; TileRuntimeError (TL1632) without a GPU."""
    return require().device(index)
