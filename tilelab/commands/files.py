"""The files that a command reads and writes, looked at before its work begins.

Hides what a path may be besides a file: a folder, a pipe, a device, or text that is no Python.
"""

from __future__ import annotations

import os
import stat
import tokenize
from pathlib import Path

from tilelab.errors import TileValueError

NO_SCRIPT, UNUSABLE = "TL1706", "TL1709"
_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


def script_path(text: str) -> str:
    """The absolute path of a Python file. TileValueError: TL1706 where there is none, TL1709 for
    a folder, a pipe, or a file whose text is no Python source."""
    path = Path(text)
    if not text or not path.exists():
        raise TileValueError(
            f"there is no script {text or repr(text)}", code=NO_SCRIPT,
            hint="give the path of a Python file",
        )  # fmt: skip
    if not path.is_file():
        # A kernel's text is read again when it is traced, and by every message about a line.
        raise _unusable(f"the script {text} is {_kind(path)}", "give the path of a Python file; "
                        "what comes through a pipe has to be saved in one first")  # fmt: skip
    read_source(text)
    return os.path.abspath(text)


def read_source(file: str) -> str:
    """The text of a Python file in the encoding that it declares (PEP 263), without a byte-order
    mark. TileValueError (TL1709) for bytes that are no such text, and for a notebook."""
    try:
        with tokenize.open(file) as opened:
            text = opened.read()
    except OSError as error:
        raise _unusable(f"{file} cannot be read: {error.strerror}", "let it be readable") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise _unusable(
            f"{file} is no text of Python: {error}",
            "save it as UTF-8, or name its encoding in its first line: # -*- coding: latin-1 -*-",
        ) from None
    if "\0" in text:
        raise _unusable(f"{file} is no text of Python: it holds null bytes",
                        "give a source file, not a program, an archive or UTF-16")  # fmt: skip
    if file.endswith(".ipynb"):
        raise _unusable(f"{file} is a notebook", "open it in JupyterLab, or save its cells as a "
                        "script: jupyter nbconvert --to script")  # fmt: skip
    return text


def writable_file(text: str, *, merged: bool = False) -> Path:
    """The path of a file that can be written, with the folders above it that were missing; with
    `merged`, one whose text (UTF-8) is kept and added to.

    TileValueError (TL1709) for a folder, a pipe with a name, or a place without permission.
    """
    path = Path(text)
    writable_folder(str(path.parent))
    # Not /dev/stdout and /dev/fd/N: those have a reader, and were given on purpose.
    if path.is_dir() or (path.is_fifo() and path.absolute().parts[1:2] != ("dev",)):
        raise _unusable(f"{text} is {_kind(path)}, and a file is to be written there",
                        "name a file; /dev/stdout takes what another program reads")  # fmt: skip
    missing = not path.exists()
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
        if missing:
            path.unlink()
        elif merged and path.is_file():
            path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = (
            error.strerror
            if isinstance(error, OSError)
            else "its text, which is kept, is not UTF-8"
        )
        raise _unusable(f"{text} cannot be written: {why}", "name another file") from None
    return path


def writable_folder(text: str) -> Path:
    """A folder, made where it is missing. TileValueError (TL1709) where it cannot be made."""
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        kind = f"it is {_kind(path)}" if path.exists() else str(error.strerror)
        raise _unusable(f"{text} is no folder that can be written to: {kind}",
                        "name another folder") from None  # fmt: skip
    return path


def _unusable(message: str, hint: str) -> TileValueError:
    return TileValueError(message, code=UNUSABLE, hint=hint)


def _kind(path: Path) -> str:
    return _KINDS.get(stat.S_IFMT(path.stat().st_mode), "a file")
