"""Hand-written kernels on the GPU: a reference's source built by NVRTC, launched on torch tensors.

Hides the packing of parameters, which is done once for each set of tensors, so that a timed call
is an allocation of the result and a launch, as a call of tilelab's kernel is.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelab import dtypes
from tilelab.bench.problems import Problem, names_of
from tilelab.bench.reference import Reference
from tilelab.errors import TileValueError
from tilelab.ir import Buffer, Scope
from tilelab.runtime import driver, nvrtc, tensor_map
from tilelab.runtime.module import Launch, LaunchConfig, launcher_of
from tilelab.thread.nodes import TensorMap

Spec = dict[str, Any]
Tensors = Mapping[str, Any]

_SCALARS = {"int32": np.int32, "int64": np.int64, "float32": np.float32}


def machine_code(reference: Reference, names: Mapping[str, Any], arch: str) -> nvrtc.Cubin:
    """The reference's source for a row, built for `arch`. Raises TileError with NVRTC's words."""
    macros = {k: reference.number(k, v, names) for k, v in reference.defines.items()}
    # A kernel written for nvcc may hold lambdas, which NVRTC takes for host functions otherwise.
    options = ["--device-as-default-execution-space"]
    options += [f"-D{k}={int(v) if type(v) is bool else v}" for k, v in macros.items()]
    text = reference.source.read_text("utf-8")
    return nvrtc.compile_cubin(text, arch, options=options, name=reference.source.name)


class ForeignKernel:
    """A reference built for one row: a function of the problem's inputs that gives its result.

    Raises TileValueError (TL2121) where an argument names no tensor of the problem.
    """

    def __init__(self, reference: Reference, problem: Problem, spec: Spec) -> None:
        import torch

        device = torch.cuda.current_device()
        facts = driver.device_info(device)
        self._driver = driver.require()
        self._reference, self._problem, self._spec = reference, problem, spec
        self._names = {**names_of(problem, spec), "sms": facts.sms}
        cubin = machine_code(reference, self._names, facts.target.arch)
        self._shared = self._count("shared", reference.shared)
        module = self._driver.load(cubin.image, device)
        self._function = self._driver.function(module, reference.entry, self._shared)
        self._start = launcher_of(self._driver, device)
        self._packed: dict[tuple[int, ...], tuple[Launch, Any]] = {}

    def __call__(self, *inputs: Any) -> Any:
        result = self._problem.empty(self._spec)
        key = (*(t.data_ptr() for t in inputs), result.data_ptr())
        if key not in self._packed:
            named = zip((*self._problem.tensors, self._problem.result), (*inputs, result),
                        strict=True)  # fmt: skip
            self._packed[key] = self._pack(dict(named))
        self._start((self._packed[key][0],))
        return result

    def _count(self, key: str, text: str) -> int:
        return int(self._reference.number(key, text, self._names))

    def _sizes(self, key: str, texts: tuple[str, ...]) -> tuple[int, ...]:
        return (*(self._count(key, t) for t in texts), 1, 1)[:3]

    def _pack(self, tensors: Tensors) -> tuple[Launch, Any]:
        """The launch for these tensors, and the memory that it points to."""
        import torch

        made = [self._argument(a, tensors) for a in self._reference.arguments]
        array = (ctypes.c_void_p * len(made))(*[address for address, _ in made])
        config = LaunchConfig(
            *self._sizes("grid", self._reference.grid),
            *self._sizes("block", self._reference.block),
            self._shared, torch.cuda.current_stream().cuda_stream, None, 0,
        )  # fmt: skip
        pointers = (ctypes.c_void_p(ctypes.addressof(x)) for x in (config, array))
        where, parameters = pointers
        handle = ctypes.c_void_p(self._function.handle)
        return (where, handle, parameters), (config, array, made)

    def _argument(self, argument: Mapping[str, Any], tensors: Tensors) -> tuple[int, Any]:
        """Where an argument's bytes are, and what keeps them."""
        kind, said = next((k, v) for k, v in argument.items() if k not in ("box", "swizzle"))
        if kind == "map":
            encoded = self._map(self._tensor(said, tensors), said, argument)
            return encoded.address, encoded
        keep: Any = None
        if kind == "tensor":
            value = np.uint64(self._tensor(said, tensors).data_ptr())
        elif kind == "zeros":
            import torch

            keep = torch.zeros(self._count(kind, str(said)), dtype=torch.uint8, device="cuda")
            value = np.uint64(keep.data_ptr())
        else:
            value = _SCALARS[kind](self._reference.number(kind, str(said), self._names))
        memory = ctypes.create_string_buffer(value.tobytes())
        return ctypes.addressof(memory), (memory, keep)

    def _tensor(self, name: str, tensors: Tensors) -> Any:
        if name not in tensors:
            raise TileValueError(
                f"{self._reference.path.name} has an argument for the tensor {name!r}",
                code="TL2121",
                hint=f"tensors of {self._reference.program}: {', '.join(tensors)}",
            )
        return tensors[name]

    def _map(self, tensor: Any, name: str, said: Mapping[str, Any]) -> tensor_map.Encoded:
        """A TMA descriptor of the whole tensor, innermost axis first."""
        dtype = dtypes.as_dtype(str(tensor.dtype).removeprefix("torch."))
        buffer = Buffer(name, tuple(tensor.shape), dtype, Scope.GLOBAL)
        box = tuple(self._count("box", str(b)) for b in said["box"])
        axes = tuple(reversed(range(tensor.dim())))
        spec = TensorMap(name, buffer, axes, box, said.get("swizzle", 0))
        numbers = tensor_map.geometry(spec, tensor.data_ptr(), tensor.shape, tensor.stride())
        return tensor_map.encode(self._driver, spec, numbers)
