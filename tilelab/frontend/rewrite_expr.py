"""Expressions of traced code, rewritten so that the tracer sees what Python would decide.

`a and b`, `a if c else b`, `1 < x < 5`, `x in c`, `not a`, walrus and `range` become calls on the
tracer (`__tl`); everything else stays Python. Values that decide an evaluation order travel on
the tracer's stack, so no expression is evaluated twice.
"""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from tilelab.errors import Loc, TileNotSupported

TRACER = "__tl"
_LOADED_BUILTINS = frozenset({"range", "min", "max", "abs", "round", "sum", "print"})
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
}  # fmt: skip
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Await: ("await", "a kernel is traced at once and cannot wait"),
    ast.Yield: ("yield", "return values from a @T.macro instead"),
    ast.YieldFrom: ("yield", "return values from a @T.macro instead"),
    ast.Global: ("global", "pass the value as a parameter"),
    ast.Nonlocal: ("nonlocal", "use T.alloc_var and a T.Ref parameter"),
    ast.ClassDef: ("a class definition", "define the class outside"),
    ast.AsyncFor: ("async for", "use a plain for"),
    ast.AsyncWith: ("async with", "use a plain with"),
    ast.AsyncFunctionDef: ("async def", "use a plain def"),
}


def place(node: Any, at: ast.AST) -> Any:
    """`node` with the location of `at` on every part that has none."""
    for part in ast.walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, at)
    return node


def tracer_call(method: str, at: ast.AST, *args: ast.expr) -> ast.Call:
    """`__tl.method(*args)` at the place of `at`."""
    func = ast.Attribute(ast.Name(TRACER, ast.Load()), method, ast.Load())
    return place(ast.Call(func, list(args), []), at)


def constant(value: object) -> ast.Constant:
    """A literal (also a tuple of strings)."""
    return ast.Constant(value)  # type: ignore[arg-type]


def thunk(body: ast.expr) -> ast.Lambda:
    """`lambda: body`."""
    empty = ast.arguments(
        posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
    )
    return ast.copy_location(ast.Lambda(empty, body), body)


class ExprRewriter(ast.NodeTransformer):
    """Rewrites expressions in place; nested functions are left alone (they are plain Python)."""

    def __init__(self, file: str, function: str) -> None:
        self.file = file
        self.function = function

    def refuse(self, node: ast.AST, what: str, hint: str) -> NoReturn:
        """A construct that traced code cannot hold."""
        at: Any = node
        stop = (at.end_lineno or 0, at.end_col_offset or 0)
        loc = Loc(self.file, at.lineno, at.col_offset, *stop, self.function)
        raise TileNotSupported(
            f"{what} is not supported in traced code", code="TL1450", loc=loc, hint=hint
        )

    def visit(self, node: ast.AST) -> Any:
        """As NodeTransformer has it, after refusing what has no meaning in a kernel."""
        refused = _REFUSED.get(type(node))
        if refused is not None:
            self.refuse(node, *refused)
        return super().visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """`a and b` -> `__tl.both(b) if __tl.need_and(a) else __tl.pop()`; `or` alike."""
        names = ("need_and", "both") if isinstance(node.op, ast.And) else ("need_or", "either")
        values: list[ast.expr] = [self.visit(v) for v in node.values]
        result = values[0]
        for value in values[1:]:
            result = place(
                ast.IfExp(
                    tracer_call(names[0], node, result),
                    tracer_call(names[1], node, value),
                    tracer_call("pop", node),
                ),
                node,
            )
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`not a` -> `__tl.not_(a)`."""
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return tracer_call("not_", node, operand)
        node.operand = operand
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Chains and membership -> `__tl.compare(ops, a, b, ...)`; a single comparison stays."""
        self.generic_visit(node)
        ops = tuple(_COMPARE[type(op)] for op in node.ops)
        if len(ops) == 1 and ops[0] not in ("in", "not in"):
            return node
        return tracer_call("compare", node, constant(ops), node.left, *node.comparators)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """`a if c else b` -> `__tl.choose(c, lambda: a, lambda: b)`."""
        test, a, b = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        if any(isinstance(n, ast.NamedExpr) for side in (a, b) for n in ast.walk(side)):
            self.refuse(node, "a walrus in a conditional expression", "assign it before")
        return tracer_call("choose", node, test, thunk(a), thunk(b))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """`(y := e)` binds once: `(y := __tl.at("y")(e))`."""
        at, value = node.value, self.visit(node.value)
        bind = tracer_call("at", at, constant(node.target.id))
        node.value = place(ast.Call(bind, [value], []), at)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`range(n)`, `max(a, b)` and their kin may meet traced values: ask the tracer."""
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _LOADED_BUILTINS:
            node.func = tracer_call("builtin", node.func, node.func)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.body = self.visit(node.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node
