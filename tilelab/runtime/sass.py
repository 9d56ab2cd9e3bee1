"""Machine code as text, and what is counted in it.

Hides the nvdisasm program and the format of its listing.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tilelab.errors import TileRuntimeError
from tilelab.runtime import wheels


@dataclass(frozen=True)
class Instruction:
    """One SASS instruction: "@!P0 HGMMA.64x128x16.F32 R24, ..." of kernel `function`."""

    function: str
    address: int
    predicate: str
    opcode: str
    operands: str

    @property
    def base(self) -> str:
        """The opcode without its modifiers: "HGMMA"."""
        return self.opcode.split(".", 1)[0]


def disassemble(cubin: bytes, *, lines: bool = False) -> str:
    """The SASS listing of a cubin, with the source lines of one built with `-lineinfo` if asked.
    TileRuntimeError (TL1601) when nvdisasm is not installed."""
    binary = wheels.nvdisasm_binary()
    if binary is None:
        raise wheels.missing(wheels.NVDISASM, "nvdisasm, the disassembler,")
    with tempfile.TemporaryDirectory(prefix="tilelab-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        marks = ["--print-line-info-inline"] if lines else []
        command = [str(binary), "--print-code", *marks, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TileRuntimeError(
            f"nvdisasm cannot read this cubin: {(done.stderr or done.stdout).strip()}",
            code="TL1605",
            hint=f"install the newest: {wheels.pip_command(wheels.NVDISASM)}",
        )
    return done.stdout


_SECTION = re.compile(r"^\s*//-+ \.text\.(\S+)|^\s*\.section\s+\.text\.([^,\s]+)")
_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(@!?U?P[0-9T]+\s+)?([A-Z][A-Z0-9_.a-z]*)\s*([^;]*);")


def instructions(sass: str) -> Iterator[Instruction]:
    """The instructions of a listing, in order, with the kernel that holds each."""
    function = ""
    for line in sass.splitlines():
        if section := _SECTION.search(line):
            function = section[1] or section[2]
        elif match := _LINE.search(line):
            address, predicate, opcode, operands = match.groups()
            yield Instruction(
                function, int(address, 16), (predicate or "").strip(), opcode, operands.strip()
            )


_PLACE = re.compile(r'^\s*//## File ".*line (\d+)\s*$')


def with_lines(cubin: bytes) -> list[tuple[int | None, Instruction]]:
    """Every instruction with the line of the CUDA text that it was compiled from (None before the
    first that is known): of a helper that was inlined, the line that calls it. `cubin` must be
    built with `-lineinfo`."""
    found: list[tuple[int | None, Instruction]] = []
    line: int | None = None
    function = ""
    for text in disassemble(cubin, lines=True).splitlines():
        if section := _SECTION.search(text):
            function, line = section[1] or section[2], None
        elif place := _PLACE.search(text):
            line = int(place[1])
        else:
            for instruction in instructions(text):
                found.append((line, replace(instruction, function=function)))
    return found


def opcode_counts(sass: str) -> Counter[str]:
    """How often each opcode stands in a listing, modifiers left out ("HGMMA", "UTMALDG")."""
    return Counter(instruction.base for instruction in instructions(sass))
