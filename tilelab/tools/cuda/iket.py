"""TileLang's in-kernel event tracing: not here, and every name says so when it is used."""

from __future__ import annotations

from tilelab.absent import absent

_WHY = "kernels are not instrumented for tracing"
_HINT = "kernel.simulate(...) returns events of every wait, copy and barrier"
mark = absent("iket.mark", _WHY, _HINT)
range = absent("iket.range", _WHY, _HINT)  # TileLang's name
range_start = absent("iket.range_start", _WHY, _HINT)
range_end = absent("iket.range_end", _WHY, _HINT)
payload = absent("iket.payload", _WHY, _HINT)
session = absent("iket.session", _WHY, _HINT)
output_path = absent("iket.output_path", _WHY, _HINT)
