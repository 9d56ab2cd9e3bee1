"""How configs are measured, and the check of what a user passes as configs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tilelab.errors import TileTypeError, TileValueError, TileWarning
from tilelab.runtime.supply import TensorSupplyType

PASS_CONFIGS = "pass_configs"
"""The key of a config that goes to the compiler and not to the function."""

Config = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What autotune and AutoTuner.set_profile_args take.

    `warmup` and `rep` are milliseconds, `timeout` seconds for each config. `ref_prog(*inputs)`
    gives the right outputs, of which `max_mismatched_ratio` may differ by more than `rtol` and
    `atol`; `manual_check_prog(outputs, references)` judges in its place. `supply_prog(params)`
    makes the inputs. With `early_stop`, a config whose first runs take `early_stop_factor` times
    the best is not measured further.
    """

    warmup: float = 25
    rep: float = 100
    timeout: float | None = 100
    supply_type: TensorSupplyType = TensorSupplyType.Auto
    ref_prog: Callable[..., Any] | None = None
    supply_prog: Callable[..., Any] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., Any] | None = None
    cache_input_tensors: bool = False
    backend: str = "event"
    early_stop: bool = False
    early_stop_factor: float = 2.0

    def __post_init__(self) -> None:
        for name in ("warmup", "rep", "timeout", "rtol", "atol", "max_mismatched_ratio",
                     "early_stop_factor"):  # fmt: skip
            value = getattr(self, name)
            known = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
            if not known and not (name == "timeout" and value is None):
                raise TileTypeError(
                    f"autotune({name}={value!r}) is no number of 0 or more", code="TL1651",
                    hint="warmup and rep are milliseconds, timeout seconds (None: no limit)",
                )  # fmt: skip

    @property
    def checks(self) -> bool:
        """Whether results are compared with a reference."""
        return self.ref_prog is not None and not self.skip_check


def as_configs(configs: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> list[Config]:
    """`configs` as a list of dicts; a callable makes them from the call's arguments.

    TileTypeError (TL1651) for anything else, and TileValueError (TL1651) for an empty list.
    """
    made = configs(*args, **(kwargs or {})) if callable(configs) else configs
    if isinstance(made, Mapping) or not isinstance(made, Iterable):
        raise _no_configs(made)
    listed: list[Any] = list(made)  # pyright: ignore[reportUnknownArgumentType]
    for config in listed:
        if not isinstance(config, Mapping):
            raise _no_configs(config)
    if not listed:
        raise TileValueError(
            "autotune got no configs", code="TL1651",
            hint="pass at least one dict of arguments, such as {'block_M': 64}",
        )  # fmt: skip
    return [dict(config) for config in listed]


def _no_configs(value: Any) -> TileTypeError:
    return TileTypeError(
        f"autotune configs are dicts of arguments, got {value!r}", code="TL1651",
        hint="write configs=[{'block_M': 64}, {'block_M': 128}], or a function that returns that",
    )  # fmt: skip


def tunable(configs: Iterable[Config]) -> tuple[str, ...]:
    """Names of the arguments that the configs vary, in order of first appearance."""
    return tuple(dict.fromkeys(k for c in configs for k in c if k != PASS_CONFIGS))


def config_text(config: Mapping[str, Any]) -> str:
    """A config on one line: "block_M=64, num_stages=2"."""
    return ", ".join(f"{key}={value}" for key, value in config.items())


_told: set[str] = set()


def tell_inactive(where: str, options: Mapping[str, Any], known: Iterable[str]) -> None:
    """Warn, once for each, of options that change nothing here. TileTypeError (TL1651) for one
    that TileLang does not have either."""
    names = set(known)
    for name, value in options.items():
        if name not in names:
            raise TileTypeError(
                f"{where} has no argument {name!r}", code="TL1651",
                hint="it takes " + ", ".join(sorted({*Settings.__dataclass_fields__, *names})),
            )  # fmt: skip
        if value and name not in _told:
            _told.add(name)
            warnings.warn(f"{where}: {name} has no effect in tilelab", TileWarning, stacklevel=3)
