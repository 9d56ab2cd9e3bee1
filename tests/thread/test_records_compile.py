"""Every instruction record compiles for its target and becomes the instruction it names."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.thread.nvrtc import compile_cuda, needs_nvrtc, source_with
from tilelab.target import SM80, SM90A, Target
from tilelab.thread import Intrinsic
from tilelab.thread import intrinsics as I
from tilelab.thread.intrinsics import descriptor_text
from tilelab.thread.intrinsics.tensor_core import ACCUMULATORS, OPERANDS

_OPERANDS = {
    "bar": "bars[i]", "map": "map", "dst": "R", "src": "R", "regs": "R", "row": "smem",
    "d": "D", "a": "R", "b": "R", "value": "D[0]", "ok": "i > 3",
}  # fmt: skip
_PLACES = {
    "ldmatrix": {"src": "smem + i"}, "stmatrix": {"dst": "smem + i"},
    "cp_async": {"dst": "smem + i", "src": "G + i"}, "tma": {"dst": "smem", "src": "smem"},
    "wgmma": {"a": "desc_a", "b": "desc_b"}, "quad": {"dst": "R", "src": "R + 8"},
    "shuffle": {"dst": "D"},
    "named": {"id": "1", "threads": "128"},
}  # fmt: skip


def _typed(record: Intrinsic) -> dict[str, str]:
    """Registers of a tensor-core record as pointers to its types."""
    found = [t for t in record.name.split("_") if t in OPERANDS or t in ACCUMULATORS]
    if not found or not record.name.startswith(("mma", "wgmma", "fence_registers")):
        return {}
    acc = found[-1] if len(found) > 1 or found[0] not in OPERANDS else "f32"
    if record.name.startswith("fence_registers"):
        acc = found[-1]
    places = {"d": f"({ACCUMULATORS[acc].cuda}*)D"}
    if found[0] in OPERANDS:
        a, b = (OPERANDS[t].cuda for t in (found[0], found[1] if len(found) > 2 else found[0]))
        places |= {"a": f"(const {a}*)R", "b": f"(const {b}*)R"}
    return places


def _call(record: Intrinsic) -> str:
    places = dict(_OPERANDS) | _typed(record)
    for prefix, own in _PLACES.items():
        if record.name.startswith(prefix):
            places.update(own)
    if record.name.startswith("wgmma_rs"):
        places["a"] = _typed(record)["a"]
    return record.call.format(**{p.name: places.get(p.name, "i") for p in record.operands})


def _kernel(record: Intrinsic, name: str) -> str:
    element = "__nv_bfloat16" if "bf16" in record.name else "half"
    a, b, call = "0", "0", _call(record)
    if record.name.startswith("wgmma"):
        a = descriptor_text("smem", 16, 1024, 128)
        b = descriptor_text("smem + 4096", 8192, 1024, 64, "2")
        call = f"""tl::fence_registers<128>(D);
  tl::warpgroup_arrive();
  {call};
  tl::warpgroup_commit();
  tl::warpgroup_wait<0>();
  tl::fence_registers<128>(D)"""
    return f"""
extern "C" __global__ void __launch_bounds__(128, 1) {name}({element}* G, float* F, int i, int n,
    const __grid_constant__ TensorMap map) {{
  extern __shared__ __align__(1024) char bytes[];
  {element}* smem = ({element}*)bytes;
  __shared__ u64 bars[4];
  alignas(16) {element} R[16];
  alignas(16) float D[128];
  u64 desc_a = {a}, desc_b = {b};
  for (int j = 0; j < 16; ++j) R[j] = G[threadIdx.x * 16 + j];
#pragma unroll
  for (int j = 0; j < 128; ++j) D[j] = F[threadIdx.x * 128 + j];
  {call};
  for (int j = 0; j < 16; ++j) G[threadIdx.x * 16 + j] = R[j];
  if (n) {{
#pragma unroll
    for (int j = 0; j < 128; ++j) F[threadIdx.x * 128 + j] = D[j];
  }}
  bars[i & 3] += (desc_a ^ desc_b) & 1;
}}"""


HOPPER = [
    (I.MBARRIER_EXPECT_TX, "SYNCS"), (I.MBARRIER_WAIT, "SYNCS"),
    (I.MBARRIER_INIT_FENCE, ""), (I.FENCE_PROXY_ASYNC, "FENCE"),
    (I.PREFETCH_TENSORMAP, "CCTL"), *((I.tma_load(r), "UTMALDG") for r in range(1, 6)),
    *((I.tma_store(r), "UTMASTG") for r in range(1, 6)), (I.TMA_STORE_COMMIT, "UTMACMDFLUSH"),
    (I.tma_store_wait(1), "DEPBAR"), (I.tma_store_wait_read(0), "DEPBAR"),
    *((I.stmatrix(n, t), "STSM") for n in (1, 2, 4) for t in (False, True)),
    (I.WARPGROUP_ARRIVE, ""), (I.WARPGROUP_COMMIT, ""), (I.warpgroup_wait(0), ""),
    (I.warpgroup_reg_alloc(240), "USETMAXREG"), (I.warpgroup_reg_dealloc(24), "USETMAXREG"),
    (I.fence_registers(128), ""),
    *((I.wgmma_ss(n, t, a, b), "HGMMA") for n, t, a, b in [
        (8, "f16", False, False), (128, "f16", False, True), (256, "bf16", True, False),
        (176, "bf16", True, True), (64, "f16", False, False)]),
    *((I.wgmma_ss(n, a, b=b, acc=acc), sass) for n, a, b, acc, sass in [
        (64, "f16", "f16", "f16", "HGMMA.64x64x16.F16"), (96, "tf32", "tf32", "f32", "TF32"),
        (176, "e4m3", "e5m2", "f32", "QGMMA.64x176x32.F32.E4M3.E5M2"),
        (256, "e5m2", "e5m2", "f16", "QGMMA.64x256x32.F16"),
        (24, "s8", "s8", "s32", "IGMMA.64x24x32.S8.S8"),
        (256, "u8", "s8", "s32", "IGMMA.64x256x32.U8.S8")]),
    *((I.wgmma_rs(64, a, b=b, acc=acc), sass) for a, b, acc, sass in [
        ("tf32", "tf32", "f32", "HGMMA.64x64x8.F32.TF32"), ("e4m3", "e4m3", "f32", "QGMMA"),
        ("s8", "u8", "s32", "IGMMA.64x64x32.S8.U8"), ("f16", "f16", "f16", "HGMMA.64x64x16.F16")]),
    *((I.fence_registers(64, acc), "") for acc in ("f16", "s32")),
    (I.mma_sync("e4m3"), "HMMA"), (I.mma_sync("e5m2", "e4m3"), "HMMA"),
    (I.mma_sync("f64", acc="f64"), "DMMA"),
    *((I.wgmma_rs(n, t, b), "HGMMA") for n, t, b in [
        (8, "f16", False), (128, "bf16", True), (256, "f16", True)]),
]  # fmt: skip
AMPERE = [
    (I.SYNCTHREADS, "BAR.SYNC"), (I.NAMED_BARRIER_SYNC, "BAR.SYNC"),
    (I.MBARRIER_INIT, "STS"), (I.MBARRIER_ARRIVE, "ATOMS.ARRIVE"),
    *((I.cp_async(n), "LDGSTS") for n in (4, 8, 16)),
    *((I.cp_async_zfill(n), "LDGSTS") for n in (4, 8, 16)),
    (I.CP_ASYNC_COMMIT, "LDGDEPBAR"), (I.cp_async_wait(2), "DEPBAR"),
    *((I.ldmatrix(n, t), "LDSM") for n in (1, 2, 4) for t in (False, True)),
    (I.mma_sync("f16"), "HMMA.16816.F32"), (I.mma_sync("bf16"), "HMMA.16816.F32.BF16"),
    (I.mma_sync("f16", acc="f16"), "HMMA.16816.F16"), (I.mma_sync("tf32"), "HMMA.1688.F32.TF32"),
    (I.mma_sync("s8", acc="s32"), "IMMA.16832.S8.S8"),
    (I.mma_sync("u8", "s8", acc="s32"), "IMMA.16832.U8.S8"),
    (I.mma_sync("f64", acc="f64"), "DMMA.884"),
    (I.SHFL_XOR, "SHFL.BFLY"), (I.SHFL_UP, "SHFL.UP"), (I.SHFL_DOWN, "SHFL.DOWN"),
    (I.SHFL_INDEX, "SHFL.IDX"), (I.QUAD_TRANSPOSE, "SHFL.BFLY"),
]  # fmt: skip


@cache
def _machine_code(target: Target) -> dict[str, str]:
    """Record name -> SASS of a kernel that uses it; one translation unit for a target."""
    records = [r for r, _ in TABLE[target.name]]
    kernels = "\n".join(_kernel(r, f"k{i}_") for i, r in enumerate(records))
    source = source_with(records, kernels, ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"))
    sass, log = compile_cuda(source, target)
    serialised = re.findall("C751[0-4]|C7508", log)
    assert not serialised, log
    parts = sass.split(".section\t.text.k")[1:]
    by_number = {int(part.split("_", 1)[0]): part for part in parts}
    return {r.name: by_number[i] for i, r in enumerate(records)}


TABLE = {SM80.name: AMPERE, SM90A.name: HOPPER}
CASES = [
    pytest.param(record, target, expected, id=f"{target}-{record.name}")
    for target in (SM80, SM90A)
    for record, expected in TABLE[target.name]
]


@needs_nvrtc
@pytest.mark.parametrize(("record", "target", "expected"), CASES)
def test_record_compiles_to_its_instruction(record, target, expected):
    assert expected in _machine_code(target)[record.name]
    assert record.needs is None or target.has(record.needs)
    assert record.source.startswith("PTX ISA") or not record.helper


def test_equal_parameters_give_the_same_record():
    assert I.tma_load(2) is I.tma_load(2)
    assert I.wgmma_ss(64, "f16", False, True) is I.wgmma_ss(64, "f16", False, True)


def test_a_helper_comes_after_those_it_calls_and_only_once():
    texts = I.helper_texts([I.tma_load(2), I.tma_load(2), I.MBARRIER_WAIT, I.wgmma_ss(8, "f16")])
    assert len(texts) == len(set(texts))
    first = next(i for i, t in enumerate(texts) if "u32 smem_addr(" in t)
    uses = [i for i, t in enumerate(texts) if "smem_addr(" in t and i != first]
    assert all(first < i for i in uses)
    assert all(len(line) <= 120 for t in texts for line in t.splitlines())
