"""Statements of a traced function, rewritten to calls on the tracer.

    x = e             x = __tl.at("x")(e)
    A[i] = e          __tl.store(A, i, e)
    for i in it: ...  for i in __tl.loop(..., it, locals): ...; (names,) = __tl.leave(...)
    if c: ... else:   if __tl.branch(..., c, locals): ...
                      if __tl.otherwise(n): (names,) = __tl.restored(...); ...
                      (names,) = __tl.leave(...)

A region (if, loop, with) has a number; the tracer compares the names that it assigns before and
after, so a value cannot leak out of the place where it is valid.
"""

from __future__ import annotations

import ast
from typing import Any

from tilelab.frontend.names import assigned, read_first, target_names
from tilelab.frontend.rewrite_expr import ExprRewriter, constant, place, thunk, tracer_call

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.MatMult: "@",
}  # fmt: skip


def _locals(at: ast.AST) -> ast.Call:
    return tracer_call("locals", at)


class StmtRewriter(ExprRewriter):
    """Rewrites the body of one function. `annotated` names the parameters whose bare annotation
    statements declare tensors (eager functions)."""

    def __init__(self, file: str, function: str, annotated: frozenset[str]) -> None:
        super().__init__(file, function)
        self.annotated = annotated
        self._numbers = 0

    def body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """A list of statements, rewritten."""
        result: list[ast.stmt] = []
        for statement in statements:
            new: list[ast.stmt] | ast.stmt = self.visit(statement)
            result.extend(new if isinstance(new, list) else [new])
        return result or [ast.Pass(lineno=1, col_offset=0)]

    def _number(self) -> ast.Constant:
        self._numbers += 1
        return constant(self._numbers)

    def _rebind(
        self, method: str, number: ast.Constant, names: tuple[str, ...], at: Any
    ) -> ast.stmt:
        """`(a, b) = __tl.method(number, locals())`."""
        call = tracer_call(method, at, number, _locals(at))
        if not names:
            return place(ast.Expr(call), at)
        targets = [ast.Name(name, ast.Store()) for name in names]
        return place(ast.Assign([ast.Tuple(list(targets), ast.Store())], call), at)

    # ---- control flow -----------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        names = assigned([*node.body, *node.orelse])
        number = self._number()
        test = tracer_call(
            "branch", node.test, number, constant(names), self.visit(node.test), _locals(node.test)
        )
        result: list[ast.stmt] = [ast.copy_location(ast.If(test, self.body(node.body), []), node)]
        if node.orelse:
            orelse = [self._rebind("restored", number, names, node.test), *self.body(node.orelse)]
            otherwise = tracer_call("otherwise", node.test, number)
            result.append(ast.copy_location(ast.If(otherwise, orelse, []), node))
        return [*result, self._rebind("leave", number, names, node.test)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        if node.orelse:
            self.refuse(node.orelse[0], "for..else", "test the condition after the loop instead")
        self._check_target(node.target)
        names = assigned([node.target, *node.body])
        carried = read_first([node.target, *node.body])
        number = self._number()
        loop = tracer_call(
            "loop", node.iter, number, constant(names), constant(carried),
            constant(target_names(node.target)), self.visit(node.iter), _locals(node.iter),
        )  # fmt: skip
        new = ast.copy_location(ast.For(node.target, loop, self.body(node.body), []), node)
        return [new, self._rebind("leave", number, names, node.iter)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        if node.orelse:
            self.refuse(node.orelse[0], "while..else", "test the condition after the loop instead")
        names = assigned([node.test, *node.body])
        carried = read_first([node.test, *node.body])
        number = self._number()
        literal = isinstance(node.test, ast.Constant)
        again = tracer_call("again", node.test, number)
        test = tracer_call(
            "test", node.test, number, constant(names), constant(carried), constant(literal),
            self.visit(node.test), _locals(node.test),
        )  # fmt: skip
        both = place(ast.BoolOp(ast.And(), [again, test]), node.test)
        new = ast.copy_location(ast.While(both, self.body(node.body), []), node)
        return [new, self._rebind("leave", number, names, node.test)]

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return place(ast.If(tracer_call("break_", node), [node], []), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return place(ast.If(tracer_call("continue_", node), [node], []), node)

    def visit_With(self, node: ast.With) -> list[ast.stmt]:
        targets = [i.optional_vars for i in node.items if i.optional_vars is not None]
        names = assigned([*targets, *node.body])
        number = self._number()
        for item in node.items:
            target = item.optional_vars
            hints = target_names(target) if target is not None else ()
            said = target.id if isinstance(target, ast.Name) else hints  # a tuple is unpacked
            at = item.context_expr
            item.context_expr = tracer_call(
                "managed", at, number, constant(names), constant(said), self.visit(at), _locals(at)
            )
        node.body = self.body(node.body)
        return [node, self._rebind("leave", number, names, node.items[0].context_expr)]

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = self.visit(node.value) if node.value is not None else constant(None)
        node.value = tracer_call("ret", node, place(value, node))
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        args = [self.visit(node.msg)] if node.msg is not None else []
        fails = tracer_call("fails", node.test, self.visit(node.test), *map(thunk, args))
        error = ast.Call(ast.Name("AssertionError", ast.Load()), args, [])
        return place(ast.If(fails, [ast.Raise(error, None)], []), node)

    # ---- assignments ------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        for target in node.targets:
            self._check_target(target)
        first = node.targets[0]
        if len(node.targets) == 1 and not isinstance(first, ast.Tuple | ast.List):
            return [self._assign(first, self._hinted(first, node.value), node)]
        temporary = self._temporary()
        value = self._hinted(first, node.value)
        result: list[ast.stmt] = [self._set(temporary, value, node)]
        for target in node.targets:
            result.extend(self._unpack(target, ast.Name(temporary, ast.Load()), node))
        return result

    def _hinted(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """The value, told the name that it will get: element by element where both are tuples."""
        if _pairs_up(target, value):
            pairs = zip(target.elts, value.elts, strict=True)  # type: ignore[attr-defined]
            value.elts = [self._hinted(t, v) for t, v in pairs]  # type: ignore[attr-defined]
            return value
        names = target_names(target)
        if not names:
            return self.visit(value)
        hint = constant(names[0] if isinstance(target, ast.Name) else names)
        return place(ast.Call(tracer_call("named", value, hint), [self.visit(value)], []), value)

    def _temporary(self) -> str:
        self._numbers += 1
        return f"__tl_{self._numbers}"

    def _set(self, name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
        return place(ast.Assign([ast.Name(name, ast.Store())], value), at)

    def _assign(self, target: ast.expr, value: ast.expr, at: ast.stmt) -> ast.stmt:
        """One target that is a name, a subscript or an attribute."""
        if isinstance(target, ast.Name):
            bound = tracer_call("bind", at, constant(target.id), value)
            return place(ast.Assign([target], bound), at)
        assert isinstance(target, ast.Subscript)
        buffer, index = self.visit(target.value), self.visit(target.slice)
        return place(ast.Expr(tracer_call("store", at, buffer, index, value)), at)

    def _unpack(self, target: ast.expr, value: ast.expr, at: ast.stmt) -> list[ast.stmt]:
        """Two-phase: values are taken first, then every target is bound."""
        if not isinstance(target, ast.Tuple | ast.List):
            return [self._assign(target, value, at)]
        temporary = self._temporary()
        taken = tracer_call("unpack", at, constant(target_names(target)), value)
        result = [self._set(temporary, taken, at)]
        for position, element in enumerate(target.elts):
            item = ast.Subscript(ast.Name(temporary, ast.Load()), constant(position), ast.Load())
            result.extend(self._unpack(element, item, at))
        return result

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self._check_target(node.target)
        op, value = constant(_BINARY[type(node.op)]), self.visit(node.value)
        if isinstance(node.target, ast.Name):
            name = node.target.id
            call = tracer_call("aug", node, constant(name), op, ast.Name(name, ast.Load()), value)
            return place(ast.Assign([node.target], call), node)
        assert isinstance(node.target, ast.Subscript)
        buffer, index = self.visit(node.target.value), self.visit(node.target.slice)
        return place(ast.Expr(tracer_call("aug_store", node, op, buffer, index, value)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        if node.value is not None:
            return self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))
        if not isinstance(node.target, ast.Name) or node.target.id not in self.annotated:
            return []
        declared = tracer_call("annotate", node, constant(node.target.id), node.annotation)
        return [place(ast.Assign([node.target], declared), node)]

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if not isinstance(node.value, ast.Constant):
            node.value = tracer_call("stmt", node.value, self.visit(node.value))
        return node

    def _check_target(self, target: ast.expr) -> None:
        for part in ast.walk(target):
            if isinstance(part, ast.Starred):
                self.refuse(part, "a starred assignment target", "index the tuple instead")
        if isinstance(target, ast.Attribute):
            self.refuse(target, "assigning to an attribute", "keep the value in a plain name")


def _pairs_up(target: ast.expr, value: ast.expr) -> bool:
    """Whether both are tuples as written, with one element for each name."""
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
        return False
    starred = any(isinstance(e, ast.Starred) for e in value.elts)
    return len(target.elts) == len(value.elts) and not starred
