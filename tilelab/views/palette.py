"""One palette for every picture: named paints with a light and a dark value, and lane colours.

Hides colour arithmetic. Pictures ask for a role ("load", "ink"), never for a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Paint:
    """A colour of the light theme and its counterpart in the dark one."""

    light: str
    dark: str


PAINTS: dict[str, Paint] = {
    "card": Paint("#ffffff", "#14171c"),
    "panel": Paint("#f4f6f8", "#1c2128"),
    "ink": Paint("#1c2127", "#e7eaef"),
    "muted": Paint("#555f6b", "#a3adba"),
    "grid": Paint("#d5dae0", "#363d47"),
    "load": Paint("#cfe2fb", "#1d3a5f"),
    "load-edge": Paint("#1c5fae", "#7fb4f2"),
    "wait": Paint("#e6eefa", "#1b2a3f"),
    "compute": Paint("#ffe1b5", "#573a12"),
    "compute-edge": Paint("#8a4b00", "#f0b45f"),
    "barrier": Paint("#cbb7f0", "#553d8c"),
    "barrier-edge": Paint("#6a3fb5", "#c3a6f5"),
    "gap": Paint("#e9ecef", "#2a3038"),
    "good": Paint("#d2efd8", "#17402a"),
    "good-edge": Paint("#1b6e3a", "#74d399"),
    "bad": Paint("#fbd9d7", "#5a2322"),
    "bad-edge": Paint("#b3261e", "#f49b94"),
    "other": Paint("#8ccfca", "#1d6663"),
    "other-edge": Paint("#12706c", "#6fd0ca"),
    "cell-ink": Paint("#14171c", "#14171c"),
    "outline": Paint("#14171c", "#f5f6f8"),
}
"""Every paint but the lanes'. A role "x" with a partner "x-edge" is a fill with its border."""

TEXT_ON: tuple[tuple[str, str], ...] = (
    ("ink", "card"), ("muted", "card"), ("ink", "panel"), ("muted", "panel"), ("ink", "load"),
    ("ink", "wait"), ("ink", "compute"), ("ink", "barrier"), ("ink", "gap"), ("ink", "good"),
    ("ink", "bad"), ("ink", "other"), ("load-edge", "card"), ("compute-edge", "card"),
    ("barrier-edge", "card"), ("good-edge", "card"), ("bad-edge", "card"), ("other-edge", "card"),
)  # fmt: skip
"""The (text, background) pairs that pictures use; tests hold each to a contrast of 4.5 : 1."""

BUFFER_ROLES = ("load", "compute", "other", "good", "barrier")
"""Fills for one buffer after another, told apart by their labels too."""

_LIGHTNESS = (0.93, 0.86, 0.79, 0.72)
_HUES = 8


def _channel(linear: float) -> int:
    value = min(max(linear, 0.0), 1.0)
    curved = 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
    return round(255 * curved)


def oklch(lightness: float, chroma: float, hue: float) -> str:
    """The sRGB colour "#rrggbb" of an OKLCH triple (hue in degrees), clipped to the gamut."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    red = 4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short
    return f"#{_channel(red):02x}{_channel(green):02x}{_channel(blue):02x}"


@cache
def lane_colours() -> tuple[str, ...]:
    """32 fills, one a lane: eight hues (lane // 4), four lightnesses (lane % 4).

    They are the same in both themes and always carry dark labels.
    """
    return tuple(
        oklch(_LIGHTNESS[lane % 4], 0.085, 360 * (lane // 4) / _HUES + 25) for lane in range(32)
    )


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb" (WCAG 2)."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2)."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)
