"""A small SVG builder: escaped text, paints by role, both themes, the same bytes every time.

Hides the style sheet, and how text is kept inside the picture. Every shape carries its light
colours as attributes too, so a picture stays readable where a host strips `<style>`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from html import escape

from tilelab.views.measure import fitted, width_of, wrapped
from tilelab.views.palette import PAINTS

SANS = "system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif"
EDGE = 6  # pixels between a text and the picture's border
MARGIN, HEAD_LINE, SUB_LINE = 24, 19, 18
LEAST = 0.8  # a picture in a narrow column scrolls rather than becoming smaller than this
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace"


def number(value: float) -> str:
    """A coordinate with at most two decimals and no trailing zeros."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def slug(text: str) -> str:
    """`text` as an id: letters, digits and dashes."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text).strip("-") or "x"


class Svg:
    """A picture under construction. `title` and `desc` are what a screen reader says."""

    def __init__(self, ident: str, width: float, height: float, title: str, desc: str) -> None:
        self.ident = slug(ident)
        self.width = width
        self.height = height
        self.title = title
        self.desc = desc
        self._parts: list[str] = []
        self._head: list[str] = []
        self._subs = 0
        self._drop = 0.0  # what a heading of several lines pushes the rest down by
        self._used: set[str] = set()
        self._heads: set[str] = set()

    def paint(self, fill: str = "", stroke: str = "", width: float = 1) -> str:
        """Attributes for a fill and a stroke, each a role of the palette ("" for none)."""
        classes = [f"{kind}-{role}" for kind, role in (("f", fill), ("s", stroke)) if role]
        self._used.update(classes)
        text = f' class="{" ".join(classes)}"' if classes else ""
        text += f' fill="{PAINTS[fill].light if fill else "none"}"'
        if stroke:
            text += f' stroke="{PAINTS[stroke].light}"'
            if width != 1:
                text += f' stroke-width="{number(width)}"'
        return text

    def raw(self, markup: str) -> None:
        """Markup that the caller made safe."""
        self._parts.append(markup)

    def rect(
        self, x: float, y: float, w: float, h: float, fill: str = "", stroke: str = "", *,
        radius: float = 0, width: float = 1, title: str = "", dash: str = "",
    ) -> None:  # fmt: skip
        """A box; `title` is its tooltip."""
        shape = f'<rect x="{number(x)}" y="{number(y)}" width="{number(w)}" height="{number(h)}"'
        if radius:
            shape += f' rx="{number(radius)}"'
        if dash:
            shape += f' stroke-dasharray="{dash}"'
        shape += self.paint(fill, stroke, width)
        tail = f"><title>{escape(title)}</title></rect>" if title else "/>"
        self._parts.append(shape + tail)

    def line(
        self, points: Sequence[tuple[float, float]], stroke: str, *, width: float = 1,
        dash: str = "", arrow: bool = False,
    ) -> None:  # fmt: skip
        """A polyline, with an arrow head at its end if asked."""
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self.path(path, stroke=stroke, width=width, dash=dash, arrow=arrow)

    def path(
        self, d: str, *, fill: str = "", stroke: str = "", width: float = 1, dash: str = "",
        arrow: bool = False,
    ) -> None:  # fmt: skip
        """A path in SVG's own notation."""
        shape = f'<path d="{d}"{self.paint(fill, stroke, width)}'
        if dash:
            shape += f' stroke-dasharray="{dash}"'
        if arrow:
            self._heads.add(stroke)
            shape += f' marker-end="url(#{self.ident}-head-{stroke})"'
        self._parts.append(shape + "/>")

    def text(
        self, x: float, y: float, text: str, role: str = "ink", *, size: float = 12,
        anchor: str = "start", mono: bool = False, bold: bool = False, rotate: float = 0,
    ) -> None:  # fmt: skip
        """A line of text whose baseline starts (or centres, or ends) at a point. It is made to fit
        the picture; one that is rotated is short enough by itself."""
        room = {"start": self.width - EDGE - x, "end": x - EDGE}.get(anchor, self.width - 2 * EDGE)
        if anchor == "middle" and not rotate:  # moved inwards at a border
            half = min(width_of(text, size, mono=mono, bold=bold), room) / 2
            x = min(max(x, EDGE + half), self.width - EDGE - half)
        room = self.height if rotate else room
        self.label(x, y, text, role, size=size, width=room, anchor=anchor, mono=mono, bold=bold,
                   rotate=rotate)  # fmt: skip

    def label(
        self, x: float, y: float, text: str, role: str = "ink", *, size: float = 12,
        width: float, anchor: str = "middle", mono: bool = False, bold: bool = False,
        rotate: float = 0,
    ) -> None:  # fmt: skip
        """Text made to fit a width: shrunk a little, then cut with an ellipsis. What was cut is
        its tooltip."""
        shown, size = fitted(text, width, size, mono=mono, bold=bold)
        if not shown:
            return
        shape = f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}"'
        if anchor != "start":
            shape += f' text-anchor="{anchor}"'
        if mono:
            shape += f' font-family="{MONO}" xml:space="preserve"'
        if bold:
            shape += ' font-weight="600"'
        if rotate:
            shape += f' transform="rotate({number(rotate)} {number(x)} {number(y)})"'
        tip = f"<title>{escape(text)}</title>" if shown != text else ""
        shape += f"{self.paint(role)}>{escape(shown, quote=False)}{tip}</text>"
        self._parts.append(shape)

    def heading(self, text: str) -> None:
        """The picture's first line, in as many lines as it needs."""
        self._top(text, 32, HEAD_LINE, "ink", size=15, bold=True)

    def sub(self, text: str, role: str = "muted", *, size: float = 12, bold: bool = False) -> None:
        """A line below the heading (or below the line before), in as many lines as it needs."""
        self._top(text, 54 + SUB_LINE * self._subs, SUB_LINE, role, size=size, bold=bold)
        self._subs += 1

    def _top(
        self, text: str, y: float, step: float, role: str, *, size: float, bold: bool
    ) -> None:  # fmt: skip
        """Lines above the drawing, which moves down by what is more than one line."""
        body, self._parts = self._parts, self._head
        for k, line in enumerate(wrapped(text, self.width - 2 * MARGIN, size, bold=bold)):
            self._drop += step if k else 0
            self.text(MARGIN, y + self._drop, line, role, size=size, bold=bold)
        self._parts = body

    @contextmanager
    def group(self, attributes: str = "", title: str = "") -> Generator[None]:
        """Elements inside one `<g>`."""
        self._parts.append(f"<g{' ' + attributes if attributes else ''}>")
        if title:
            self._parts.append(f"<title>{escape(title)}</title>")
        yield
        self._parts.append("</g>")

    def _style(self) -> str:
        def rules(theme: str) -> str:
            found: list[str] = []
            for name in sorted(self._used):
                kind, role = name.split("-", 1)
                prop = "fill" if kind == "f" else "stroke"
                found.append(f".{name}{{{prop}:{getattr(PAINTS[role], theme)}}}")
            return "".join(found)

        dark = f"@media(prefers-color-scheme:dark){{{rules('dark')}}}"
        return f"<style>{rules('light')}{dark}</style>"

    def _markers(self) -> str:
        heads = [
            f'<marker id="{self.ident}-head-{role}" viewBox="0 0 8 8" refX="7" refY="4" '
            'markerWidth="7" markerHeight="7" orient="auto" markerUnits="userSpaceOnUse">'
            f'<path d="M0 0.8L8 4L0 7.2z"{self.paint(role)}/></marker>'
            for role in sorted(self._heads)
        ]
        return f"<defs>{''.join(heads)}</defs>" if heads else ""

    def render(self) -> str:
        """The whole picture as text."""
        frame = self.paint("card", "grid")
        markers = self._markers()
        height = self.height + self._drop
        w, h, least = number(self.width), number(height), number(self.width * LEAST)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" '
            f'height="{h}" role="img" aria-labelledby="{self.ident}-t {self.ident}-d" '
            f'font-family="{SANS}" style="max-width:100%;min-width:{least}px;height:auto">'
            f'<title id="{self.ident}-t">{escape(self.title)}</title>'
            f'<desc id="{self.ident}-d">{escape(self.desc)}</desc>'
        )
        card = (
            f'<rect x="0.5" y="0.5" width="{number(self.width - 1)}" '
            f'height="{number(height - 1)}" rx="8"{frame}/>'
        )
        body = "".join(self._parts)
        if self._drop:
            body = f'<g transform="translate(0 {number(self._drop)})">{body}</g>'
        return head + self._style() + markers + card + "".join(self._head) + body + "</svg>\n"


def with_prefix(markup: str, prefix: str) -> str:
    """A rendered picture with other ids, for a page that shows several of one name."""
    found = re.search(r'aria-labelledby="(\S+)-t ', markup)
    if found is None:
        raise ValueError("the markup is no picture of this module")
    ident = found[1]
    for before in ('id="', "url(#", 'aria-labelledby="', "-t "):
        markup = markup.replace(f"{before}{ident}-", f"{before}{prefix}-{ident}-")
    return markup


def stacked(markups: Sequence[str]) -> str:
    """Rendered pictures below each other as one; a single one as it is."""
    if len(markups) == 1:
        return markups[0]
    sizes = [[float(n) for n in re.findall(r'viewBox="0 0 (\S+) (\S+)"', m)[0]] for m in markups]
    wide, high = max(w for w, _ in sizes), sum(h for _, h in sizes)
    parts: list[str] = []
    top = 0.0
    for k, (markup, (_, height)) in enumerate(zip(markups, sizes, strict=True)):
        # Inside of another picture a size in CSS would win over the attributes.
        inner = re.sub(r' style="max-width[^"]*"', f' y="{number(top)}"', markup, count=1)
        parts.append(with_prefix(inner, f"p{k}"))
        top += height
    w, h, least = number(wide), number(high), number(wide * LEAST)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" '
        f'style="max-width:100%;min-width:{least}px;height:auto">{"".join(parts)}</svg>\n'
    )
