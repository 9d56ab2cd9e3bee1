"""Python lines beside the CUDA lines that were written for them."""

from __future__ import annotations

import linecache
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from tilelab.codegen.source import CudaSource
from tilelab.errors import Loc, places
from tilelab.views.base import View, register
from tilelab.views.source_svg import draw
from tilelab.views.table import plural, spans


@dataclass(frozen=True)
class Line:
    """A numbered line of text."""

    number: int
    text: str


@dataclass(frozen=True)
class Link:
    """Python line `python` became CUDA line `cuda`."""

    python: int
    cuda: int


@register
@dataclass(frozen=True)
class SourceView(View):
    """The two texts of one program. Links name line numbers of both."""

    kind: ClassVar[str] = "source"
    file: str
    python: tuple[Line, ...]
    cuda: tuple[Line, ...]
    links: tuple[Link, ...]

    def cuda_of(self, python: int) -> tuple[int, ...]:
        """CUDA lines written for a Python line."""
        return tuple(sorted({k.cuda for k in self.links if k.python == python}))

    def python_of(self, cuda: int) -> tuple[int, ...]:
        """Python lines that a CUDA line was written for."""
        return tuple(sorted({k.python for k in self.links if k.cuda == cuda}))

    def to_text(self) -> str:
        """Every Python line with the numbers of its CUDA lines, then the CUDA with its Python."""
        sizes = f"{plural(len(self.python), 'line')} of Python, {len(self.cuda)} of CUDA"
        parts = [f"SOURCE  {self.file}: {sizes}", "  Python (→ CUDA lines)"]
        for line in self.python:
            found = spans(self.cuda_of(line.number))
            parts.append(f"  {line.number:>4} {line.text}" + (f"   → {found}" if found else ""))
        parts.append("  CUDA (← Python lines)")
        for line in self.cuda:
            found = spans(self.python_of(line.number))
            parts.append(f"  {line.number:>4} {'← ' + found if found else '':<8} {line.text}")
        return "\n".join(parts) + "\n"

    def to_svg(self) -> str:
        """Both texts side by side, with a band from each Python line to its CUDA lines."""
        return draw(self)


def _main_file(source: CudaSource, loc: Loc | None) -> str:
    if loc is not None:
        return loc.file
    files = [p.file for link in source.links for p in places(link.loc)]
    return Counter(files).most_common(1)[0][0] if files else ""  # of equals the first one


def _extent(file: str, loc: Loc | None, links: tuple[Link, ...]) -> tuple[int, int]:
    """First and last Python line to show: the function's, or those that links name."""
    named = [k.python for k in links]
    if loc is not None:
        named += [loc.line, max(loc.end_line, loc.line)]
    last = len(linecache.getlines(file))
    return (min(named), min(max(named), last)) if named else (1, 0)


def source_view(source: CudaSource, loc: Loc | None = None) -> SourceView:
    """The texts of a compiled program; `loc` is the traced function's place in the Python.

    Only the `__global__` functions are shown, without the helpers before them.
    """
    file = _main_file(source, loc)
    shown = [n for span in source.kernels for n in range(span.first, span.last + 1)]
    pairs = {
        (place.line, link.line)
        for link in source.links
        for place in places(link.loc)
        if place.file == file
    }
    wanted = set(shown)
    links = tuple(Link(p, c) for p, c in sorted(pairs) if c in wanted)
    first, last = _extent(file, loc, links)
    lines = source.text.splitlines()
    return SourceView(
        title="Python beside the CUDA it became",
        file=file.rsplit("/", 1)[-1],
        python=tuple(
            Line(n, linecache.getline(file, n).rstrip("\n")) for n in range(first, last + 1)
        ),
        cuda=tuple(Line(n, lines[n - 1]) for n in shown),
        links=links,
    )
