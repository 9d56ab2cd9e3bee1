"""Machine code of a kernel: what it does most, and its listing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from tilelab.views.base import View, register
from tilelab.views.svg import Svg
from tilelab.views.table import table

SHOWN = 24
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[0-9T]+\s+)?([A-Z][A-Z0-9_]*)")
MEANINGS = {
    "HGMMA": "wgmma: tensor cores, a warpgroup", "QGMMA": "wgmma of 8-bit floats",
    "IGMMA": "wgmma of integers", "HMMA": "mma.sync: tensor cores, a warp",
    "IMMA": "mma.sync of integers", "DMMA": "mma.sync of float64", "QMMA": "mma.sync, 8-bit floats",
    "UTMALDG": "TMA load", "UTMASTG": "TMA store", "UTMAREDG": "TMA reduction",
    "LDGSTS": "cp.async", "LDSM": "ldmatrix", "STSM": "stmatrix", "SYNCS": "mbarrier",
    "BAR": "block barrier", "LDG": "global load", "STG": "global store", "LDS": "shared load",
    "STS": "shared store", "LDL": "spill load", "STL": "spill store", "MUFU": "special function",
    "SHFL": "shuffle", "USETMAXREG": "setmaxnreg", "WARPGROUP": "wgmma fence or wait",
    "ATOMG": "global atomic", "RED": "global reduction", "FFMA": "multiply and add",
}  # fmt: skip


@register
@dataclass(frozen=True)
class SassView(View):
    """How often each opcode stands in the listing, the most frequent first, and the listing."""

    kind: ClassVar[str] = "sass"
    kernel: str
    counts: tuple[tuple[str, int], ...]
    listing: str

    @property
    def total(self) -> int:
        """Instructions in all."""
        return sum(count for _, count in self.counts)

    def to_text(self) -> str:
        """The counts with their meanings, then the listing."""
        rows = [(name, count, MEANINGS.get(name, "")) for name, count in self.counts]
        head = f"SASS  {self.kernel}: {self.total:,} instructions"
        return "\n".join([head, table(("opcode", "times", "what"), rows), "", self.listing])

    def to_svg(self) -> str:
        """A bar for each of the most frequent opcodes."""
        shown = self.counts[:SHOWN]
        svg = Svg(
            f"sass-{self.kernel}", 720, 70 + 20 * len(shown), self.title,
            f"{self.total} instructions; " + ", ".join(f"{n} {c}" for n, c in shown),
        )  # fmt: skip
        svg.text(24, 32, f"{self.title}: {self.total:,} instructions", size=15, bold=True)
        most = max((count for _, count in shown), default=1)
        for row, (name, count) in enumerate(shown):
            y = 52 + 20 * row
            svg.text(112, y + 13, name, size=12, anchor="end", mono=True)
            svg.rect(120, y, 330 * count / most, 16, "load", "load-edge")
            words = f"{count}  {MEANINGS.get(name, '')}".rstrip()
            svg.text(128 + 330 * count / most, y + 13, words, "muted", size=11)
        return svg.render()


def sass_view(kernel: str, listing: str) -> SassView:
    """The machine code of a kernel from nvdisasm's listing."""
    counts = Counter(_INSTRUCTION.findall(listing))
    return SassView(f"Machine code of {kernel}", kernel, tuple(counts.most_common()), listing)
