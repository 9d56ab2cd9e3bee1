"""Calls of a jitted function as keys: arguments by parameter name, frozen and sorted.

Hides that binding is planned once for each shape of call (how many positional arguments, which
keywords), so that a call costs a few dictionary look-ups.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelab.calls import misfit
from tilelab.errors import TileTypeError, shown, warn

_MISFIT = "TL1498"
_PLAIN = frozenset({int, float, bool})


def freeze(value: Any) -> Hashable:
    """A compile-time argument as a key. TileTypeError (TL1495) for what cannot be one."""
    kind: type = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in _PLAIN:
        return (kind, value)
    special = _FREEZE.get(kind)
    if special is not None:
        return special(value)
    try:
        hash(value)
    except TypeError:
        raise TileTypeError(
            f"the compile-time argument {shown(value)} cannot be part of a kernel's key",
            code="TL1495",
            hint="pass numbers, strings, types, functions, or lists, dicts and sets of them; if "
            "it is a tensor, declare it in the body: A: T.Tensor[[M, K], dtype]",
        ) from None
    return value


def _freeze_sequence(value: Sequence[Any]) -> Hashable:
    return (type(value), *map(freeze, value))


def _freeze_dict(value: Mapping[Any, Any]) -> Hashable:
    return (dict, *sorted(((freeze(k), freeze(v)) for k, v in value.items()), key=repr))


def _freeze_set(value: set[Any]) -> Hashable:
    return (set, frozenset(map(freeze, value)))


_FREEZE: dict[type, Callable[[Any], Hashable]] = {
    list: _freeze_sequence, tuple: _freeze_sequence, dict: _freeze_dict, set: _freeze_set,
    frozenset: _freeze_set,
}  # fmt: skip


@dataclass
class Call:
    """A call's arguments, sorted: compile-time, runtime, and keywords beyond the signature."""

    static: dict[str, Any]
    runtime: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    def key(self) -> tuple[Hashable, ...]:
        """The key of the compile-time arguments."""
        return tuple([freeze(v) for v in self.static.values()])

    def extra_key(self, known: Sequence[str] = ()) -> tuple[Hashable, ...]:
        """The key of the keywords that neither a parameter nor a constant (`known`) takes."""
        if not self.extra:
            return ()
        return tuple(sorted((k, freeze(v)) for k, v in self.extra.items() if k not in known))


@dataclass(frozen=True)
class _Plan:
    """Where each parameter's value comes from: ("arg", i), ("kw", name) or ("value", default)."""

    static: tuple[tuple[str, str, Any], ...]
    runtime: tuple[tuple[str, str, Any], ...]
    extra: tuple[str, ...]


def _fill(
    sources: tuple[tuple[str, str, Any], ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, kind, where in sources:
        if kind == "arg":
            result[name] = args[where]
        else:
            result[name] = kwargs[where] if kind == "kw" else where
    return result


class Binder:
    """Sorts the arguments of calls of one function. `runtime` parameters may be left out."""

    def __init__(
        self, signature: inspect.Signature, runtime: Sequence[str] = (), name: str = "the function"
    ) -> None:
        self.signature = signature
        self.name = name
        self.runtime = frozenset(runtime)
        self._plans: dict[Hashable, _Plan] = {}
        kinds = {p.kind for p in signature.parameters.values()}
        self._open = inspect.Parameter.VAR_KEYWORD in kinds
        self._plain = not self._open and inspect.Parameter.VAR_POSITIONAL not in kinds

    def sort(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """The call's arguments, by name. TileTypeError (TL1498) for a call that does not fit."""
        if not self._plain:
            return self._sort_once(args, kwargs)
        shape = (len(args), tuple(kwargs)) if kwargs else len(args)
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plans[shape] = self._plan(args, kwargs)
        extra = {k: kwargs[k] for k in plan.extra} if plan.extra else {}
        return Call(_fill(plan.static, args, kwargs), _fill(plan.runtime, args, kwargs), extra)

    def _sort_once(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Functions with *args or **kwargs are bound anew each time."""
        arguments, extra = self._bind(args, kwargs)
        static = {n: v for n, v in arguments.items() if n not in self.runtime}
        return Call(static, {n: v for n, v in arguments.items() if n in self.runtime}, extra)

    def _plan(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Plan:
        places = tuple(("arg", i) for i in range(len(args)))
        bound, extra = self._bind(places, {k: ("kw", k) for k in kwargs}, marked=True)
        sources = [(name, *source) for name, source in bound.items()]
        static = tuple(s for s in sources if s[0] not in self.runtime)
        runtime = tuple(s for s in sources if s[0] in self.runtime)
        return _Plan(static, runtime, tuple(extra))

    def check(
        self, args: tuple[Any, ...], own: Mapping[str, Any], extra: Mapping[str, Any]
    ) -> None:
        """TileTypeError (TL1498) for a call that does not fit the parameters; keywords that none
        takes (`extra`) are named where an argument is missing."""
        signature = self.signature
        if self.runtime:
            optional = [p.replace(default=None) for p in signature.parameters.values()
                        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]  # fmt: skip
            signature = signature.replace(parameters=optional)
        wrong = misfit(signature, args, own, self.name, _MISFIT)
        if wrong is not None:
            raise (misfit(signature, args, {**own, **extra}, self.name, _MISFIT) or wrong)

    def check_extra(self, extra: Iterable[str], known: Sequence[str] = ()) -> None:
        """Keywords that neither a parameter nor a constant takes tell kernels apart and do nothing
        else, as in TileLang: a TileWarning, and TileTypeError (TL1498) for a misspelt name."""
        names = [*self.signature.parameters, *known]
        for key in extra:
            if key in known:
                continue
            near = difflib.get_close_matches(key, names, 1, 0.7)
            what = f"{self.name}() has no argument {key!r}"
            if near:
                hint = f"did you mean {near[0]}=...? its arguments are {', '.join(names)}"
                raise TileTypeError(what, code=_MISFIT, hint=hint)
            warn(f"{what}: it changes nothing")

    def _bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, marked: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments in the order of the signature, and keywords that no parameter takes; with
        `marked`, defaults are marked as ("value", default)."""
        parameters = self.signature.parameters
        own = dict(kwargs) if self._open else {k: v for k, v in kwargs.items() if k in parameters}
        extra = {} if self._open else {k: v for k, v in kwargs.items() if k not in parameters}
        bind = self.signature.bind_partial if self.runtime else self.signature.bind
        self.check(args, own, extra)
        given = bind(*args, **own).arguments
        arguments: dict[str, Any] = {}
        for name, parameter in parameters.items():
            if name in given:
                arguments[name] = given[name]
            elif parameter.default is not parameter.empty:
                default = parameter.default
                arguments[name] = ("value", default) if marked else default
            elif name not in self.runtime and parameter.kind not in (
                parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD
            ):  # fmt: skip
                raise TileTypeError(
                    f"{self.name}() lacks its compile-time argument {name!r}", code=_MISFIT,
                    hint=f"pass {name}=..., or declare it as a tensor in the body",
                )  # fmt: skip
        return arguments, extra
