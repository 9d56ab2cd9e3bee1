"""How wide text is: shrinking, cutting and wrapping it before any browser has seen it.

Hides the widths of glyphs. A host chooses the font, so these are those of a wide one (DejaVu
Sans); in others a text takes less room than it was given.
"""

from __future__ import annotations

import unicodedata
from functools import cache

ELLIPSIS = "…"
SHRINK = 0.8  # the smallest part of its size that a text is drawn with before it is cut
LEAST_LETTERS = 3  # of a text that is cut
BOLD, MONO, WIDE = 1.15, 0.61, 1.05
_EMS = {
    0.30: "iIjlJ'", 0.33: ".,·| ", 0.38: ":;!/-", 0.42: "ftr()[]{}`", 0.47: '"',
    0.56: "szc_*\\–?", 0.64: "kxvyaeounhbdpqgLPF0123456789$", 0.70: "ABCEKRSTVXYZ",
    0.83: "DGHNUOQ&w", 0.88: "M#+=<>~^×←→", 1.0: "mW%@" + ELLIPSIS,
}  # fmt: skip
_EM = {glyph: em for em, glyphs in _EMS.items() for glyph in glyphs}


@cache
def _is_wide(glyph: str) -> bool:
    """Whether a glyph fills a square, as those of Chinese and Japanese do."""
    return unicodedata.east_asian_width(glyph) in "WF"


@cache
def _em(glyph: str) -> float:
    """A glyph's width as a part of the font's size."""
    if glyph in _EM:
        return _EM[glyph]
    if unicodedata.category(glyph)[0] == "M":
        return 0.0  # stands on the letter before it
    if _is_wide(glyph):
        return WIDE
    base = unicodedata.normalize("NFD", glyph)[0]  # é is as wide as e
    return _EM.get(base, 0.9)


def width_of(text: str, size: float, *, mono: bool = False, bold: bool = False) -> float:
    """Pixels that a text takes at most, at a font size in pixels."""
    if mono:
        return size * sum(WIDE if _is_wide(glyph) else MONO for glyph in text)
    return size * (BOLD if bold else 1) * sum(map(_em, text))


def cut(
    text: str, room: float, size: float, *, mono: bool = False, bold: bool = False
) -> str:  # fmt: skip
    """`text`, or as much of its beginning as fits `room` pixels with an ellipsis; "" where that
    would be fewer than LEAST_LETTERS, of which nobody knows the word."""
    if width_of(text, size, mono=mono, bold=bold) <= room:
        return text
    room -= width_of(ELLIPSIS, size, mono=mono, bold=bold)
    kept = 0
    for glyph in text:
        room -= width_of(glyph, size, mono=mono, bold=bold)
        if room < 0:
            break
        kept += 1
    return text[:kept].rstrip() + ELLIPSIS if kept >= LEAST_LETTERS else ""


def fitted(
    text: str, room: float, size: float, *, mono: bool = False, bold: bool = False
) -> tuple[str, float]:  # fmt: skip
    """(text, size) that fit `room` pixels: shrunk a little, then cut."""
    need = width_of(text, size, mono=mono, bold=bold)
    if need > room:
        size *= max(room / need, SHRINK)
    return cut(text, room, size, mono=mono, bold=bold), size


def wrapped(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """The lines of a text, each at most `room` pixels wide; words longer than a line are broken."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if width_of(longer, size, bold=bold) <= room:
            line = longer
            continue
        lines += [line] if line else []
        pieces = _pieces(word, room, size, bold)
        lines += pieces[:-1]
        line = pieces[-1]
    return [*lines, line] if line else lines


def _pieces(word: str, room: float, size: float, bold: bool) -> list[str]:
    """A word in parts that fit a line (at least one glyph each)."""
    parts = [""]
    for glyph in word:
        if parts[-1] and width_of(parts[-1] + glyph, size, bold=bold) > room:
            parts.append("")
        parts[-1] += glyph
    return parts
