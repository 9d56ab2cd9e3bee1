"""Tensors that no kernel touches: a call may pass None for them, as for a bias that is left out.

Hides that something of the right shape then stands in for the tensor, and which sizes only such a
tensor would tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tilelab.errors import TileTypeError
from tilelab.ir import Buffer, Expr, Function, Node, Pool, TensorParam, Var, walk
from tilelab.runtime.tensors import allocator, facts_of

if TYPE_CHECKING:
    from tilelab.runtime.arguments import Binding, Signature


@dataclass(frozen=True)
class Untouched:
    """`positions` of the parameters that no kernel reads or writes, and the variables (by id) that
    some kernel uses. `tables` are the positions of those whose elements are followed as
    addresses."""

    positions: frozenset[int] = frozenset()
    used: frozenset[int] = frozenset()
    tables: frozenset[int] = frozenset()

    @classmethod
    def of(cls, function: Function) -> Untouched:
        """What the kernels of a function leave alone."""
        touched: set[int] = set()
        used: set[int] = set()
        nodes = [n for kernel in function.kernels for n in walk(kernel)]
        for node in nodes:
            _note(node, touched, used)
        followed = {id(n.table) for n in nodes if isinstance(n, Pool)}
        params = [p.buffer if isinstance(p, TensorParam) else None for p in function.params]
        tensors = [(i, id(b)) for i, b in enumerate(params) if b is not None]
        return cls(
            frozenset(i for i, b in tensors if b not in touched | followed),
            frozenset(used),
            frozenset(i for i, b in tensors if b in followed),
        )

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
        told = {id(v) for p in given for v in variables_of(p)}
        asked = {id(v) for i in missing for v in variables_of(params[i])}
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


def variables_of(param: Any) -> list[Var]:
    """The sizes in the shape and strides of a tensor parameter; none of another."""
    if not isinstance(param, TensorParam):
        return []
    dims = (*param.buffer.shape, *(param.buffer.strides or ()))
    return [v for d in dims if isinstance(d, Expr) for v in walk(d) if isinstance(v, Var)]
