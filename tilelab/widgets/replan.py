"""The same kernel planned with another number of stages, without touching the reader's kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilelab.ir import Node
from tilelab.ir.rewrite import rewrite
from tilelab.ir.stmt import For, LoopKind
from tilelab.kernel import JITKernel
from tilelab.target import Target


def pipelined(kernel: JITKernel) -> bool:
    """Whether the kernel has a loop whose stages can be planned."""
    return bool(kernel.trace.pipelines)


def replanned(kernel: JITKernel, stages: int, target: Target | None = None) -> JITKernel:
    """The kernel's function lowered with `num_stages=stages` in every pipelined loop, and for
    another target if one is given. TileErrors of the compiler (TL1801: it does not fit) go
    through: they are the answer."""

    def staged(node: Node) -> Node | None:
        if not isinstance(node, For) or node.kind is not LoopKind.PIPELINED:
            return None
        body: Any = rewrite(node.body, staged)
        return replace(node, num_stages=stages, body=body)

    return kernel.remade(function=rewrite(kernel.prim_func, staged), target=target)
