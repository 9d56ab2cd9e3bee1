"""Bind the arguments of a call to the parameters of a kernel, for the GPU and the simulator.

Each error names the parameter, what was expected, what came, and a remedy. Hides how dynamic
sizes are solved from the shapes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.dtypes import DType, integer_range
from tilelab.errors import Loc, TileTypeError, TileValueError
from tilelab.ir import Buffer, Expr, ScalarParam, TensorParam, Var, const_int
from tilelab.logs import notice
from tilelab.runtime.evaluate import function_of
from tilelab.runtime.sizes import SizeSolver
from tilelab.runtime.tensors import (
    TensorFacts,
    facts_of,
    is_dense,
    is_tensor,
    same_dtype,
    stored_dtype,
    torch_name,
)
from tilelab.runtime.untouched import Untouched
from tilelab.thread.nodes import LONGEST_AXIS, Alignment

Param = TensorParam | ScalarParam


@dataclass(frozen=True)
class Binding:
    """The arguments of one call, in the order of the parameters.

    `values` and `facts` have None for outputs that the launcher allocates (and `facts` for
    scalars). `sizes` are the values of the dynamic sizes, in the order of the signature's; `device`
    is None when no argument is a tensor.
    """

    values: tuple[Any, ...]
    facts: tuple[TensorFacts | None, ...]
    sizes: tuple[int, ...]
    device: str | None


class Signature:
    """The parameters of a kernel: what a call must pass and which outputs it gets back."""

    def __init__(
        self,
        name: str,
        params: Sequence[Param],
        sizes: Sequence[Var] = (),
        outputs: Sequence[int] = (),
        loc: Loc | None = None,
        untouched: Untouched | None = None,
    ) -> None:
        self.name, self.untouched = name, untouched or Untouched()
        self.params = tuple(params)
        self.sizes = tuple(sizes)
        self.notes = () if loc is None else (f"{name} is defined at {loc}",)
        self.outputs = _positions(name, outputs, self.params, loc)
        self.inputs = tuple(i for i in range(len(params)) if i not in self.outputs)
        self.scalars = tuple(p.var for p in params if isinstance(p, ScalarParam))
        self.variables = (*self.sizes, *self.scalars)
        self._solver = SizeSolver(name, self.params, self.sizes, self.inputs)
        self._shapes = {
            i: function_of(p.buffer.shape, self.variables)
            for i, p in enumerate(self.params) if isinstance(p, TensorParam)
        }  # fmt: skip
        self._strides = {
            i: function_of(p.buffer.effective_strides(), self.variables)
            for i, p in enumerate(self.params) if isinstance(p, TensorParam)
        }  # fmt: skip

    def bind(self, args: Sequence[Any]) -> Binding:
        """Check a call's arguments (one for each input) and solve the dynamic sizes."""
        self._check_count(args)
        values: list[Any] = [None] * len(self.params)
        facts: list[TensorFacts | None] = [None] * len(self.params)
        for position, value in zip(self.inputs, args, strict=True):
            param = self.params[position]
            if isinstance(param, ScalarParam):
                values[position] = self._scalar(param, value)
            elif value is not None or position not in self.untouched.positions:
                values[position], facts[position] = value, self._tensor(param, value)
                _say_that_gradients_end(self.name, param, value)
        device = self._device(facts)
        if device == "meta":
            first = next(i for i, fact in enumerate(facts) if fact is not None)
            raise self._no_elements(self.params[first], "a meta tensor")
        sizes = self._solver.solve(facts, values)
        numbers = (*sizes, *(v for v, p in zip(values, self.params, strict=True)
                             if isinstance(p, ScalarParam)))  # fmt: skip
        for position, fact in enumerate(facts):
            if fact is not None:
                self._check_layout(position, fact, numbers)
        return self.untouched.completed(self, Binding(tuple(values), tuple(facts), sizes, device))

    def ordered(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The inputs of a call in order, given those passed by name.

        TileTypeError (TL1611) for a name that no input has, and for one that is given twice.
        """
        names = [self.params[i].name for i in self.inputs]
        missing = names[len(args) :]
        for name in named:
            if name not in missing:
                known = "is given twice" if name in names else "is no input"
                raise TileTypeError(
                    f"argument {name} of {self.name} {known}", code="TL1611", notes=self.notes,
                    hint=f"call {self.name} with: {', '.join(names) or 'none'}",
                )  # fmt: skip
        return (*args, *(named[name] for name in missing if name in named))

    def numbers(self, binding: Binding) -> tuple[Any, ...]:
        """Values of `variables`: the dynamic sizes, then the scalar parameters."""
        pairs = zip(binding.values, self.params, strict=True)
        return (*binding.sizes, *(v for v, p in pairs if isinstance(p, ScalarParam)))

    def shape_of(self, position: int, numbers: Sequence[Any]) -> tuple[int, ...]:
        """The shape of a tensor parameter, given the values of `variables`."""
        return self._shapes[position](*numbers)

    def strides_of(self, position: int, numbers: Sequence[Any]) -> tuple[int, ...]:
        """The strides (elements) that a tensor parameter was declared with."""
        return self._strides[position](*numbers)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(describe(self.params[i]) for i in self.inputs)})"

    # ---- one check each ----------------------------------------------------------------------

    def _check_count(self, args: Sequence[Any]) -> None:
        if len(args) == len(self.inputs):
            return
        names = ", ".join(self.params[i].name for i in self.inputs) or "none"
        made = ", ".join(self.params[i].name for i in self.outputs)
        extra = f"; {made} is allocated and returned, do not pass it" if made else ""
        if not made and len(args) < len(self.inputs):
            extra = "; or compile it with out_idx=[-1]: the last one is then allocated and returned"
        raise TileValueError(
            f"Kernel expected {len(self.inputs)} inputs, but {len(args)} are provided",
            code="TL1611", notes=self.notes,
            hint=f"call {self.name} with: {names}{extra}",
        )  # fmt: skip

    def _scalar(self, param: ScalarParam, value: Any) -> Any:
        if hasattr(value, "item") and not getattr(value, "shape", ()):
            value = value.item()
        dtype = param.dtype
        fits = isinstance(value, bool | int) or (dtype.is_float and isinstance(value, float))
        if not fits:
            raise TileTypeError(
                f"argument {param.name} of {self.name} is a number of type {dtype}, "
                f"got {_kind(value)}",
                code="TL1612", notes=self.notes,
                hint=f"pass a Python {'float' if dtype.is_float else 'int'}",
            )  # fmt: skip
        if dtype.is_int:
            check_range(self.name, param.name, int(value), dtype)
        return float(value) if dtype.is_float else value

    def _tensor(self, param: TensorParam, value: Any) -> TensorFacts:
        if not is_tensor(value):
            raise TileTypeError(
                f"argument {param.name} of {self.name} is a tensor, got {_kind(value)}",
                code="TL1612", notes=self.notes, hint=f"pass {describe(param)}",
            )  # fmt: skip
        if not is_dense(value):
            raise self._no_elements(param, "a sparse tensor")
        facts, expected = facts_of(value), stored_dtype(param.buffer)
        if not same_dtype(param.buffer, facts.dtype):
            raise TileTypeError(
                f"argument {param.name} of {self.name} has dtype {facts.dtype}, "
                f"expected {_expected_text(expected)}",
                code="TL1613", notes=self.notes,
                hint=f"convert it: {param.name}.to({torch_name(expected)}), or declare the "
                f"parameter as {facts.dtype}",
            )  # fmt: skip
        if len(facts.shape) != param.buffer.rank:
            raise TileValueError(
                f"argument {param.name} of {self.name} has {len(facts.shape)} axes "
                f"{facts.shape}, expected {param.buffer.rank}: {shape_text(param.buffer.shape)}",
                code="TL1614", notes=self.notes, hint=f"reshape it to {describe(param)}",
            )  # fmt: skip
        return facts

    def _no_elements(self, param: Param, what: str) -> TileTypeError:
        return TileTypeError(
            f"argument {param.name} of {self.name} is {what}, without an array of elements",
            code="TL1612", notes=self.notes, hint=f"pass a dense tensor: {describe(param)}",
        )  # fmt: skip

    def _device(self, facts: Sequence[TensorFacts | None]) -> str | None:
        first: tuple[str, str] | None = None
        for param, fact in zip(self.params, facts, strict=True):
            if fact is None:
                continue
            if first is None:
                first = (param.name, fact.device)
            elif fact.device != first[1]:
                raise TileValueError(
                    f"the arguments of {self.name} lie on different devices: {first[0]} on "
                    f"{first[1]}, {param.name} on {fact.device}",
                    code="TL1618", notes=self.notes,
                    hint=f'move all to one: {param.name}.to("{first[1]}")',
                )  # fmt: skip
        return first[1] if first else None

    def _check_layout(self, position: int, fact: TensorFacts, numbers: Sequence[Any]) -> None:
        param = self.params[position]
        assert isinstance(param, TensorParam)
        expected = self.shape_of(position, numbers)
        if fact.shape != expected:
            raise TileValueError(
                f"argument {param.name} of {self.name} has shape {fact.shape}, "
                f"expected {expected}",
                code="TL1615", notes=self.notes, hint=self._shape_hint(param, numbers),
            )  # fmt: skip
        strides = self.strides_of(position, numbers)
        if not _same_strides(fact, strides):
            raise self._wrong_strides(param, fact, strides)

    def _shape_hint(self, param: TensorParam, numbers: Sequence[Any]) -> str:
        pairs = zip(self.sizes, numbers, strict=False)
        known = ", ".join(f"{v.name} = {n}" for v, n in pairs)
        hint = f"{param.name} is declared as {describe(param)}"
        return f"{hint}, and this call has {known}" if known else hint + "; pass that shape"

    def _wrong_strides(
        self, param: TensorParam, fact: TensorFacts, expected: tuple[int, ...]
    ) -> TileValueError:
        contiguous = param.buffer.strides is None
        hint = (
            f"pass {param.name}.contiguous(), or declare it with T.StridedTensor"
            if contiguous
            else f"{param.name} is declared with the strides {shape_text(param.buffer.strides)}"
        )
        word = "contiguous strides" if contiguous else "strides"
        return TileValueError(
            f"argument {param.name} of {self.name} has strides {fact.strides}, expected {word} "
            f"{expected}",
            code="TL1617", notes=self.notes, hint=hint,
        )  # fmt: skip


def _say_that_gradients_end(kernel: str, param: TensorParam, value: Any) -> None:
    if getattr(value, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        notice(kernel, f"{param.name} requires a gradient, which ends here: what a kernel computes "
               "has no history; call it in a torch.autograd.Function, or pass "
               f"{param.name}.detach()")  # fmt: skip


def misaligned(needs: Sequence[Alignment], facts: dict[str, TensorFacts]) -> str | None:
    """Why an assumption on aligned rows and bases does not hold, or None when all do.

    `facts` are by parameter name."""
    for need in needs:
        buffer, unit = need.buffer, need.bytes
        fact = facts.get(buffer.root.name)
        if fact is None:
            continue
        if fact.pointer % unit:
            return (
                f"argument {buffer.root.name} starts at {fact.pointer:#x}, which is "
                f"{fact.pointer % unit} bytes past a multiple of {unit}, expected 0"
            )
        if need.short and max(fact.shape, default=0) > LONGEST_AXIS:
            return (
                f"argument {buffer.root.name} has the shape {fact.shape}, and TMA's coordinates "
                f"have 32 bits"
            )
        inner = _innermost(buffer)
        for axis, (extent, stride) in enumerate(zip(fact.shape, fact.strides, strict=True)):
            step = stride * buffer.dtype.bytes
            if need.rows and axis != inner and extent > 1 and step % unit:
                return (
                    f"rows of argument {buffer.root.name} lie {step} bytes apart, expected a "
                    f"multiple of {unit}"
                )
        length = fact.shape[inner] * buffer.dtype.bytes if fact.shape else 0
        # A wide access takes elements that exist together: a dynamic row must be whole runs.
        if need.rows and buffer.rank and const_int(buffer.shape[inner]) is None and length % unit:
            return (
                f"rows of argument {buffer.root.name} are {length} bytes long, expected a multiple "
                f"of {unit}"
            )
    return None


def _innermost(buffer: Buffer) -> int:
    """The axis along which rows lie: the one declared with stride 1, else the last."""
    for axis, stride in enumerate(buffer.strides or ()):
        if const_int(stride) == 1:
            return axis
    return buffer.rank - 1


def check_range(kernel: str, name: str, value: int, dtype: DType) -> None:
    """TileValueError (TL1620) when an integer does not fit its type."""
    low, high = integer_range(dtype)
    if not low <= value <= high:
        raise TileValueError(
            f"argument {name} of {kernel} is {value}, expected {low} to {high} ({dtype})",
            code="TL1620",
            hint=f'declare {name} with a wider type, such as T.dynamic("{name}", "int64")',
        )


def _expected_text(dtype: DType) -> str:
    if dtype.per_byte == 1:
        return dtype.name
    return f"uint8 or int8 with {dtype.per_byte} elements of {dtype} in each byte"


def describe(param: Param) -> str:
    """A parameter as a reader knows it: "A: float16(M, 64)"."""
    if isinstance(param, ScalarParam):
        return f"{param.name}: {param.dtype}"
    buffer = param.buffer
    stored = stored_dtype(buffer)
    if stored.per_byte > 1:
        shapes = shape_text(buffer.root.shape), shape_text(buffer.shape)
        return f"{param.name}: {stored}{shapes[0]}, packed as bytes {shapes[1]}"
    return f"{param.name}: {param.buffer.dtype}{shape_text(param.buffer.shape)}"


def shape_text(shape: Sequence[Expr | int] | None) -> str:
    """A shape with the names of its dynamic sizes."""
    parts = [_extent_text(s) for s in shape or ()]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _extent_text(size: Expr | int) -> str:
    known = const_int(size)
    return str(known) if known is not None else SizeSolver.text(size)


def _same_strides(fact: TensorFacts, expected: Sequence[int]) -> bool:
    """Equal where it matters: an axis of one element, or an empty tensor, is never stepped."""
    if 0 in fact.shape:
        return True
    triples = zip(fact.shape, fact.strides, expected, strict=True)
    return all(extent == 1 or got == want for extent, got, want in triples)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _positions(
    name: str, outputs: Sequence[int], params: Sequence[Param], loc: Loc | None
) -> tuple[int, ...]:
    """Indices of outputs, negative ones resolved, in the order given."""
    found: list[int] = []
    for index in outputs:
        position = index + len(params) if index < 0 else index
        if not 0 <= position < len(params):
            raise TileValueError(
                f"out_idx {index} names no parameter of {name}, which has {len(params)}",
                code="TL1621", loc=loc,
                hint=f"use 0 to {len(params) - 1}, or negative from the end",
            )  # fmt: skip
        if isinstance(params[position], ScalarParam):
            raise TileValueError(
                f"out_idx {index} of {name} is {params[position].name}, a number: only tensors "
                "can be outputs",
                code="TL1621", loc=loc, hint="name a tensor parameter",
            )  # fmt: skip
        if position in found:
            raise TileValueError(
                f"out_idx of {name} names parameter {params[position].name} twice",
                code="TL1621", loc=loc, hint="name each output once",
            )  # fmt: skip
        found.append(position)
    return tuple(found)
