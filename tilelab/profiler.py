"""Profiler: make inputs for a kernel, time it, compare it with a reference.

`do_bench` times any callable. Hides comparing with a share of mismatches allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tilelab.calls import answer_all, answers
from tilelab.errors import TileValueError, shown
from tilelab.runtime.arguments import Signature
from tilelab.runtime.supply import TensorSupplyType, make_inputs
from tilelab.runtime.timing import Milliseconds, do_bench

__all__ = ["Milliseconds", "Profiler", "TensorSupplyType", "compare", "do_bench"]


class Profiled(Protocol):
    """What a profiler needs of a kernel."""

    @property
    def signature(self) -> Signature: ...
    def __call__(self, *args: Any) -> Any: ...


class Profiler:
    """Times and checks one kernel on made-up inputs, on the GPU when there is one."""

    @answers("Profiler", kinds=True)
    def __init__(self, kernel: Profiled, supply: TensorSupplyType | None = None) -> None:
        if supply is not None and not isinstance(supply, TensorSupplyType):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TileValueError(
                f"a profiler has got {shown(supply)} as what its inputs are", code="TL1645",
                hint="use " + ", ".join(f"TensorSupplyType.{k.name}" for k in TensorSupplyType),
            )  # fmt: skip
        self.kernel = kernel
        self.supply = supply or TensorSupplyType.Auto

    @property
    def func(self) -> Profiled:
        """The kernel."""
        return self.kernel

    def __call__(self, *args: Any) -> Any:
        return self.kernel(*args)

    @answers("make_inputs", inside=False, kinds=True)
    def make_inputs(self, sizes: Mapping[Any, int] | None = None) -> list[Any]:
        """One tensor for each input of the kernel; `sizes` names its dynamic sizes."""
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        return make_inputs(self.kernel.signature, self.supply, device, sizes)

    @answers("do_bench", inside=False, kinds=True)
    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        dynamic_symbolic_constraints: Mapping[Any, int] | None = None,
        device: Any = None,
        early_stop_baseline: float | None = None,
    ) -> Any:
        """Milliseconds of `func` (by default the kernel) on the same inputs; see `do_bench`."""
        inputs = self._inputs(input_tensors, dynamic_symbolic_constraints)
        timed = func or self.kernel
        return do_bench(
            lambda: timed(*inputs), warmup, rep, n_warmup, n_repeat, quantiles,
            backend=backend, return_mode=return_mode, device=device,
            early_stop_baseline=early_stop_baseline,
        )  # fmt: skip

    @answers("run_once", inside=False, kinds=True)
    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """The result of one run on made-up inputs."""
        return (func or self.kernel)(*self.make_inputs())

    @answers("assert_allclose", inside=False, kinds=True)
    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
        dynamic_symbolic_constraints: Mapping[Any, int] | None = None,
    ) -> None:
        """Run the kernel and a reference on the same inputs and compare every output; a share of
        `max_mismatched_ratio` elements may differ. A kernel that returns nothing is compared by
        what it (and the reference) wrote into its arguments. AssertionError on a difference."""
        inputs = self._inputs(input_tensors, dynamic_symbolic_constraints)
        copies = [t.clone() if hasattr(t, "clone") else t for t in inputs]
        got, expected = self.kernel(*inputs), reference_program(*copies)
        if got is None and expected is None:
            got, expected = _tensors(inputs), _tensors(copies)
        ours, theirs = _listed(got), _listed(expected)
        if len(ours) != len(theirs):
            raise TileValueError(
                f"the kernel gives {len(ours)} outputs, and the reference {len(theirs)}",
                code="TL1645",
                hint="let reference_program return what the kernel returns, in its order; of a "
                "kernel without out_idx, write into the arguments and return nothing",
            )
        for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            compare(a, b, rtol, atol, max_mismatched_ratio, name=f"output {index}")

    @answers("manual_assert_close", inside=False, kinds=True)
    def manual_assert_close(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """Run both and let `manual_check_prog(outputs, references)` judge."""
        if manual_check_prog is None:
            raise TileValueError(
                "manual_assert_close has nothing to judge with", code="TL1645",
                hint="pass manual_check_prog=function(outputs, references)",
            )  # fmt: skip
        inputs = self._inputs(input_tensors, None)
        manual_check_prog(_listed(self.kernel(*inputs)), _listed(reference_program(*inputs)))

    @answers("assert_consistent", inside=False, kinds=True)
    def assert_consistent(self, repeat: int = 10) -> None:
        """Run `repeat` times on the same inputs; AssertionError unless bitwise the same."""
        inputs = self.make_inputs()
        first = [t.clone() for t in _listed(self.kernel(*inputs))]
        for _ in range(repeat):
            for a, b in zip(first, _listed(self.kernel(*inputs)), strict=True):
                compare(b, a, 0.0, 0.0, 0.0, name="a repeated run")

    def _inputs(
        self, given: Sequence[Any] | None, sizes: Mapping[Any, int] | None
    ) -> Sequence[Any]:
        return self.make_inputs(sizes) if given is None else given


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [*value] if isinstance(value, list | tuple) else [value]  # pyright: ignore


def _tensors(values: Sequence[Any]) -> list[Any]:
    return [v for v in values if hasattr(v, "data_ptr")]


def compare(
    got: Any,
    expected: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    name: str = "result",
) -> None:
    """AssertionError when more than a share of the elements of two tensors differ; it names the
    first difference with its index and both values. NaN equals NaN."""
    import torch

    if tuple(got.shape) != tuple(expected.shape):
        raise AssertionError(f"{name} has shape {tuple(got.shape)}, expected "
                             f"{tuple(expected.shape)}")  # fmt: skip
    a = got.detach().to(torch.float64 if got.dtype == torch.float64 else torch.float32)
    b = expected.detach().to(device=a.device, dtype=a.dtype)
    wrong = ~torch.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    count, total = int(wrong.sum()), max(wrong.numel(), 1)
    if count <= max_mismatched_ratio * total:
        return
    index = tuple(int(i) for i in torch.nonzero(wrong)[0])
    worst = float((a - b).abs().nan_to_num(float("inf")).max())
    raise AssertionError(
        f"{name}: {count} of {total} elements differ ({100 * count / total:.2f}%, allowed "
        f"{100 * max_mismatched_ratio:g}%); first at {index}: got {float(a[index])}, expected "
        f"{float(b[index])}; largest difference {worst:g}"
    )


answer_all(globals(), ("compare", "do_bench"), "profiler")
