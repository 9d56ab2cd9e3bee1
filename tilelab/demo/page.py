"""The demo's page: one HTML file with pictures, their text twins, and code with linked lines.

Style and script lie beside this module as files and are put inline, so the page needs nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from tilelab.views import Report, SourceView
from tilelab.views.source import Line
from tilelab.views.svg import slug, with_prefix

INTRO = (
    "A matrix product, written in twenty lines of tile language, as tilelab compiles it. "
    "Every picture is drawn from the compiler's own decisions; every number is the compiled "
    "kernel's. Point at a line of code, or move to it with Tab, to see what it became."
)
CAPTIONS = {
    "fragment": "Which thread holds which element of the accumulator",
    "pipeline": "What is loaded and used when, and who waits for whom",
    "memory": "What fills shared memory, and what limits the blocks on a multiprocessor",
}


@dataclass(frozen=True)
class Section:
    """One target's part of the page."""

    target: str
    report: Report
    source: SourceView


def page(head: Sequence[str], rows: Sequence[Sequence[str]], sections: Sequence[Section]) -> str:
    """The whole page as text."""
    here = files("tilelab.demo")
    style = (here / "page.css").read_text(encoding="utf-8")
    script = (here / "page.js").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{slug(s.target)}">{escape(s.target)}</a>' for s in sections)
    body = "".join(_section(s) for s in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>tilelab demo</title><style>{style}</style></head>\n<body>"
        f'<header><h1>tilelab demo</h1><p>{INTRO}</p><nav aria-label="targets">{links}</nav>'
        f"</header>\n<main>{_table(head, rows)}{body}</main>\n"
        f"<script>{script}</script></body></html>\n"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(h)}</th>' for h in head)
    lines = [
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    ]
    return (
        '<section><h2>Results</h2><div class="scroll" tabindex="0" aria-label="results table">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        "</section>"
    )


def _section(section: Section) -> str:
    prefix = slug(section.target)
    figures = "".join(
        f"<figure><figcaption>{escape(CAPTIONS[view.kind])}</figcaption>"
        f"{with_prefix(view.to_svg(), prefix)}"
        f"<details><summary>The same as text</summary><pre>{escape(view.to_text())}</pre></details>"
        "</figure>"
        for view in section.report.views
    )
    return (
        f'<section id="{prefix}"><h2>{escape(section.target)}</h2>{figures}'
        f"{_code(section.source, prefix)}</section>"
    )


def _code(view: SourceView, prefix: str) -> str:
    texts = textwrap.dedent("\n".join(line.text for line in view.python)).split("\n")
    python = "".join(
        _line(Line(line.number, text), "py", prefix, [f"cu{n}" for n in view.cuda_of(line.number)])
        for line, text in zip(view.python, texts, strict=True)
    )
    cuda = "".join(
        _line(line, "cu", prefix, [f"py{n}" for n in view.python_of(line.number)])
        for line in view.cuda
    )
    return (
        f'<h3>The Python and the CUDA it became</h3><div class="code">'
        f'<ol aria-label="Python">{python}</ol><ol aria-label="CUDA">{cuda}</ol></div>'
    )


def _line(line: Line, side: str, prefix: str, partners: Sequence[str]) -> str:
    """One line; a linked one can be focused and names its partners' ids."""
    ids = " ".join(f"{prefix}-{p}" for p in partners)
    said = f"lines {', '.join(p[2:] for p in partners)} on the other side"
    linked = f' data-to="{ids}" tabindex="0" title="{said}"' if partners else ""
    text = escape(line.text, quote=False) or " "
    ident = f"{prefix}-{side}{line.number}"
    return f'<li id="{ident}" value="{line.number}"{linked}><code>{text}</code></li>'
