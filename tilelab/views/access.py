"""One memory access of one warp: which lanes meet in which bank or sector, wavefront by wavefront.

Shared memory is served by 32 banks of 4 bytes (`tilelab.layout.banks` is the model); global memory
in sectors of 32 bytes. Hides how lanes are put into wavefronts and sectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelab.errors import TileValueError
from tilelab.layout import banks
from tilelab.views.access_svg import draw
from tilelab.views.base import View, register
from tilelab.views.table import plural, spans, table

WARP, SECTOR = 32, 32
SPACES = ("shared", "global")


@dataclass(frozen=True)
class Wave:
    """Lanes that are served together: one wavefront of shared memory, or one global sector.

    `place` is the number of the wavefront, or the sector's first byte address.
    """

    place: int
    lanes: tuple[int, ...]


@register
@dataclass(frozen=True)
class AccessView(View):
    """An access of up to 32 lanes, `width` bytes each; `addresses` in bytes, -1 for an idle lane.

    `elements` says what each lane asks for, in words. `ideal` is the number of waves that the
    same bytes would take at best.
    """

    kind: ClassVar[str] = "access"
    space: str
    buffer: str
    what: str
    width: int
    addresses: tuple[int, ...]
    elements: tuple[str, ...]
    waves: tuple[Wave, ...]
    ideal: int
    line: int | None

    @property
    def degree(self) -> float:
        """Waves taken for each wave needed: 1 is free of conflicts, or perfectly coalesced."""
        return len(self.waves) / self.ideal if self.ideal else 1.0

    @property
    def unit(self) -> str:
        """What a wave is called in this memory."""
        return "wavefront" if self.space == "shared" else "sector"

    def banks_of(self, lane: int) -> tuple[int, ...]:
        """The banks that a lane's bytes lie in (shared memory)."""
        address = self.addresses[lane]
        words = range(address // 4, (address + self.width - 1) // 4 + 1)
        return tuple(word % banks.BANKS for word in words)

    def cells_of(self, wave: Wave) -> dict[int, list[int]]:
        """The banks (or bytes of the sector) that a wave serves, each with its lanes in order."""
        unit = 4 if self.space == "shared" else 1
        found: dict[int, list[int]] = {}
        for lane in wave.lanes:
            address = self.addresses[lane]
            for cell in range(address // unit, (address + self.width - 1) // unit + 1):
                if unit == 4 or wave.place <= cell < wave.place + SECTOR:
                    found.setdefault(cell % banks.BANKS, []).append(lane)
        return found

    def verdict(self) -> str:
        """One sentence: the waves, the ideal, and what their ratio means."""
        took = f"{plural(len(self.waves), self.unit)} where {self.ideal} would do"
        if len(self.waves) <= self.ideal:
            good = "no bank conflict" if self.space == "shared" else "fully coalesced"
            return f"{plural(len(self.waves), self.unit)}: {good}"
        if self.space == "shared":
            return f"{took}: {self.degree:.3g}-way bank conflict"
        return f"{took}: {self.degree:.3g} times the bytes are moved"

    def to_text(self) -> str:
        """The verdict, then each wave with its lanes, then each lane with its address."""
        where = f", line {self.line}" if self.line else ""
        head = f"ACCESS  {self.what} {self.buffer}{where}: {self.verdict()}"
        waves = [(wave.place, spans(wave.lanes)) for wave in self.waves]
        lanes = [
            (lane, address, *self._bank_cells(lane), self.elements[lane])
            for lane, address in enumerate(self.addresses)
            if address >= 0
        ]
        columns = ("lane", "byte", *(["banks"] if self.space == "shared" else []), "element")
        return "\n".join([head, table((self.unit, "lanes"), waves), "", table(columns, lanes), ""])

    def _bank_cells(self, lane: int) -> list[str]:
        return [spans(self.banks_of(lane))] if self.space == "shared" else []

    def to_svg(self) -> str:
        """Banks (or bytes of a sector) across, waves down, the lanes in their cells."""
        return draw(self)


def _sectors(addresses: Sequence[int], width: int, load: bool) -> tuple[tuple[Wave, ...], int]:
    """The sectors that lanes touch, and the fewest that could hold their distinct bytes."""
    found: dict[int, list[int]] = {}
    distinct: set[int] = set()
    for lane, address in enumerate(addresses):
        if address >= 0:
            distinct.update(range(address, address + width))
            for sector in range(address // SECTOR, (address + width - 1) // SECTOR + 1):
                found.setdefault(sector * SECTOR, []).append(lane)
    waves = tuple(Wave(place, tuple(found[place])) for place in sorted(found))
    return waves, -(-len(distinct) // SECTOR)


def _wavefronts(addresses: Sequence[int], width: int, load: bool) -> tuple[tuple[Wave, ...], int]:
    active = [address >= 0 for address in addresses]
    shown = [max(address, 0) for address in addresses]
    groups = banks.lane_groups(shown, width, active, load=load)
    waves = tuple(Wave(number, lanes) for number, lanes in enumerate(groups))
    return waves, int(banks.ideal_wavefronts(shown, width, active, load=load))


def _checked(space: str, addresses: Sequence[int], width: int) -> None:
    if space not in SPACES:
        raise TileValueError(
            f"space={space!r} is no memory", code="TL1711", hint="one of " + ", ".join(SPACES)
        )
    if not 0 < len(addresses) <= WARP:
        raise TileValueError(
            f"addresses has {len(addresses)} entries; an access is one warp's",
            code="TL1711",
            hint="give 1 to 32 byte addresses, -1 for an idle lane",
        )
    if width not in banks.WIDTHS or any(a >= 0 and a % width for a in addresses):
        raise TileValueError(
            f"width={width} bytes does not fit the addresses",
            code="TL1711",
            hint="1, 2, 4, 8 or 16 bytes, and every address a multiple of it",
        )


def access_view(
    addresses: Sequence[int], width: int, *, space: str = "shared", buffer: str = "tile",
    what: str = "read of", elements: Sequence[Any] = (), line: int | None = None,
    load: bool = False,
) -> AccessView:  # fmt: skip
    """The picture of one warp's access.

    addresses: byte addresses, one a lane (up to 32), -1 where a lane is idle; width: bytes a lane
    (1, 2, 4, 8, 16); space: "shared" or "global"; elements: what each lane asks for, in words;
    load: whether it is a plain load, whose phases may ride together (`tilelab.layout.banks`).
    TileValueError (TL1711) for another space, more lanes, or addresses that `width` does not
    divide.
    """
    places = tuple(int(a) for a in addresses)
    _checked(space, places, width)
    waves, ideal = (_wavefronts if space == "shared" else _sectors)(places, width, load)
    words = tuple(map(str, elements)) or tuple("" for _ in places)
    return AccessView(
        title=f"One warp's {what} {buffer}",
        space=space,
        buffer=buffer,
        what=what,
        width=width,
        addresses=places,
        elements=words,
        waves=waves,
        ideal=ideal,
        line=line,
    )
