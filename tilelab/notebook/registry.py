"""The one place where magics are put into a shell and taken out again.

Hides IPython's register: its two kinds, and that it has no call to take a magic back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilelab.commands.arguments import usage_error

Magic = tuple[str, str]
"""("cell", name) for %%name, ("line", name) for %name."""


def install(shell: Any, magics: Mapping[Magic, Callable[..., Any]]) -> None:
    """Register functions: a cell magic gets (line, cell), a line magic (line)."""
    for (kind, name), function in magics.items():
        shell.register_magic_function(function, kind, name)


def remove(shell: Any, magics: Mapping[Magic, Callable[..., Any]]) -> None:
    """Take those magics back; what is not there stays so."""
    for kind, name in magics:
        shell.magics_manager.magics[kind].pop(name, None)


def not_first(name: str) -> Callable[[str], None]:
    """What IPython makes of `%%name` below the first line of its cell: a line magic `%name`."""

    def refuse(line: str) -> None:
        raise usage_error(
            f"%%{name} stands below other lines of its cell",
            f"make %%{name} the first line; comments may stand below it",
        )

    return refuse
