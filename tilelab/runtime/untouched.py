"""Tensors that no kernel touches: a call may pass None for them, as for a bias that is left out.

Hides that something of the right shape then stands in for the tensor, and which sizes only such a
tensor would tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileTypeError
from tilelab.ir import Buffer, Expr, Function, Node, TensorParam, Var, walk
from tilelab.runtime.tensors import allocator, facts_of

if TYPE_CHECKING:
    from tilelab.runtime.arguments import Binding, Signature


@dataclass(frozen=True)
class Untouched:
    """`positions` of the parameters that no kernel reads or writes, and the variables (by id) that
    some kernel uses."""

    positions: frozenset[int] = frozenset()
    used: frozenset[int] = frozenset()

    @classmethod
    def of(cls, function: Function) -> Untouched:
        """What the kernels of a function leave alone."""
        touched: set[int] = set()
        used: set[int] = set()
        for kernel in function.kernels:
            for node in walk(kernel):
                _note(node, touched, used)
        positions = frozenset(
            i
            for i, p in enumerate(function.params)
            if isinstance(p, TensorParam) and id(p.buffer) not in touched
        )
        return cls(positions, frozenset(used))

    def completed(self, signature: Signature, binding: Binding) -> Binding:
        """The binding of a call with a tensor, of undefined elements, for each that it leaves out.

        TileTypeError (TL1612) where only tensors that are not passed tell a size in use.
        """
        missing = [i for i in signature.inputs if binding.values[i] is None]
        if not missing:
            return binding
        self._check(signature, binding, missing)
        numbers = signature.numbers(binding)
        values, facts = list(binding.values), list(binding.facts)
        like = next((v for v, f in zip(values, facts, strict=True) if f is not None), None)
        allocate = allocator(like, binding.device or "cpu")
        for i in missing:
            param = signature.params[i]
            assert isinstance(param, TensorParam)
            values[i] = allocate(signature.shape_of(i, numbers), param.buffer)
            facts[i] = facts_of(values[i])
        return replace(binding, values=tuple(values), facts=tuple(facts))

    def _check(self, signature: Signature, binding: Binding, missing: Sequence[int]) -> None:
        params = signature.params
        given = [p for p, fact in zip(params, binding.facts, strict=True) if fact is not None]
        told = {id(v) for p in given for v in _variables(p)}
        asked = {id(v) for i in missing for v in _variables(params[i])}
        needed = (v for v in signature.sizes if id(v) in self.used & asked - told)
        unknown = next((v.name for v in needed), None)
        if unknown is None and given:
            return
        what = "no tensor is passed" if unknown is None else f"nothing tells the size {unknown}"
        raise TileTypeError(
            f"argument {params[missing[0]].name} of {signature.name} is None, and then {what}",
            code="TL1612", notes=signature.notes,
            hint="pass one of the tensors that have it in their shape",
        )  # fmt: skip


def _note(node: Node, touched: set[int], used: set[int]) -> None:
    if isinstance(node, Buffer):
        touched.add(id(node.storage))
    if isinstance(node, Var):
        used.add(id(node))


def _variables(param: Any) -> list[Var]:
    if not isinstance(param, TensorParam):
        return []
    dims = (*param.buffer.shape, *(param.buffer.strides or ()))
    return [v for d in dims if isinstance(d, Expr) for v in walk(d) if isinstance(v, Var)]
