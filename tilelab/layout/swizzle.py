"""XOR swizzles of shared-memory addresses.

Source: PTX ISA, "Tensors", section "Swizzling modes", and the CUDA driver's
CU_TENSOR_MAP_SWIZZLE_{128,64,32}B: the 16-byte chunk number within a row of 128, 64 or 32 bytes is
XORed with address bits taken from above bit 7. On byte addresses all three move 16-byte chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

from .digits import Index, malformed


@dataclass(frozen=True)
class Swizzle:
    """``offset ^ (((offset >> (base + shift)) % 2**bits) << base)``: its own inverse.

    bits: how many address bits change. base: the lowest of them (bits below stay, so runs of
    2**base units stay together). shift: how far above each the bit lies that is XORed in.
    The unit is the offset's: bytes for the named instances, elements after ``scaled``.

    Raises TileValueError unless bits >= 0, base >= 0 and shift >= bits (else it has no inverse).
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or self.shift < self.bits:
            raise malformed(
                f"{self} is no swizzle: a changed bit would also be a source bit",
                hint="bits and base must be at least 0, shift at least bits",
            )

    def apply(self, offset: Index) -> Index:
        """The swizzled offset; an int, a numpy array or an IR expression, like the argument."""
        if self.bits == 0:
            return offset
        return offset ^ (offset // 2 ** (self.base + self.shift) % 2**self.bits * 2**self.base)

    def scaled(self, unit_bytes: int) -> Swizzle:
        """The same swizzle on offsets counted in units of ``unit_bytes`` (a power of two)."""
        log = unit_bytes.bit_length() - 1
        if unit_bytes != 1 << log or log > self.base:
            raise malformed(f"{self} cannot be counted in units of {unit_bytes} bytes")
        return Swizzle(self.bits, self.base - log, self.shift)

    @property
    def span(self) -> int:
        """The period of the pattern, in the offset's unit: 1024, 512, 256 for the TMA modes."""
        return 1 << (self.base + self.shift + self.bits)

    @property
    def row(self) -> int:
        """Length of the row within which chunks move: 128, 64, 32 bytes for the TMA modes."""
        return 1 << (self.base + self.bits)


TMA_128B = Swizzle(bits=3, base=4, shift=3)
TMA_64B = Swizzle(bits=2, base=4, shift=3)
TMA_32B = Swizzle(bits=1, base=4, shift=3)
TMA_SWIZZLES = {128: TMA_128B, 64: TMA_64B, 32: TMA_32B}
"""The TMA (and wgmma) modes by the bytes in their row."""
