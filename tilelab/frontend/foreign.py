"""Python's own errors about values of a kernel, said in the program's words.

Hides which of them a traced line caused itself: by its own operators and calls, or by arguments
that a function of the language could not use. An error from inside a function of the user's stays
as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FrameType, TracebackType

from tilelab.errors import (
    TileError,
    TileNameError,
    TileTypeError,
    TileUndefinedName,
    TileValueError,
)
from tilelab.frontend.session import Session
from tilelab.ir import Buffer, Node, Region

_APPLIES = "tilelab.frontend.values"
_PACKAGE = __name__.partition(".")[0]
_LANGUAGE = (f"{_PACKAGE}.language", f"{_PACKAGE}.tile.ops")
_EXPLAINED = (
    TypeError, AttributeError, NameError, UnboundLocalError, ValueError, ZeroDivisionError,
    OverflowError, IndexError, KeyError,
)  # fmt: skip
_WORDS = {
    "ScalarBuffer": "a variable of the kernel", "ReducerBuffer": "a whole buffer",
    "Buffer": "a whole buffer", "Region": "a slice of a buffer",
    **dict.fromkeys(
        ("Load", "Var", "Binary", "Unary", "Cast", "Select", "Call", "Const", "ElementRef"),
        "a value of the kernel",
    ),
}  # fmt: skip
_KIND = re.compile(r"'?\b(" + "|".join(_WORDS) + r")\b'?")
_COMPUTES_NOW = ("ufunc", "must be Tensor", "must be real number", "expected np.ndarray")


def explain(error: Exception, session: Session) -> TileError | None:
    """The error to raise instead, or None when `error` is not about the traced line itself.

    Python's TypeErrors become TL1407, missing attributes TL1408, undefined names TL1409; each
    stays an instance of its Python class.
    """
    if type(error) not in _EXPLAINED:
        return None
    frames = list(_frames(error.__traceback__))
    if not frames:
        return None
    loc = session.loc_of(error.__traceback__)
    applied = frames[-1].f_globals.get("__name__") == _APPLIES
    if not session.is_traced_code(frames[-1].f_code) and not applied:
        made = _of_the_language(error, frames, session)
        return made and made.at(loc)
    if type(error) not in (TypeError, AttributeError, NameError, UnboundLocalError):
        return None
    if isinstance(error, NameError):
        return TileUndefinedName(str(error), loc=loc, hint="define it, or correct its spelling")
    made = _attribute(error) if isinstance(error, AttributeError) else _type(error)
    return made.at(loc)


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _of_the_language(
    error: Exception, frames: list[FrameType], session: Session
) -> TileError | None:
    """The error of a function of the language that a traced line calls, and that stumbled over
    its arguments."""
    traced = [n for n, f in enumerate(frames) if session.is_traced_code(f.f_code)]
    called = frames[traced[-1] + 1 :] if traced else []
    names = [str(f.f_globals.get("__name__", "")) for f in called]
    if any(n.split(".")[0] != _PACKAGE for n in names):
        return None
    if not any(n.startswith(_LANGUAGE) for n in names):
        return None
    kind = TileTypeError if isinstance(error, TypeError | AttributeError) else TileValueError
    return kind(
        f"a function of the language cannot use these arguments: {error}", code="TL1407",
        hint="see help() of the function for its arguments",
    )  # fmt: skip


def _attribute(error: AttributeError) -> TileError:
    text = _KIND.sub(lambda m: _WORDS[m[1]], str(error)).replace(" object has no", " has no")
    about = error.obj
    name = about.name if isinstance(about, Buffer) else ""
    if name:
        text = f"the buffer {name} has no attribute {error.name!r}"
    hint = "use the functions of tilelab.language (T.exp(x), T.reduce_sum(A, s), ...)"
    return TileNameError(text, code="TL1408", hint=hint if isinstance(about, Node) else "")


def _type(error: Exception) -> TileError:
    text = str(error)
    about = {m[1] for m in _KIND.finditer(text)}
    said = _KIND.sub(lambda m: _WORDS[m[1]], text)
    if any(words in text for words in _COMPUTES_NOW):
        hint = "numpy, torch and math compute now; use the function of T, such as T.exp(x)"
    elif about & {kind.__name__ for kind in (Buffer, Region)}:
        hint = "work on elements, A[i, j] in a T.Parallel loop, or use a tile operation of T"
    elif about:
        hint = "values of the kernel have the operators of numbers and the functions of T"
    else:
        hint = "see help() of the function for its arguments"
    return TileTypeError(said, code="TL1407", hint=hint)
