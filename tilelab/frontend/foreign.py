"""Python's own errors about values of a kernel, said in the program's words.

Hides which of them a traced line caused itself: by its own operators and calls, or by arguments
that a function of the language could not use. An error from inside a function of the user's stays
as it is.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType, TracebackType

from tilelab.calls import nearest
from tilelab.errors import (
    Loc,
    TileError,
    TileNameError,
    TileTypeError,
    TileUndefinedName,
    TileValueError,
    user_loc,
)
from tilelab.frontend.called import call_at, in_language, instead_of, outside_function
from tilelab.frontend.session import Session
from tilelab.ir import Buffer, Node, Region

_PACKAGE = __name__.partition(".")[0]
_APPLIES = (f"{_PACKAGE}.frontend.values", f"{_PACKAGE}.frontend.assign")
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
_KIND = re.compile(r"'?\b(" + "|".join(_WORDS) + r")\b(?!\()'?")
_NOT_NOW = "TL1102"
_INDEXES = "only integers, slices"


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
    applied = frames[-1].f_globals.get("__name__") in _APPLIES
    traced = [f for f in frames if session.is_traced_code(f.f_code)]
    found = outside_function(loc, traced[-1]) if traced and isinstance(error, TypeError) else None
    if found is not None and _KIND.search(str(error)):
        return _computes_now(*found).at(loc)
    if not session.is_traced_code(frames[-1].f_code) and not applied:
        made = _of_the_language(error, frames, session)
        return made and made.at(loc)
    if isinstance(error, IndexError) and _INDEXES in str(error):
        return _indexed(loc).at(loc)
    if type(error) not in (TypeError, AttributeError, NameError, UnboundLocalError):
        return None
    if isinstance(error, NameError):
        return TileUndefinedName(str(error), loc=loc, hint=_undefined(error, traced[-1:]))
    made = _attribute(error) if isinstance(error, AttributeError) else _type(error)
    return made.at(loc)


def advise(error: TileError, session: Session) -> None:
    """Say which function asked for the number of a value that has none yet (TL1102)."""
    if error.code != _NOT_NOW:
        return
    loc = session.loc_of(error.__traceback__)
    traced = [f for f in _frames(error.__traceback__) if session.is_traced_code(f.f_code)]
    found = outside_function(loc, traced[-1]) if traced else None
    plain = _plain_helper(error.__traceback__, session)
    if plain is not None:
        error.hint = f"put @T.macro above {plain.function}: its `if`, `and` and loops then become "
        error.hint += "part of the kernel"
        error.loc = replace(plain, caller=loc)
    elif found is not None:
        error.message, error.hint = _now(found[0]), found[1]
    elif isinstance(call_at(loc), ast.Subscript):
        other = _indexed(loc)
        error.message, error.hint = other.message, other.hint


def _plain_helper(trace: TracebackType | None, session: Session) -> Loc | None:
    """The place in a plain function of the user's that traced code called, which asked."""
    place: Loc | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if session.is_traced_code(code):
            place = None
        elif place is None:
            place = user_loc(trace)
        trace = trace.tb_next
    return place if place is not None and place.function else None


def _now(name: str) -> str:
    return f"{name} computes now, and this value is known only when the kernel runs"


def _computes_now(name: str, instead: str) -> TileTypeError:
    return TileTypeError(_now(name), code="TL1407", hint=instead)


def _indexed(loc: Loc | None) -> TileTypeError:
    node = call_at(loc)
    name = ast.unparse(node.value) if isinstance(node, ast.Subscript) else "a Python sequence"
    return TileTypeError(
        f"{name} is Python's, and its index is known only when the kernel runs", code="TL1407",
        hint="make it a tensor parameter, or a T.alloc_shared or T.alloc_local that the kernel "
        "fills; a `for` over a Python list or zip is expanded and knows its numbers",
    )  # fmt: skip


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
    text = _plain_text(error).replace(" object has no", " has no")
    about = error.obj
    name = about.name if isinstance(about, Buffer) else ""
    if name:
        text = f"the buffer {name} has no attribute {error.name!r}"
    missing = str(error.name)
    if isinstance(about, Node):
        return TileNameError(text, code="TL1408", hint=instead_of(missing))
    near = nearest(missing, (n for n in dir(about) if not n.startswith("_")))
    hint = (
        f"did you mean {near}?" if near else f"dir() of the {type(about).__name__} lists its names"
    )
    return TileNameError(text, code="TL1408", hint=hint)


def _undefined(error: NameError, frames: list[FrameType]) -> str:
    """What an undefined name was probably meant to be."""
    name = str(error.name)
    known = {n for f in frames for n in (*f.f_locals, *f.f_globals) if not n.startswith("_")}
    near = difflib.get_close_matches(name, known, 1, 0.7)
    if near:
        return f"did you mean {near[0]}?"
    said = in_language(name)
    return f"write {said}" if said else "define it, or correct its spelling"


def _plain_text(error: Exception) -> str:
    """Python's text, with tilelab's classes called what they are to the user."""
    return _KIND.sub(lambda m: _WORDS[m[1]], str(error))


def _type(error: Exception) -> TileError:
    text = str(error)
    about = {m[1] for m in _KIND.finditer(text)}
    if "format string" in text:
        hint = "print a value of the kernel with T.print(x), while it runs"
    elif " @: " in text:
        hint = "multiply tiles with T.gemm(A, B, C), which adds to C"
    elif "cannot be interpreted as an integer" in text:
        hint = "give an int: `/` makes a float, `//` and T.ceildiv an int"
    elif about & {kind.__name__ for kind in (Buffer, Region)}:
        hint = "work on elements, A[i, j] in a T.Parallel loop, or use a tile operation of T"
    elif about:
        hint = "values of the kernel have the operators of numbers and the functions of T"
    else:
        hint = "see help() of the function for its arguments"
    return TileTypeError(_plain_text(error), code="TL1407", hint=hint)
