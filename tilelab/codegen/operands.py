"""Operands of instructions as CUDA text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.codegen.context import Context, internal
from tilelab.codegen.expr import element, expr, pointer
from tilelab.ir import Const, Expr, Node
from tilelab.thread.intrinsic import Param
from tilelab.thread.intrinsics import DESCRIPTOR_HELPERS, descriptor_text
from tilelab.thread.nodes import Ref, SharedDescriptor, TensorMap


def operand(param: Param, value: Any, ctx: Context) -> str:
    """The text of one operand: a value, an address, an lvalue (barriers), a map's name."""
    rule = next((OPERANDS[kind] for kind in type(value).__mro__ if kind in OPERANDS), None)
    if rule is None:
        raise internal(f"codegen has no rule for the operand {type(value).__name__}")
    return rule(param, value, ctx)


def _value(param: Param, value: Expr, ctx: Context) -> str:
    return expr(value, ctx)


def _ref(param: Param, value: Ref, ctx: Context) -> str:
    place = element if param.role == "barrier" else pointer
    return place(value.buffer, value.indices, ctx)


def _descriptor(param: Param, value: SharedDescriptor, ctx: Context) -> str:
    for name in DESCRIPTOR_HELPERS:
        ctx.preamble.use_helper(name)
    advance, slot = (_units(added, ctx) for added in (value.advance, value.slot))
    where = pointer(value.ref.buffer, value.ref.indices, ctx)
    return descriptor_text(where, value.leading, value.stride, value.swizzle, advance, slot)


def _units(added: Expr | None, ctx: Context) -> str:
    """Bytes that are added to a descriptor, in its units of 16; empty for none."""
    if added is None:
        return ""
    units = ctx.resolve(added) // 16
    none = isinstance(units, Const) and units.value == 0
    return "" if none else expr(units, ctx)


def _map(param: Param, value: TensorMap, ctx: Context) -> str:
    return ctx.name(value)


OPERANDS: dict[type[Node], Callable[[Param, Any, Context], str]] = {
    Expr: _value, Ref: _ref, SharedDescriptor: _descriptor, TensorMap: _map,
}  # fmt: skip
