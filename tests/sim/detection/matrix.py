"""One entry of the detection matrix: a program made twice, right and with one bug.

Hides how the expected line is known (a comment `BUG` at its end) and how inputs are made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilelab
from tilelab.ir import ScalarParam, TensorParam
from tilelab.sim import SimReport

MARK = "# BUG"
UNGUARDED = {"tl.disable_safe_memory_legalize": True}
BY_HAND = {"tl.disable_thread_storage_sync": True}


@dataclass(frozen=True)
class Entry:
    """`make(ok)` gives the program: right when `ok`, else with a bug of `codes` at a marked line.

    inputs: values by parameter name instead of counting ones (a number fills). source: the
    function whose lines are marked, by `mark`, if not `make`.
    """

    make: Callable[[bool], Any]
    codes: tuple[str, ...]
    target: str = "sm_90a"
    configs: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: dict[str, Any] = field(default_factory=dict[str, Any])
    out_idx: Any = None
    source: Any = None
    mark: str = MARK

    @property
    def name(self) -> str:
        return f"{self.make.__module__.rpartition('.')[2]}-{self.make.__name__}"

    def lines(self) -> list[int]:
        """Lines of the file that the finding may name."""
        text, first = inspect.getsourcelines(self.source or self.make)
        return [first + i for i, line in enumerate(text) if line.rstrip().endswith(self.mark)]

    def kernel(self, ok: bool) -> Any:
        return tilelab.compile(
            self.make(ok), target=self.target, pass_configs=self.configs, out_idx=self.out_idx
        )

    def simulate(self, ok: bool, **options: Any) -> SimReport:
        kernel = self.kernel(ok)
        return kernel.simulate(*self.arguments(kernel), **options)

    def arguments(self, kernel: Any) -> list[Any]:
        """Tensors and numbers for a call, made anew."""
        import torch

        outputs = kernel.signature.outputs
        arguments: list[Any] = []
        for i, param in enumerate(kernel.prim_func.params):
            if i in outputs:
                continue
            given = self.inputs.get(param.name)
            if isinstance(param, ScalarParam):
                arguments.append(given)
                continue
            assert isinstance(param, TensorParam)
            array = _made(given, param.buffer)
            arguments.append(torch.from_numpy(array))
        return arguments


def _made(given: Any, buffer: Any) -> Any:
    dtype = buffer.dtype.numpy
    if isinstance(given, np.ndarray):
        return given.astype(dtype)
    shape = buffer.static_shape
    if given is not None:
        return np.full(shape, given, dtype)
    count = int(np.prod(shape))
    return (np.arange(count) % 97).reshape(shape).astype(dtype)


def collect(entries: list[Entry]) -> Callable[..., Any]:
    """A decorator that adds an entry to a list."""

    def bug(*codes: str, **options: Any) -> Callable[[Callable[[bool], Any]], Entry]:
        def add(make: Callable[[bool], Any]) -> Entry:
            entries.append(Entry(make, codes, **options))
            return entries[-1]

        return add

    return bug
