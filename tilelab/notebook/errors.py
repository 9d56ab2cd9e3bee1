"""Short error messages in a notebook: the sentence, the line with its caret, the remedy.

Hides IPython's handler for custom exceptions. A TileInternalError keeps its whole traceback: it
is tilelab's bug, and a report needs it.
"""

from __future__ import annotations

import ast
from typing import Any

from tilelab.errors import TileError, TileInternalError, name_files


class CellSyntaxError(SyntaxError):
    """The text of a `%%tilelang` cell is no Python: shown as in any cell, without our frames."""


def lines_of(error: TileError, shell: Any) -> list[str]:
    """An error as a cell shows it: its kind, then its message without a traceback, at a magic's
    line as it was written."""
    text = f"{type(error).__name__} {error}"
    written = "" if error.place is None else _magic_line(error.place.text())
    if error.place is not None and written:
        before = error.place.excerpt()
        where = before.splitlines()[0]
        text = text.replace(before, f"{where}\n    {written}\n    {'^' * len(written)}")
    return text.splitlines()


def _magic_line(text: str) -> str:
    """The magic that a line of Python stands for, which IPython made of it; "" for no magic."""
    for call, sign in (("run_cell_magic", "%%"), ("run_line_magic", "%")):
        if text.startswith(f"get_ipython().{call}("):
            name, line, *_ = map(ast.literal_eval, ast.parse(text, mode="eval").body.args)  # type: ignore[attr-defined]
            return f"{sign}{name} {line}".rstrip()
    return ""


def _cell_name(shell: Any, file: str) -> str | None:
    """What the notebook calls the file of a cell: "Cell In[3]"."""
    name = shell.compile.format_code_name(file)
    return None if name is None else " ".join(name)


def _handle(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> list[str]:
    if isinstance(error, CellSyntaxError):
        lines: list[str] = shell.SyntaxTB.structured_traceback(SyntaxError, error, [])
        shell._showtraceback(SyntaxError, error, lines)
        return lines
    if isinstance(error, TileInternalError):
        found: list[str] = shell.InteractiveTB.structured_traceback(
            kind, error, trace, tb_offset=tb_offset
        )
    else:
        found = lines_of(error, shell)
    # The text goes out with the name of its error, in the words that are shown.
    shell._showtraceback(kind, "\n".join(found).removeprefix(f"{kind.__name__} "), found)
    return found


def install(shell: Any) -> None:
    """Show TileErrors in their own words from now on, and call cells what the notebook does."""
    name_files(lambda file: _cell_name(shell, file))
    shell.set_custom_exc((TileError, CellSyntaxError), _handle)


def remove(shell: Any) -> None:
    """Show TileErrors with a traceback again."""
    name_files(None)
    shell.set_custom_exc((), None)
