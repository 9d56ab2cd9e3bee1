"""Bank conflicts of shared memory. Hides how a warp's access is cut into wavefronts.

The model of NVIDIA GPUs: 32 banks of 4 bytes. A warp's access of up to 4 bytes a lane
is one phase; 8 bytes a lane take two phases (half-warps), 16 bytes four (quarter-warps, as do the
8-row fetches of ldmatrix). Within a phase, each bank serves one 4-byte word per wavefront, to any
number of lanes; so a phase takes as many wavefronts as its worst bank has distinct words.

A plain load (``load=True``; no store, no ldmatrix) of 8 or 16 bytes a lane may have fewer phases:
when every active lane i agrees with lane i^1, or every one with lane i^2 (the same address, or
that lane is idle), the phases 0 and 1, and 2 and 3, ride together. Measured on an H200:
tests/data/banks_h200.json holds the counters of 87 patterns.

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


def phase_degrees(
    byte_addresses: Any, width_bytes: int, active: Any = None, *, load: bool = False
) -> NDArray[np.int64]:
    """Wavefronts of each phase: shape (..., phases); 0 where a phase has no active lane, or
    rides with the one before it."""
    addresses = np.asarray(byte_addresses, dtype=np.int64)
    mask = np.broadcast_to(True if active is None else np.asarray(active, bool), addresses.shape)
    rows = addresses.reshape(-1, addresses.shape[-1])
    alive = mask.reshape(rows.shape)
    groups = phases(width_bytes, rows.shape[1])
    degrees = np.stack([_degrees(rows, alive, g, width_bytes) for g in groups], axis=-1)
    together = _rides_together(rows, alive) if load and width_bytes > BANK_BYTES else None
    if together is not None and together.any():
        for at, both in enumerate(_joined(groups)):
            merged = _degrees(rows[together], alive[together], both, width_bytes)
            degrees[together, 2 * at : 2 * at + 2] = 0
            degrees[together, 2 * at] = merged
    return degrees.reshape(*addresses.shape[:-1], len(groups))


def _joined(groups: list[range]) -> list[range]:
    """Phases where two at a time ride together."""
    pairs = [groups[at : at + 2] for at in range(0, len(groups), 2)]
    return [range(pair[0].start, pair[-1].stop) for pair in pairs]


def _degrees(
    rows: NDArray[np.int64], alive: NDArray[Any], lanes: range, width: int
) -> NDArray[np.int64]:
    part = slice(lanes.start, lanes.stop)
    return _worst_bank(rows[:, part], alive[:, part], width)


def _rides_together(rows: NDArray[np.int64], alive: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether all lanes of an access agree with a neighbour, at distance 1 or at distance 2."""
    count = rows.shape[1] + -rows.shape[1] % 4
    at = np.zeros((len(rows), count), np.int64)
    on = np.zeros((len(rows), count), np.bool_)
    at[:, : rows.shape[1]], on[:, : rows.shape[1]] = rows, alive
    found = np.zeros(len(rows), np.bool_)
    for bit in (1, 2):
        other = [lane ^ bit for lane in range(count)]
        agree = (at == at[:, other]) | ~on | ~on[:, other]
        found |= agree.all(axis=1)
    return found


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


def wavefronts(
    byte_addresses: Any, width_bytes: int, active: Any = None, *, load: bool = False
) -> Any:
    """Wavefronts of each access, the sum over its phases: an int, or an array of shape (...)."""
    return _scalar(phase_degrees(byte_addresses, width_bytes, active, load=load).sum(axis=-1))


def ideal_wavefronts(
    byte_addresses: Any, width_bytes: int, active: Any = None, *, load: bool = False
) -> Any:
    """Wavefronts without any conflict: one per phase that has an active lane."""
    degrees = phase_degrees(byte_addresses, width_bytes, active, load=load)
    return _scalar((degrees > 0).sum(axis=-1))


def conflict_degree(
    byte_addresses: Any, width_bytes: int, active: Any = None, *, load: bool = False
) -> Any:
    """The worst phase of each access: 1 without a conflict, n for an n-way one, 0 if idle."""
    return _scalar(phase_degrees(byte_addresses, width_bytes, active, load=load).max(axis=-1))


def lane_groups(
    byte_addresses: Any, width_bytes: int, active: Any = None, *, load: bool = False
) -> list[tuple[int, ...]]:
    """The lanes that each wavefront of one access serves, for drawing; addresses: (lanes,).

    There are ``wavefronts(...)`` groups; lanes that read the same word share one.
    """
    row = np.asarray(byte_addresses, dtype=np.int64)
    on = np.broadcast_to(True if active is None else np.asarray(active, bool), row.shape)
    addresses, alive = row.tolist(), on.tolist()
    parts = phases(width_bytes, len(addresses))
    if load and width_bytes > BANK_BYTES and _rides_together(row[None], on[None])[0]:
        parts = _joined(parts)
    unit = max(width_bytes, BANK_BYTES)
    groups: list[tuple[int, ...]] = []
    for phase in parts:
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
