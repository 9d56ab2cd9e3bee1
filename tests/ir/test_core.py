"""Walking, mapping and rewriting: sharing what did not change."""

from __future__ import annotations

from hypothesis import given

from tests.ir.trees import Space, Tree, evaluate, spaces, trees
from tilelab.dtypes import FLOAT32
from tilelab.ir import (
    Buffer,
    For,
    If,
    LoopKind,
    Scope,
    Seq,
    Store,
    Var,
    as_expr,
    children,
    map_children,
    walk,
)
from tilelab.ir.printer import to_text
from tilelab.ir.rewrite import rewrite, substitute

M, N = Var("i", lo=0, hi=7), Var("n", lo=0)
A = Buffer("A", (64,), FLOAT32, Scope.GLOBAL)


def loop() -> For:
    store = Store(A, (M * 8 + N,), A[M] + 1.0)
    other = Store(A, (as_expr(0),), as_expr(0.0))
    body = Seq((If(M < N, Seq((store,))), other))
    return For(M, as_expr(0), as_expr(8), as_expr(1), LoopKind.SERIAL, body)


def test_walk_visits_parents_first_in_order() -> None:
    kinds = [type(n).__name__ for n in walk(loop())]
    assert kinds[:6] == ["For", "Var", "Const", "Const", "Const", "Seq"]
    assert kinds.index("If") < kinds.index("Store")


def test_children_are_direct() -> None:
    assert [type(c).__name__ for c in children(loop())] == ["Var", "Const", "Const", "Const", "Seq"]


def test_unchanged_trees_are_the_same_object() -> None:
    tree = loop()
    assert map_children(tree, lambda n: n) is tree
    assert rewrite(tree, lambda n: None) is tree
    assert substitute(tree, {Var("other"): 3}) is tree


def test_what_did_not_change_is_shared() -> None:
    tree = loop()
    new = substitute(tree, {N: 4})
    assert new is not tree and new.body.body[1] is tree.body.body[1]
    assert "i < 4" in to_text(new) and "i * 8 + 4" in to_text(new)


def test_substitution_simplifies() -> None:
    e = (N * 8 + M) // 8
    assert to_text(substitute(e, {N: 2})) == "2"
    assert to_text(substitute(N // 8, {N: M * 8})) == "i"


def test_buffers_are_exchanged_in_loads_and_stores() -> None:
    b = Buffer("B", (64,), FLOAT32, Scope.GLOBAL)
    text = to_text(substitute(loop(), buffers={A: b}))
    assert "A[" not in text and "B[i * 8 + n] = B[i] + 1.0" in text


def test_replacements_are_not_visited_again() -> None:
    assert to_text(substitute(N + 1, {N: N + 1})) == "n + 2"


@given(trees, spaces())
def test_substituting_values_evaluates(tree: Tree, space: Space) -> None:
    variables = space.variables()
    try:
        expected = int(tree.value(space.values))
        e = as_expr(tree.build(variables))
        known = substitute(e, {v: space.values[n] for n, v in variables.items()})
        assert evaluate(known, {}) == expected
    except ZeroDivisionError:
        return
