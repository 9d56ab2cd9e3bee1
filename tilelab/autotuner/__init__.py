"""Autotuning: every config compiled, checked, timed; the best kernel kept.

`@autotune(configs=...)` above `@tilelab.jit` tunes at the first call; `AutoTuner` does the same
step by step. `set_autotune_inputs` gives the tuner real tensors.
"""

from tilelab.autotuner.capture import get_autotune_inputs, set_autotune_inputs
from tilelab.autotuner.decorator import AutoTuneImpl, autotune
from tilelab.autotuner.search import AutotuneResult, Trial
from tilelab.autotuner.tuner import AutoTuner

__all__ = [
    "AutoTuneImpl", "AutoTuner", "AutotuneResult", "Trial", "autotune", "get_autotune_inputs",
    "set_autotune_inputs",
]  # fmt: skip
