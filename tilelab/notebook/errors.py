"""Short error messages in a notebook: the sentence, the line with its caret, the remedy.

Hides IPython's handler for custom exceptions. A TileInternalError keeps its whole traceback: it
is tilelab's bug, and a report needs it.
"""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileError, TileInternalError


class CellSyntaxError(SyntaxError):
    """The text of a `%%tilelang` cell is no Python: shown as in any cell, without our frames."""


def lines_of(error: TileError, shell: Any) -> list[str]:
    """An error as a cell shows it: its kind, then its message without a traceback.

    Cells are called what the notebook calls them: "Cell In[3]".
    """
    text = f"{type(error).__name__} {error}"
    for file in _files(error):
        name = shell.compile.format_code_name(file)
        if name is not None:
            text = text.replace(f"at {file},", f"at {' '.join(name)},")
    return text.splitlines()


def _files(error: TileError) -> set[str]:
    found: set[str] = set()
    place = error.place
    while place is not None:
        found.add(place.file)
        place = place.caller
    return found


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
    """Show TileErrors in their own words from now on."""
    shell.set_custom_exc((TileError, CellSyntaxError), _handle)


def remove(shell: Any) -> None:
    """Show TileErrors with a traceback again."""
    shell.set_custom_exc((), None)
