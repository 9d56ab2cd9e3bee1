"""The rows that are measured on a GPU: sizes, configurations, the work and its bound."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tilelab.target import SM80, SM90A
from tilelab.tile.structure import (
    FOLD_CLEAR,
    GROUP_ORDER,
    IN_FLIGHT,
    PERSISTENT,
    PLAIN,
    PRODUCER_WARP,
    STAGED_STORES,
)
from tilelab.views.variants import TEXTBOOK

Config = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """One row: `sizes` and `config` go to the program's `build`. `flops` are multiplications and
    additions, `moved` the bytes of all inputs and outputs once; the row's unit is TFLOP/s or, for
    work that memory bounds, TB/s. `fp8`: the tensor cores run at twice the 16-bit rate. `built`:
    how each implementation compiles it, where that is not the program's default."""

    name: str
    program: str
    sizes: tuple[int, ...]
    config: Config = field(default_factory=Config)
    flops: float = 0
    moved: float = 0
    in_bytes: bool = False
    fp8: bool = False
    built: dict[str, Config] = field(default_factory=dict[str, Config])

    @property
    def unit(self) -> str:
        return "TB/s" if self.in_bytes else "TFLOP/s"

    def rate(self, milliseconds: float) -> float:
        """In the row's unit."""
        return (self.moved if self.in_bytes else self.flops) / milliseconds / 1e9

    @property
    def bound(self) -> float:
        """The roofline in the row's unit: memory bandwidth, or the tensor cores' peak."""
        limits = SM90A.limits
        by_memory = self.moved / limits.dram_bytes_per_second
        peak = limits.tensor_flops_16bit * (2 if self.fp8 else 1)
        return self.rate(max(by_memory, self.flops / peak) * 1e3)

    def spec(self) -> Config:
        """What the worker needs, as JSON."""
        return {
            "program": self.program, "sizes": self.sizes, "config": self.config,
            "built": self.built,
        }  # fmt: skip


def _gemm(m: int, n: int, k: int, label: str, **config: Any) -> Measured:
    shape = f"{m}^3" if m == n == k else f"{m}x{n}x{k}"
    dtype = {"float16": "fp16", "bfloat16": "bf16"}[config.get("dtype", "float16")]
    moved = 2 * (m * k + k * n + m * n)
    return Measured(
        f"{dtype} {shape}, {label}", "gemm", (m, n, k), config, 2 * m * n * k, moved,
        in_bytes=False,
    )  # fmt: skip


SEED: Config = {"tile_m": 128, "tile_n": 128, "tile_k": 64, "stages": 3, "threads": 128}
LARGE: Config = {"tile_m": 128, "tile_n": 256, "tile_k": 64, "stages": 4, "threads": 256}
NARROW: Config = {"tile_m": 64, "tile_n": 64, "tile_k": 128, "stages": 4, "threads": 128}

GEMM = (
    *(_gemm(n, n, n, "128x128x64 s3 t128", **SEED) for n in (4096, 8192)),
    *(_gemm(n, n, n, "128x256x64 s4 t256", **LARGE) for n in (2048, 4096, 8192)),
    *(
        _gemm(8192, 4096, 1024, "128x256x64 s4 t256", dtype=d, **LARGE)
        for d in ("float16", "bfloat16")
    ),
    _gemm(64, 8192, 8192, "64x64x128 s4 t128", **NARROW),
)


_AMPERE: dict[str, Config] = {
    "tilelab": {"target": SM80.arch},
    "tilelang": {"pass_configs": {"tl.disable_wgmma": True, "tl.disable_warp_specialized": True}},
}
"""The structure of an Ampere kernel (cp.async, ldmatrix, mma), as each spells it. Both are machine
code of the GPU that they run on."""

AMPERE = tuple(
    replace(_gemm(n, n, n, label, **config), built=_AMPERE)
    for n in (2048, 4096, 8192)
    for label, config in (
        ("128x128x32 s4 t128", {**SEED, "tile_k": 32, "stages": 4}),
        ("128x128x64 s3 t128", SEED),
        ("128x256x32 s3 t256", {**LARGE, "tile_k": 32, "stages": 3}),
    )
    if n == 4096 or config is SEED
)

_OF_GEMM = (GROUP_ORDER, IN_FLIGHT, FOLD_CLEAR, STAGED_STORES, PRODUCER_WARP, PERSISTENT)
"""The switches that change a product's code, in the order of SWITCHES, so that the steps are those
that `tilelab.widgets.compare` shows."""


def ladder(row: Measured) -> dict[str, Config]:
    """The row's variants by step, each with the switches of the steps before."""
    on: Config = {PLAIN: True}
    found: dict[str, Config] = {TEXTBOOK: {"pass_configs": on}}
    for switch in _OF_GEMM:
        on = {**on, switch.key: switch.default}
        found[switch.what] = {"pass_configs": on}
    return found


LADDER = tuple(row for row in GEMM if row.config in (SEED, LARGE) and row.sizes[0] <= 8192)


def _attention(batch: int, heads: int, seq: int, dim: int, causal: bool, **config: Any) -> Measured:
    flops = 4 * batch * heads * seq * seq * dim / (2 if causal else 1)
    tiles = f"{config['tile_m']}x{config['tile_n']} t{config['threads']}"
    name = f"{batch}x{heads}x{seq}x{dim} {'causal' if causal else 'full'}, {tiles}"
    moved = 4 * 2 * batch * heads * seq * dim
    return Measured(
        name, "attention", (batch, heads, seq, dim), {"causal": causal, **config}, flops, moved
    )


def _tiles(m: int, n: int, threads: int) -> Config:
    return {"tile_m": m, "tile_n": n, "threads": threads}


ATTENTION = tuple(
    _attention(*shape, causal, **tiles)
    for shape, tiles, kinds in (
        ((2, 16, 8192, 128), _tiles(128, 128, 256), (False, True)),
        ((4, 32, 2048, 64), _tiles(192, 128, 384), (False, True)),
        ((1, 8, 1024, 64), _tiles(64, 64, 128), (True,)),
    )
    for causal in kinds
)


def _rows(program: str, threads: int) -> Measured:
    moved = 2 * 2 * 8192 * 8192
    name = f"{program} 8192x8192 fp16, {threads} threads a row"
    config = {"threads": threads}
    return Measured(name, program, (8192, 8192), config, moved=moved, in_bytes=True)


RMSNORM = tuple(_rows("rmsnorm", t) for t in (128, 256))
SOFTMAX = tuple(_rows("softmax", t) for t in (128, 256))

_CUBE = (8192, 8192, 8192)
FP8 = tuple(
    Measured(f"e4m3 8192^3, {label}", "fp8_gemm", _CUBE, config, 2 * 8192**3, 4 * 8192**2, fp8=True)
    for label, config in (
        ("128x256x128 s4 t256", {}),
        ("two levels, 128x128x128 s4 t256", {"two_levels": True, "tile_n": 128}),
    )
)


def _dequant(m: int, n: int, k: int, **config: Any) -> Measured:
    moved = 2 * m * k + n * k / 2 + 2 * n * k / 128 + 2 * m * n
    return Measured(
        f"int4 weights {m}x{n}x{k}, groups of 128", "dequant_gemm", (m, n, k), config,
        2 * m * n * k, moved,
    )  # fmt: skip


DEQUANT = (
    _dequant(4096, 4096, 4096),
    _dequant(64, 8192, 8192, tile_m=64, tile_n=64, tile_k=128, threads=128, stages=4),
)


def _decode(batch: int, heads: int, kv_heads: int, seq: int, dim: int, splits: int) -> Measured:
    moved = 2 * 2 * batch * seq * kv_heads * dim
    name = f"decode {batch}x{heads}/{kv_heads}x{seq}x{dim}, {splits} splits"
    sizes = (batch, heads, kv_heads, seq, dim, splits)
    return Measured(
        name, "decode", sizes, {}, 4 * batch * heads * seq * dim, moved, in_bytes=True
    )  # fmt: skip


DECODE = (_decode(16, 32, 8, 8192, 128, 2), _decode(1, 32, 8, 65536, 128, 16))
