"""Tensors of one call: secret values, fenced and poisoned outputs, new addresses.

Runs in the runner. Hides guard bytes and how inputs are made again to see whether they changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from judge.kernels import KernelTask, Sizes, Tensor

GUARD_BYTES = 1024
_PATTERN = 0xA5


@dataclass
class Fenced:
    """A tensor with guard bytes directly before and behind it."""

    tensor: Any
    before: Any
    behind: Any

    def intact(self) -> bool:
        """Whether nobody wrote beside the tensor."""
        return all(bool((guard == _PATTERN).all()) for guard in (self.before, self.behind))


def fenced(spec: Tensor, sizes: Sizes, device: str, shift: int = 0) -> Fenced:
    """A tensor full of NaN in memory of its own; `shift` moves it by multiples of 256 bytes."""
    import torch

    dtype = getattr(torch, spec.dtype)
    shape = spec.extents(sizes)
    size, first = prod(shape) * dtype.itemsize, GUARD_BYTES + 256 * shift
    raw = torch.full((first + size + GUARD_BYTES,), _PATTERN, dtype=torch.uint8, device=device)
    tensor = raw[first : first + size].view(dtype).view(shape)
    tensor.fill_(float("nan"))
    return Fenced(tensor, raw[:first], raw[first + size :])


def make_inputs(task: KernelTask, data: Data, device: str) -> list[Any]:
    """The inputs that `data` stands for; the same ones each time they are asked for."""
    import torch

    generator = torch.Generator(device=device).manual_seed(data.seed)
    made: list[Any] = []
    for spec in task.inputs:
        shape = spec.extents(data.sizes)
        values = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
        made.append((values * data.scale + data.shift).to(getattr(torch, spec.dtype)))
    return made


@dataclass(frozen=True)
class Data:
    """What decides the values of a call."""

    sizes: Sizes
    seed: int
    scale: float = 1.0
    shift: float = 0.0


class Call:
    """All tensors of one call: inputs inside fences too, outputs NaN."""

    def __init__(self, task: KernelTask, data: Data, device: str, shift: int = 0) -> None:
        self._task, self._device = task, device
        self.data = data
        self.fences = [fenced(spec, data.sizes, device, shift) for spec in task.tensors]
        self.fill(data)

    @property
    def tensors(self) -> list[Any]:
        """In the order of the kernel's parameters."""
        return [fence.tensor for fence in self.fences]

    @property
    def output(self) -> Any:
        """The output tensor."""
        return self.tensors[self._task.tensors.index(self._task.output)]

    def fill(self, data: Data) -> None:
        """Put other values into the same memory, and NaN into the output."""
        self.data = data
        for tensor, values in zip(self._inputs(), self.values(), strict=True):
            tensor.copy_(values)
        self.output.fill_(float("nan"))

    def inputs_changed(self) -> bool:
        """Whether an input is not, bit by bit, what its seed makes."""
        import torch

        pairs = zip(self._inputs(), self.values(), strict=True)
        return not all(
            torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
            for a, b in pairs
        )

    def fences_broken(self) -> bool:
        """Whether something was written beside a tensor."""
        return not all(fence.intact() for fence in self.fences)

    def expected(self) -> tuple[Any, Any]:
        """The reference and the magnitude of its terms, from inputs made anew, in float64.

        Made after the kernel has run, so there is nothing for it to find in memory."""
        import torch

        inputs = [values.to(torch.float64) for values in self.values()]
        size = self._task.magnitude
        magnitude = size(*inputs) if size else self._task.reference(*(x.abs() for x in inputs))
        return self._task.reference(*inputs), magnitude

    def _inputs(self) -> list[Any]:
        return [t for t, s in zip(self.tensors, self._task.tensors, strict=True) if not s.output]

    def values(self) -> list[Any]:
        """The inputs, made anew: what the kernel was given, whatever it did to them."""
        return make_inputs(self._task, self.data, self._device)
