"""Inclusive bounds of integer operations; None stands for "not known". Knows no nodes."""

from __future__ import annotations

from collections.abc import Callable

Bounds = tuple[int | None, int | None]
UNKNOWN: Bounds = (None, None)


def call_bounds(fn: str, args: list[Bounds]) -> Bounds:
    """Bounds of an integer function; only min and max have any."""
    if fn not in ("min", "max"):
        return (None, None)
    pick = min if fn == "min" else max
    lows, highs = [a[0] for a in args], [a[1] for a in args]
    known_low = [v for v in lows if v is not None]
    known_high = [v for v in highs if v is not None]
    low_needs, high_needs = (len(lows), 1) if fn == "min" else (1, len(highs))
    lo = pick(known_low) if len(known_low) >= low_needs else None
    hi = pick(known_high) if len(known_high) >= high_needs else None
    return (lo, hi)


def binary_bounds(op: str, a: Bounds, b: Bounds) -> Bounds:
    """Inclusive bounds of an integer `a op b`."""
    rule = _BOUND_RULES.get(op)
    return rule(a, b) if rule is not None else (None, None)


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _neg(a: Bounds) -> Bounds:
    return (None if a[1] is None else -a[1], None if a[0] is None else -a[0])


def _bounds_add(a: Bounds, b: Bounds) -> Bounds:
    return (_add(a[0], b[0]), _add(a[1], b[1]))


def _bounds_mul(a: Bounds, b: Bounds) -> Bounds:
    (al, ah), (bl, bh) = a, b
    if al is not None and ah is not None and bl is not None and bh is not None:
        products = [x * y for x in (al, ah) for y in (bl, bh)]
        return (min(products), max(products))
    if al is not None and bl is not None and al >= 0 and bl >= 0:
        return (al * bl, None)
    return (None, None)


def _bounds_div(a: Bounds, b: Bounds) -> Bounds:
    if b[0] is None or b[0] <= 0:
        return (None, None)
    lo = None if a[0] is None else (a[0] // (b[1] or b[0]) if a[0] >= 0 else a[0] // b[0])
    if a[0] is not None and a[0] >= 0 and b[1] is None:
        lo = 0
    hi = None if a[1] is None else (a[1] // b[0] if a[1] >= 0 else -1)
    return (lo, hi)


def _bounds_mod(a: Bounds, b: Bounds) -> Bounds:
    if b[0] is None or b[0] <= 0:
        return (None, None)
    hi = None if b[1] is None else b[1] - 1
    if a[0] is not None and a[0] >= 0 and a[1] is not None:
        hi = a[1] if hi is None else min(hi, a[1])
    return (0, hi)


def _bounds_bits(a: Bounds, b: Bounds) -> Bounds:
    """of ^ and |: below the next power of two of the larger side."""
    if None in (*a, *b) or a[0] < 0 or b[0] < 0:  # type: ignore[operator]
        return (None, None)
    return (0, (1 << max(a[1], b[1]).bit_length()) - 1)  # type: ignore[type-var, arg-type]


def _bounds_and(a: Bounds, b: Bounds) -> Bounds:
    highs = [s[1] for s in (a, b) if s[0] is not None and s[0] >= 0 and s[1] is not None]
    return (0, min(highs)) if highs else (None, None)


def _bounds_shift(a: Bounds, b: Bounds) -> Bounds:
    if b[0] is None or b[0] != b[1]:
        return (None, None)
    return _bounds_div(a, (1 << b[0], 1 << b[0]))


_BOUND_RULES: dict[str, Callable[[Bounds, Bounds], Bounds]] = {
    "+": _bounds_add, "-": lambda a, b: _bounds_add(a, _neg(b)), "*": _bounds_mul,
    "//": _bounds_div, "%": _bounds_mod, "^": _bounds_bits, "|": _bounds_bits,
    "&": _bounds_and, ">>": _bounds_shift,
}  # fmt: skip
