"""Text in an artefact: what may become part of a comment, an identifier or a format.

Generated CUDA quotes such text, so nothing in it may end a comment, a line or a string.
"""

from __future__ import annotations

import re

from tilelab.artifact.schema import LIMITS, refused

_WORD = re.compile(r"[A-Za-z0-9_]{0,40}")
_CONVERSION = re.compile(r"%(?:d|u|lld|llu|\.9g|\.17g|%)")


def check_text(text: str, name: str) -> str:
    """A name or a comment: printable, on one line, no backslash (it would continue the line)."""
    if len(text) > LIMITS.text or not text.isprintable() or "\\" in text:
        raise refused(f"the text of {name} is too long or not plain")
    return text


def check_word(text: str) -> str:
    """An argument of an instruction: letters, digits and underscores."""
    if not _WORD.fullmatch(text):
        raise refused(f"{text[:40]!r} as an argument of an instruction")
    return text


def check_format(text: str) -> str:
    """A format of printf: plain text with the conversions that T.print makes."""
    plain = text.replace("\n", " ").replace("\t", " ").replace("\\", " ")
    if len(text) > LIMITS.text or not plain.isprintable() or "%" in _CONVERSION.sub("", text):
        raise refused("a format with other conversions than T.print makes")
    return text
