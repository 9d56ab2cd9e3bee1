"""Suggested tile sizes for a matrix multiplication, from the chip's limits.

Every combination of usual tile sizes that fits into shared memory and registers is ranked by a
model of a pipelined loop: arithmetic, operand traffic and the latency of loads, in whole rounds
of the chip's multiprocessors, and never faster than device memory brings the operands once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilelab.absent import absent
from tilelab.carver.arch.cuda import CUDA
from tilelab.carver.roller.hint import Hint
from tilelab.carver.roller.rasterization import NoRasterization, Rasterization2DRow
from tilelab.dtypes import as_dtype
from tilelab.target import REGISTERS_BESIDE_TILES, Limits
from tilelab.thread.occupancy import occupancy
from tilelab.tile.ops.gemm_plan import GemmPlan, GemmWarpPolicy, Request, Side, plan_gemm

_ROWS_AND_COLS = (32, 64, 128, 256)
_DEPTH_BYTES = (64, 128, 256)  # of a row of a stage: half, all and twice the widest swizzle
_STAGES, _THREADS = (2, 3, 4), (128, 256)
_WARPS_OF = {"wgmma": 4, "mma": 1}
_CYCLE_SECONDS = 1 / 1.6e9
_L2_BYTES_PER_CYCLE = 64  # that a multiprocessor gets from the L2 cache
_LONE_WARPGROUP = 0.93  # of the tensor cores' rate, measured: nobody fills the gaps of one consumer
_EPILOGUE_CYCLES = 0.14  # for each element of a tile, measured: its sums leave the registers
_LOAD_SECONDS = 1.5e-6  # from asking for a tile to its arrival, while every multiprocessor loads
_STEP_SECONDS = 0.01e-6  # the barriers of a step
_PANEL = 8


@dataclass(frozen=True)
class MatmulTemplate:
    """C (M x N) = A (M x K) @ B (N x K, with `trans_B`)."""

    M: int
    N: int
    K: int
    trans_A: bool = False
    trans_B: bool = True
    in_dtype: Any = "float16"
    out_dtype: Any = "float16"
    accum_dtype: Any = "float32"
    with_bias: bool = False
    arch: CUDA | None = None

    def with_arch(self, arch: CUDA) -> MatmulTemplate:
        """The same for a chip."""
        return replace(self, arch=arch)

    def equivalent_function(self) -> Callable[..., Any]:
        """The computation on torch tensors: (A, B[, bias]) -> C."""

        def matmul(a: Any, b: Any, bias: Any = None) -> Any:
            left, right = (a.T if self.trans_A else a), (b.T if self.trans_B else b)
            product = left.float() @ right.float()
            return (product if bias is None else product + bias).to(left.dtype)

        return matmul

    def recommend_hints(self, topk: int = 10) -> list[Hint]:
        """The `topk` best suggestions, best first; empty when no tile fits the problem's types."""
        found = sorted(self._hints(), key=lambda hint: hint.modelled_ms)
        return found[:topk]

    def _hints(self) -> Iterator[Hint]:
        element = as_dtype(self.in_dtype).bytes
        depths = [width // element for width in _DEPTH_BYTES if width // element <= self.K]
        sizes = itertools.product(_ROWS_AND_COLS, _ROWS_AND_COLS, depths, _THREADS)
        for rows, cols, depth, threads in sizes:
            plan = self._plan((rows, cols, depth), threads)
            if plan is None:
                continue
            for stages in _STAGES:
                hint = self._hint(plan, threads, stages)
                if hint is not None:
                    yield hint

    @property
    def _chip(self) -> CUDA:
        return self.arch or CUDA()

    def _plan(self, extents: tuple[int, int, int], threads: int) -> GemmPlan | None:
        """How the compiler would share the tile; None where it cannot, or leaves warps idle."""
        dtype, total = as_dtype(self.in_dtype), as_dtype(self.accum_dtype)
        a = Side(dtype, in_registers=False, k_major=not self.trans_A)
        b = Side(dtype, in_registers=False, k_major=self.trans_B)
        asked = Request(*extents, threads, GemmWarpPolicy.AUTO, a, b, total)
        plan = plan_gemm(asked, self._chip.target.features)
        return plan if plan.kind in _WARPS_OF and plan.copies == 1 else None

    def _hint(self, plan: GemmPlan, threads: int, stages: int) -> Hint | None:
        limits = self._chip.target.limits
        element, accumulator = (as_dtype(t).bytes for t in (self.in_dtype, self.accum_dtype))
        shared = stages * (plan.m + plan.n) * plan.k * element
        registers = plan.m * plan.n * accumulator // 4 // threads + REGISTERS_BESIDE_TILES
        if shared > limits.shared_per_block or registers > limits.registers_per_thread:
            return None
        resident = occupancy(shared, threads, registers, limits).blocks
        if resident < 1:
            return None
        warp_rows = plan.warps_m * _WARPS_OF[plan.kind]
        operands = (self.M + self.N) * self.K * element
        order = Rasterization2DRow(_PANEL) if operands > limits.l2_bytes // 2 else NoRasterization
        seconds = self._seconds(plan, resident, stages, limits, element)
        return Hint(
            (plan.m, plan.n), (plan.m // warp_rows, plan.n // plan.warps_n), (plan.k,), stages,
            threads, order, shared, registers, resident, 1e3 * seconds,
        )  # fmt: skip

    def _seconds(
        self, plan: GemmPlan, resident: int, stages: int, limits: Limits, element: int
    ) -> float:
        """Rounds of blocks, each a wait for its first load and then its steps; a step takes its
        arithmetic, its share of the memory traffic, or what loads in flight leave uncovered."""
        blocks = -(-self.M // plan.m) * -(-self.N // plan.n)
        rounds = -(-blocks // (limits.sms * resident))
        here = min(resident, -(-blocks // limits.sms))  # blocks that a multiprocessor really gets
        flops = 2.0 * plan.m * plan.n * plan.k * here
        traffic = float((plan.m + plan.n) * plan.k * element * here)
        lone = plan.kind == "wgmma" and plan.warps_m * plan.warps_n * here == 1
        step = max(
            flops * limits.sms / limits.tensor_flops_16bit / (_LONE_WARPGROUP if lone else 1.0),
            traffic / _L2_BYTES_PER_CYCLE * _CYCLE_SECONDS,
            _LOAD_SECONDS / (stages - 1),
        )
        epilogue = plan.m * plan.n * here * _EPILOGUE_CYCLES * _CYCLE_SECONDS
        steps = -(-self.K // plan.k) * (step + _STEP_SECONDS)
        once = (self.M + self.N) * self.K * element / limits.dram_bytes_per_second
        return max(rounds * (_LOAD_SECONDS + steps + epilogue), once)


_WHY = "suggestions are made for matrix multiplications only"
_HINT = "list the configs yourself, and let autotune choose"
ConvTemplate = absent("carver.template.ConvTemplate", _WHY, _HINT)
ElementwiseTemplate = absent("carver.template.ElementwiseTemplate", _WHY, _HINT)
FlashAttentionTemplate = absent("carver.template.FlashAttentionTemplate", _WHY, _HINT)
GEMVTemplate = absent("carver.template.GEMVTemplate", _WHY, _HINT)
GeneralReductionTemplate = absent("carver.template.GeneralReductionTemplate", _WHY, _HINT)
