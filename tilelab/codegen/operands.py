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
    advance = ""
    if value.advance is not None:  # descriptors count in units of 16 bytes
        units = ctx.resolve(value.advance) // 16
        zero = isinstance(units, Const) and units.value == 0
        advance = "" if zero else expr(units, ctx)
    where = pointer(value.ref.buffer, value.ref.indices, ctx)
    return descriptor_text(where, value.leading, value.stride, value.swizzle, advance)


def _map(param: Param, value: TensorMap, ctx: Context) -> str:
    return ctx.name(value)


OPERANDS: dict[type[Node], Callable[[Param, Any, Context], str]] = {
    Expr: _value, Ref: _ref, SharedDescriptor: _descriptor, TensorMap: _map,
}  # fmt: skip
