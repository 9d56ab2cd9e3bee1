"""Pass explorer: the program before and after every pass, and lines that belong together.

Hides how unchanged lines are found and how machine code is tied to the CUDA lines it came from.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from tilelab.errors import places
from tilelab.ir import Node
from tilelab.ir.printer import INDENT, Line, to_lines
from tilelab.ir.stmt import Stmt
from tilelab.kernel import JITKernel
from tilelab.runtime import nvrtc, sass
from tilelab.views import View, passes_view, source_view
from tilelab.views.passes import note_text
from tilelab.widgets.panel import wish

LINE_INFO = "-lineinfo"


class PassPanel:
    """One pass at a time, beside Python, CUDA and (when asked for) SASS."""

    script: ClassVar[str] = "passes"

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel
        self.trace = kernel.trace
        self._view = passes_view(kernel.trace)
        self._source = source_view(kernel.source, kernel.prim_func.loc)
        self.chosen = next((k for k, s in enumerate(self.trace.steps) if s.changed), 0)
        self.with_sass = False

    def state(self) -> dict[str, Any]:
        """The passes, the chosen one's two texts, and the linked sources."""
        step = self.trace.steps[self.chosen]
        before, after = to_lines(step.before), to_lines(step.after)
        same_before, same_after = unchanged(before, after)
        return {
            "title": f"Passes of {self.kernel.name}",
            "summary": self._view.summary(),
            "passes": [self._row(k) for k in range(len(self.trace.steps))],
            "chosen": self.chosen,
            "before": _listed(before, same_before),
            "after": _listed(after, same_after),
            "python": [[line.number, line.text] for line in self._source.python],
            "cuda": [
                [line.number, line.text, self._source.python_of(line.number)]
                for line in self._source.cuda
            ],
            "sass": self._sass if self.with_sass else [],
        }

    def answer(self, request: Mapping[str, Any]) -> None:
        """{"pass": number} or {"sass": true|false}"""
        if "sass" in request:
            wanted = bool(request["sass"])
            if wanted:
                _ = self._sass  # an error of the tools is the answer
            self.with_sass = wanted
        else:
            self.chosen = wish(request, "pass", tuple(range(len(self.trace.steps))))

    def twins(self) -> tuple[View, ...]:
        """The list of passes, then the two sources."""
        return (self._view, self._source)

    def _row(self, number: int) -> dict[str, Any]:
        row = self._view.passes[number]
        return {
            "name": row.name,
            "caption": row.caption,
            "changed": row.changed,
            "notes": [note_text(note) for note in row.notes],
        }

    @cached_property
    def _sass(self) -> list[list[Any]]:
        """[address, instruction, Python lines] of the kernel's machine code, built once more
        with line information."""
        built = nvrtc.compile_cubin(
            self.kernel.source.text, self.kernel.target.arch, options=(LINE_INFO,)
        )
        found: list[list[Any]] = []
        for cuda, instruction in sass.with_lines(built.image):
            lines = self._source.python_of(cuda) if cuda is not None else ()
            text = f"{instruction.predicate} {instruction.opcode} {instruction.operands}".strip()
            found.append([f"{instruction.address:04x}", text, lines])
        return found


def unchanged(before: list[Line], after: list[Line]) -> tuple[set[int], set[int]]:
    """Numbers of the lines that a pass left as they were, in the text before and after."""
    left = [(line.depth, line.text) for line in before]
    right = [(line.depth, line.text) for line in after]
    blocks = difflib.SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    same_left = {b.a + k for b in blocks for k in range(b.size)}
    return same_left, {b.b + k for b in blocks for k in range(b.size)}


def _listed(lines: list[Line], same: set[int]) -> list[list[Any]]:
    """[text, unchanged, Python lines] of each line."""
    return [
        [INDENT * line.depth + line.text, number in same, _places(line.node)]
        for number, line in enumerate(lines)
    ]


def _places(node: Node) -> list[int]:
    """Python lines a node comes from, the innermost first."""
    place = node.loc if isinstance(node, Stmt) else None
    return [p.line for p in places(place)]
