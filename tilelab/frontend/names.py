"""Static facts about names: which a piece of code assigns, and which it reads first.

Nested functions, lambdas and comprehensions keep their own names and are not looked into for
assignments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned(nodes: Iterable[ast.AST]) -> tuple[str, ...]:
    """Names that the statements bind, in order of first appearance."""
    found: dict[str, None] = {}
    for node in nodes:
        for name, stored in _events(node):
            if stored:
                found.setdefault(name)
    return tuple(found)


def read_first(nodes: Iterable[ast.AST]) -> tuple[str, ...]:
    """Names that the statements read before binding them, and bind later: in a loop body, such a
    value would have to travel from one iteration to the next."""
    bound: set[str] = set()
    reads: dict[str, None] = {}
    carried: dict[str, None] = {}
    for node in nodes:
        for name, stored in _events(node):
            if not stored and name not in bound:
                reads.setdefault(name)
            if stored:
                bound.add(name)
                if name in reads:
                    carried.setdefault(name)
    return tuple(carried)


def target_names(target: ast.expr) -> tuple[str, ...]:
    """Names of an assignment target, in order ("" for a target that is no name)."""
    if isinstance(target, ast.Name):
        return (target.id,)
    if isinstance(target, ast.Tuple | ast.List):
        return tuple(e.id if isinstance(e, ast.Name) else "" for e in target.elts)
    return ()


def _events(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """(name, is it bound here) in order of evaluation."""
    if isinstance(node, _SCOPES):
        name = getattr(node, "name", None)
        if name is not None:
            yield name, True
        return
    special = _ORDER.get(type(node))
    if special is not None:
        for child in special(node):
            yield from _events(child)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, True
        return
    if isinstance(node, ast.Name):
        yield node.id, not isinstance(node.ctx, ast.Load)
        return
    if isinstance(node, _COMPREHENSIONS):
        targets = [n for g in node.generators for n in ast.walk(g.target)]
        inner = {n.id for n in targets if isinstance(n, ast.Name)}
        for child in ast.iter_child_nodes(node):
            yield from ((n, s) for n, s in _events(child) if n not in inner)
        return
    for child in ast.iter_child_nodes(node):
        yield from _events(child)


def _load(target: ast.expr) -> list[ast.AST]:
    """An augmented assignment reads its target first."""
    if isinstance(target, ast.Name):
        return [ast.Name(target.id, ast.Load())]
    return [target]


_ORDER: dict[type[ast.AST], Callable[[Any], list[ast.AST]]] = {
    ast.Assign: lambda n: [n.value, *n.targets],
    ast.AnnAssign: lambda n: [n.value, n.target] if n.value is not None else [],
    ast.AugAssign: lambda n: [*_load(n.target), n.value],
    ast.NamedExpr: lambda n: [n.value, n.target],
    ast.For: lambda n: [n.iter, n.target, *n.body, *n.orelse],
    ast.comprehension: lambda n: [n.iter, *n.ifs],
}
