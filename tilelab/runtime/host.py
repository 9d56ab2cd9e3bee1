"""The host's part of a kernel as text: what a call checks, builds and launches.

For reading only; the launcher does the same from the same data.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelab.ir import TensorParam, WorkCounter
from tilelab.runtime.arguments import Signature, describe, shape_text
from tilelab.thread.nodes import Program, TensorMap, ThreadKernel


def host_text(signature: Signature, program: Program) -> str:
    """A call of the kernel, step by step."""
    lines = [f"{signature}:"]
    lines += [f"  check {describe(signature.params[i])}" for i in signature.inputs]
    lines += [f"  size {v.name} from the shapes" for v in signature.sizes]
    if program.aligned:
        names = ", ".join(f"{need.buffer.root.name} ({need.bytes})" for need in program.aligned)
        lines.append(f"  check that rows and start are aligned (bytes): {names}")
    for i in signature.outputs:
        param = signature.params[i]
        assert isinstance(param, TensorParam)
        lines.append(f"  allocate {describe(param)}")
    for buffer in program.workspaces:
        shape = shape_text(buffer.shape)
        lines.append(f"  allocate workspace {buffer.name}: {buffer.dtype}{shape}")
        if isinstance(buffer, WorkCounter):
            lines.append(f"  set {buffer.name} to 0")
    for kernel in program.kernels:
        lines += _launch(kernel)
    names = ", ".join(signature.params[i].name for i in signature.outputs)
    return "\n".join([*lines, f"  return {names}" if names else "  return None"]) + "\n"


def _launch(kernel: ThreadKernel) -> Iterator[str]:
    for spec in kernel.maps:
        yield f"  {spec.name} = {_map_text(spec)}"
    arguments = [m.name for m in kernel.maps]
    arguments += [b.root.name for b in kernel.tensors] + [v.name for v in kernel.scalars]
    grid, block = shape_text(kernel.grid), shape_text(kernel.threads)
    yield (
        f"  launch {kernel.name} grid={grid} block={block} shared={kernel.dynamic_bytes} "
        f"({', '.join(arguments)})"
    )


def _map_text(spec: TensorMap) -> str:
    axes = ", ".join(str(a) for a in spec.axes)
    box = "x".join(str(b) for b in spec.box)
    return (
        f"tensor_map({spec.tensor.root.name}, axes ({axes}) innermost first, box {box}, "
        f"swizzle {spec.swizzle} bytes)"
    )
