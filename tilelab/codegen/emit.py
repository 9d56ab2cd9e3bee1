"""emit(): a lowered program as one CUDA C++ file."""

from __future__ import annotations

from dataclasses import replace

from tilelab.codegen.context import Context
from tilelab.codegen.kernel import kernel
from tilelab.codegen.names import Names, identifier
from tilelab.codegen.preamble import Preamble
from tilelab.codegen.source import CudaSource, KernelSpan, LineLink, Writer
from tilelab.target import Feature, Target
from tilelab.thread.nodes import Program


def emit(program: Program, target: Target | None = None) -> CudaSource:
    """CUDA C++ of every kernel of `program`, with the map from its lines to nodes and Python.

    The text needs no header but CUDA's number formats. A kernel whose name C++ does not allow
    gets another, so take the names from the result. Without a target the chip has
    every conversion.
    """
    preamble, out, global_names = Preamble(), Writer(), Names()
    decodes = target is not None and not target.has(Feature.FP8_CVT)
    spans: list[KernelSpan] = []
    for k in program.kernels:
        wish = identifier(k.name)
        name = global_names.reserve(f"{wish}_kernel" if wish == "main" else wish)
        if spans:
            out.line("")
        first = len(out.lines) + 1
        kernel(Context(k, Names({name}), preamble, out, decodes_fp8=decodes), name)
        spans.append(KernelSpan(name, first, len(out.lines)))
    own = dict.fromkeys(text for k in program.kernels for text in k.sources)
    for text in own:
        preamble.use_imported(text)
    return _joined(preamble, out, spans, [line for text in own for line in [*text.split("\n"), ""]])


def _joined(preamble: Preamble, out: Writer, spans: list[KernelSpan], own: list[str]) -> CudaSource:
    head = [*preamble.lines("\n".join(out.lines)), *own]
    shift = len(head)
    links = tuple(replace(k, line=k.line + shift) for k in out.links)
    kernels = tuple(KernelSpan(s.name, s.first + shift, s.last + shift) for s in spans)
    return CudaSource("\n".join([*head, *out.lines]) + "\n", _unique(links), kernels)


def _unique(links: tuple[LineLink, ...]) -> tuple[LineLink, ...]:
    seen: dict[tuple[int, int], LineLink] = {}
    for link in links:
        seen.setdefault((link.line, id(link.node)), link)
    return tuple(seen.values())
