"""Bank conflicts of shared memory.

The model of NVIDIA GPUs: 32 banks of 4 bytes. A warp's access of up to 4 bytes a lane
is one phase; 8 bytes a lane take two phases (half-warps), 16 bytes four (quarter-warps, as do the
8-row fetches of ldmatrix). Within a phase, each bank serves one 4-byte word per wavefront, to any
number of lanes; so a phase takes as many wavefronts as its worst bank has distinct words.

All functions take byte addresses of shape (..., lanes), aligned to the access width, and an
optional bool mask ``active`` of the same shape; leading axes are independent accesses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .digits import malformed

BANKS = 32
BANK_BYTES = 4
PHASE_BYTES = BANKS * BANK_BYTES
WIDTHS = (1, 2, 4, 8, 16)


def phases(width_bytes: int, lanes: int = 32) -> list[range]:
    """The lanes that each phase of one access serves, in order.

    Raises TileValueError for a width that no access has (1, 2, 4, 8, 16 are).
    """
    if width_bytes not in WIDTHS:
        raise malformed(f"no shared-memory access is {width_bytes} bytes wide", hint=str(WIDTHS))
    step = PHASE_BYTES // max(width_bytes, BANK_BYTES)
    return [range(start, min(start + step, lanes)) for start in range(0, lanes, step)]


def phase_degrees(byte_addresses: Any, width_bytes: int, active: Any = None) -> NDArray[np.int64]:
    """Wavefronts of each phase: shape (..., phases); 0 where a phase has no active lane."""
    addresses = np.asarray(byte_addresses, dtype=np.int64)
    mask = np.broadcast_to(True if active is None else np.asarray(active, bool), addresses.shape)
    rows = addresses.reshape(-1, addresses.shape[-1])
    alive = mask.reshape(rows.shape)
    groups = phases(width_bytes, rows.shape[1])
    columns = [
        _worst_bank(rows[:, g.start : g.stop], alive[:, g.start : g.stop], width_bytes)
        for g in groups
    ]
    return np.stack(columns, axis=-1).reshape(*addresses.shape[:-1], len(groups))


def _worst_bank(rows: NDArray[np.int64], alive: NDArray[Any], width: int) -> NDArray[np.int64]:
    """Per row, the most distinct words that one bank has to serve."""
    per_lane = -(-width // BANK_BYTES)
    words = rows[:, :, None] // BANK_BYTES + np.arange(per_lane)
    words = np.where(alive[:, :, None], words, -1).reshape(len(rows), -1)
    words.sort(axis=1)
    first = words >= 0
    first[:, 1:] &= words[:, 1:] != words[:, :-1]
    row, column = np.nonzero(first)
    slots = row * BANKS + words[row, column] % BANKS
    counts = np.bincount(slots, minlength=len(rows) * BANKS)
    return counts.reshape(len(rows), BANKS).max(axis=1)


def wavefronts(byte_addresses: Any, width_bytes: int, active: Any = None) -> Any:
    """Wavefronts of each access, the sum over its phases: an int, or an array of shape (...)."""
    return _scalar(phase_degrees(byte_addresses, width_bytes, active).sum(axis=-1))


def ideal_wavefronts(byte_addresses: Any, width_bytes: int, active: Any = None) -> Any:
    """Wavefronts without any conflict: one per phase that has an active lane."""
    return _scalar((phase_degrees(byte_addresses, width_bytes, active) > 0).sum(axis=-1))


def conflict_degree(byte_addresses: Any, width_bytes: int, active: Any = None) -> Any:
    """The worst phase of each access: 1 without a conflict, n for an n-way one, 0 if idle."""
    return _scalar(phase_degrees(byte_addresses, width_bytes, active).max(axis=-1))


def lane_groups(byte_addresses: Any, width_bytes: int, active: Any = None) -> list[tuple[int, ...]]:
    """The lanes that each wavefront of one access serves, for drawing; addresses: (lanes,).

    There are ``wavefronts(...)`` groups; lanes that read the same word share one.
    """
    addresses = [int(a) for a in np.asarray(byte_addresses)]
    alive = [True] * len(addresses) if active is None else [bool(a) for a in np.asarray(active)]
    unit = max(width_bytes, BANK_BYTES)
    groups: list[tuple[int, ...]] = []
    for phase in phases(width_bytes, len(addresses)):
        # Lane widths are aligned, so a lane's words conflict as one unit: units that fall on
        # the same banks queue up, equal units ride together.
        queues: dict[int, list[int]] = {}
        waves: dict[int, list[int]] = {}
        for lane in phase:
            if not alive[lane]:
                continue
            queue = queues.setdefault(addresses[lane] // unit % (PHASE_BYTES // unit), [])
            if addresses[lane] // unit not in queue:
                queue.append(addresses[lane] // unit)
            waves.setdefault(queue.index(addresses[lane] // unit), []).append(lane)
        groups += [tuple(waves[k]) for k in sorted(waves)]
    return groups


def _scalar(values: NDArray[Any]) -> Any:
    return int(values) if values.ndim == 0 else values
