"""Whether a program orders accesses to shared memory itself, or leaves all of that to the compiler.

Where it does, two accesses without an order may be its own fault, whoever made their instructions.
"""

from __future__ import annotations

from tilelab.ir import Function, If, Node, walk
from tilelab.passes.base import PassContext
from tilelab.thread.intrinsics.barrier import SYNCTHREADS
from tilelab.thread.nodes import Invoke
from tilelab.tile.op import TileOp
from tilelab.tile.ops.async_ops import Transfer
from tilelab.tile.ops.gemm import Gemm


def by_hand(function: Function, ctx: PassContext) -> bool:
    """Whether a traced function waits for copies or products itself, has threads wait for some
    others only, deals tile operations out to threads, or goes without the compiler's barriers."""
    if ctx.option("tl.disable_thread_storage_sync", False):
        return True
    return any(_orders(n) for n in walk(function))


def _orders(n: Node) -> bool:
    if isinstance(n, Invoke):
        meets = n.intrinsic.waits and n.intrinsic is not SYNCTHREADS
        return (
            meets or n.intrinsic.is_async or any(p.role == "barrier" for p in n.intrinsic.operands)
        )
    if isinstance(n, If):
        return any(isinstance(part, TileOp) for part in walk(n))
    return isinstance(n, Transfer) or (isinstance(n, Gemm) and not n.waits)
