"""What both IR dialects share: nodes, expressions, buffers, statements, printer, verifier."""

from tilelab.ir.buffer import Buffer, Pool, ReducerBuffer, Region, ScalarBuffer, Scope, WorkCounter
from tilelab.ir.build import as_bool, as_expr, binary, call, cast, ceildiv, is_scalar, select, unary
from tilelab.ir.core import Node, children, map_children, walk
from tilelab.ir.expr import Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var, const_int
from tilelab.ir.shown import install as _install
from tilelab.ir.stmt import (
    RESIDENT,
    Alloc,
    Break,
    Continue,
    For,
    Function,
    If,
    Kernel,
    Let,
    LoopKind,
    ParallelFor,
    ScalarParam,
    Seq,
    Stmt,
    Store,
    TensorParam,
    While,
)

_install()

__all__ = [
    "RESIDENT", "Alloc", "Binary", "Break", "Buffer", "Call", "Cast", "Const", "Continue", "Expr",
    "For", "Function", "If", "Kernel", "Let", "Load", "LoopKind", "Node", "ParallelFor",
    "Pool", "ReducerBuffer", "Region", "ScalarBuffer", "ScalarParam", "Scope", "Select", "Seq",
    "Stmt", "Store", "TensorParam", "Unary", "Var", "While", "WorkCounter", "as_bool", "as_expr",
    "binary", "call", "cast", "ceildiv", "children", "const_int", "is_scalar", "map_children",
    "select", "unary", "walk",
]  # fmt: skip
