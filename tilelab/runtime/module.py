"""A compiled program on one device: its kernels loaded, and how each one's parameters are packed.

Hides the order and the bytes of CUDA kernel parameters.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.errors import TileInternalError
from tilelab.ir import RESIDENT, Buffer, Var
from tilelab.runtime import tensor_map
from tilelab.runtime.arguments import Signature
from tilelab.runtime.driver import Driver, Function, device_info
from tilelab.runtime.evaluate import function_of
from tilelab.runtime.nvrtc import Cubin
from tilelab.thread.nodes import Program, TensorMap, ThreadKernel

Numbers = Sequence[Any]
"""Values of a signature's variables: dynamic sizes, then scalar parameters."""

Launch = tuple[ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
"""The first three arguments of cuLaunchKernelEx: configuration, function, parameters."""


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h. One call with a prepared configuration passes 4 arguments where
    cuLaunchKernel takes 11, and ctypes spends most of its time on converting arguments."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in
          ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes")),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p),
        ("num_attributes", ctypes.c_uint),
    )  # fmt: skip


Places = Mapping[str, "Place"]
"""Name of a tensor parameter or workspace -> where it is in this call."""


@dataclass(frozen=True)
class Variant:
    """A program with its machine code. `kernel_names` are in the order of its kernels."""

    program: Program
    cubin: Cubin
    kernel_names: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """A tensor of one call: where it is, and its extents and strides in elements."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Packed:
    """Launches of one call, and the memory their parameters live in."""

    launches: tuple[Launch, ...]
    keep: tuple[Any, ...]


class LoadedKernel:
    """One `__global__` function on one device."""

    def __init__(
        self, kernel: ThreadKernel, function: Function, signature: Signature, device: int,
        resident: int,
    ) -> None:  # fmt: skip
        self._device = f"cuda:{device}"
        self.kernel = kernel
        self.function = function
        self._handle = ctypes.c_void_p(function.handle)
        self._block = (*kernel.threads, 1, 1)[:3]
        self._resident = resident
        self._grid = function_of(kernel.grid, (*signature.variables, RESIDENT))
        index = {id(v): i for i, v in enumerate(signature.variables)}
        self._scalars = tuple(self._scalar(v, index) for v in kernel.scalars)

    def _scalar(self, var: Var, index: Mapping[int, int]) -> tuple[int, Any]:
        position = index.get(id(var))
        if position is None:
            raise TileInternalError(
                f"kernel {self.kernel.name} takes {var.name}, which is no parameter of the call",
                hint="this is a bug of tilelab: please report it with the program",
            )
        return position, var.dtype.numpy

    def grid(self, numbers: Numbers) -> tuple[int, int, int]:
        """Blocks in x, y and z for the given sizes."""
        x, y, z = (*self._grid(*numbers, self._resident), 1, 1)[:3]
        return int(x), int(y), int(z)

    def pack(
        self, driver: Driver, places: Places, numbers: Numbers, stream: int
    ) -> tuple[Launch | None, Any]:
        """The launch for these tensors, and the memory that it points to. None for a grid
        without blocks: there is nothing to do, and CUDA would refuse it."""
        grid = self.grid(numbers)
        if 0 in grid:
            return None, None
        encoded = [self._map(driver, m, places[m.tensor.root.name]) for m in self.kernel.maps]
        values = [self._pointer(b, places) for b in self.kernel.tensors]
        values += [np.asarray(numbers[i], dtype).tobytes() for i, dtype in self._scalars]
        slots = ctypes.create_string_buffer(b"".join(v.ljust(8, b"\0") for v in values) or b"\0")
        base = ctypes.addressof(slots)
        addresses = [map_.address for map_, _ in encoded]
        addresses += [base + 8 * i for i in range(len(values))]
        array = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        pointer = ctypes.c_void_p(ctypes.addressof(array))
        size = self.kernel.dynamic_bytes
        config = LaunchConfig(*grid, *self._block, size, stream, None, 0)
        where = ctypes.c_void_p(ctypes.addressof(config))
        return (where, self._handle, pointer), (config, array, slots, encoded)

    @staticmethod
    def _pointer(buffer: Buffer, places: Places) -> bytes:
        return places[buffer.root.name].pointer.to_bytes(8, "little")

    def _map(self, driver: Driver, spec: TensorMap, place: Place) -> tuple[tensor_map.Encoded, Any]:
        """A descriptor, and memory that it needs alive."""
        if 0 not in place.shape:
            numbers = tensor_map.geometry(spec, place.pointer, place.shape, place.strides)
            return tensor_map.encode(driver, spec, numbers), None
        import torch

        zeros = torch.zeros(16, dtype=torch.uint8, device=self._device)
        numbers = tensor_map.empty_geometry(spec, zeros.data_ptr())
        return tensor_map.encode(driver, spec, numbers), zeros


class LoadedVariant:
    """A variant on one device: module, kernels, and the workspaces of a call."""

    def __init__(self, driver: Driver, device: int, variant: Variant, signature: Signature) -> None:
        self.variant = variant
        self.driver = driver
        self.device = device
        program = variant.program
        self._module = driver.load(variant.cubin.image, device)
        named = zip(program.kernels, variant.kernel_names, strict=True)
        self.kernels = tuple(self._kernel(k, name, signature, device) for k, name in named)
        self.workspaces = tuple(
            (b, function_of(b.shape, signature.variables)) for b in program.workspaces
        )

    def _kernel(
        self, kernel: ThreadKernel, name: str, signature: Signature, device: int
    ) -> LoadedKernel:
        function = self.driver.function(self._module, name, kernel.dynamic_bytes)
        resident = 1
        if kernel.launched is not None:
            each = self.driver.occupancy(function, kernel.num_threads, kernel.dynamic_bytes)
            resident = max(each, 1) * device_info(device).sms
        return LoadedKernel(kernel, function, signature, device, resident)

    def clear_variable(self, name: str) -> None:
        """Fill a variable of the module with zeros."""
        with self.driver.current(self.device):
            address, size = self.driver.symbol(self._module, name)
            self.driver.check("cuMemsetD8_v2", address, ctypes.c_ubyte(0), ctypes.c_size_t(size))

    def variable(self, name: str) -> bytes:
        """The bytes of a variable of the module, once all work of the device is done."""
        with self.driver.current(self.device):
            self.driver.check("cuCtxSynchronize")
            address, size = self.driver.symbol(self._module, name)
            kept = ctypes.create_string_buffer(size)
            self.driver.check("cuMemcpyDtoH_v2", kept, address, ctypes.c_size_t(size))
        return kept.raw

    def pack(self, places: Places, numbers: Numbers, stream: int) -> Packed:
        """The launches of a call, in order; empty grids are left out."""
        pairs = [k.pack(self.driver, places, numbers, stream) for k in self.kernels]
        done = [(launch, keep) for launch, keep in pairs if launch is not None]
        return Packed(tuple(launch for launch, _ in done), tuple(keep for _, keep in done))


def launcher_of(driver: Driver, device: int) -> Callable[[Sequence[Launch]], None]:
    """A function that starts packed launches on `device`."""
    launch = driver.launch

    def run(launches: Sequence[Launch]) -> None:
        for config, function, params in launches:
            status = launch(config, function, params, None)
            if status:
                again(status, config, function, params)

    def again(status: int, *arguments: ctypes.c_void_p) -> None:
        """A thread that has not touched CUDA yet has no context: give it one and retry."""
        if driver.wants_context(status):
            driver.make_current(device)
            status = launch(*arguments, None)
        if status:
            raise driver.failure(status, "launching the kernel")

    def run_on_device(launches: Sequence[Launch]) -> None:
        with driver.current(device):
            run(launches)

    return run_on_device if driver.device_count > 1 else run
