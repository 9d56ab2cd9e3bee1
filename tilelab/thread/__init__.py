"""Thread IR: statements of one CUDA thread, instruction records, scalar functions."""

from tilelab.thread import printing, rules
from tilelab.thread.intrinsic import Intrinsic, Machine, Param
from tilelab.thread.nodes import (
    Comment,
    Invoke,
    Operand,
    Program,
    Ref,
    Role,
    SharedDescriptor,
    SharedSlot,
    TensorMap,
    ThreadKernel,
    VectorCopy,
    WarpRoles,
)

_TABLES = (printing, rules)  # imported for their entries: how thread IR prints, what it obeys

__all__ = [
    "Comment", "Intrinsic", "Invoke", "Machine", "Operand", "Param", "Program", "Ref", "Role",
    "SharedDescriptor", "SharedSlot", "TensorMap", "ThreadKernel", "VectorCopy", "WarpRoles",
]  # fmt: skip
