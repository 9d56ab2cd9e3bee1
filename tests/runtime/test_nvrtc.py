"""CUDA text to machine code, and what the compiler's log says."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tilelab.codegen.imported import HOST_HEADERS
from tilelab.errors import Loc, TileError, TileRuntimeError, TileValueError
from tilelab.runtime import nvrtc, sass, wheels

pytestmark = pytest.mark.skipif(wheels.nvrtc_library() is None, reason="NVRTC is not installed")

ADD = """
extern "C" __global__ void add(const float* a, float* b) {
  __shared__ float s[64];
  s[threadIdx.x % 64] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = s[63 - threadIdx.x % 64];
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_compiles_without_a_gpu(arch: str) -> None:
    cubin = nvrtc.compile_cubin(ADD, arch)
    assert cubin.image[:4] == b"\x7fELF"
    assert cubin.arch == arch and cubin.seconds > 0
    used = cubin.resources["add"]
    assert used.static_shared == 256 and 0 < used.registers < 64 and not used.spills
    assert cubin.warnings == ()


@pytest.mark.parametrize("header", ["cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"])
def test_headers_are_found(header: str) -> None:
    cubin = nvrtc.compile_cubin(f"#include <{header}>\n{ADD}", "sm_90a")
    assert "add" in cubin.resources


def test_host_headers_are_there() -> None:
    included = "\n".join(f"#include <{h}>" for h in HOST_HEADERS)
    constants = [n for text in HOST_HEADERS.values() for n in re.findall(r"#define (\w+)", text)]
    text = f"""{included}
extern "C" __global__ void f(int8_t* a, uint64_t* b, size_t n, double* c) {{
  static_assert(sizeof(uintptr_t) == 8 && sizeof(int16_t) == 2);
  assert(n < UINT32_MAX);
  memcpy(a, b, n);
  *c = {" + ".join(f"double({c})" for c in dict.fromkeys(constants))};
}}"""
    assert "f" in nvrtc.compile_cubin(text, "sm_80").resources


def test_a_repeat_has_its_log_too() -> None:
    first, second = (nvrtc.compile_cubin(ADD, "sm_80") for _ in range(2))
    assert first.resources == second.resources != {}


def test_printf_works_with_the_reduced_headers() -> None:
    text = 'extern "C" __global__ void p() { printf("%d\\n", 1); }'
    assert "p" in nvrtc.compile_cubin(text, "sm_80").resources


def test_an_error_shows_the_line_of_cuda_and_of_python() -> None:
    text = 'extern "C" __global__ void k(float* a) {\n  a[0] = nothing;\n}\n'
    place = Loc("<cell>", 7)
    seen: list[int] = []

    def locate(line: int) -> Loc:
        seen.append(line)
        return place

    with pytest.raises(TileRuntimeError) as caught:
        nvrtc.compile_cubin(text, "sm_80", locate=locate)
    assert seen == [2] and caught.value.loc is place and caught.value.code == "TL1604"
    assert 'identifier "nothing" is undefined' in caught.value.message
    assert "a[0] = nothing;" in caught.value.notes[0]


def test_an_error_of_the_assembler_is_shown() -> None:
    text = 'extern "C" __global__ void k() { asm volatile("foo.bar;"); }'
    with pytest.raises(TileError, match="foo"):
        nvrtc.compile_cubin(text, "sm_80")


def test_an_unknown_architecture_names_it() -> None:
    with pytest.raises(TileValueError, match="sm_1 ") as caught:
        nvrtc.compile_cubin(ADD, "sm_1 ")
    assert caught.value.code == "TL1603"


def test_several_threads_compile_at_once() -> None:
    texts = [ADD.replace("add", f"add{i}") for i in range(6)]
    with ThreadPoolExecutor(3) as pool:
        cubins = list(pool.map(lambda text: nvrtc.compile_cubin(text, "sm_90a"), texts))
    assert [next(iter(c.resources)) for c in cubins] == [f"add{i}" for i in range(6)]


def test_spills_are_reported() -> None:
    body = "\n".join(f"  float x{i} = a[{i} * n];" for i in range(300))
    total = " + ".join(f"x{i} * x{299 - i}" for i in range(300))
    text = (
        'extern "C" __global__ void __launch_bounds__(1024, 2) k(volatile float* a, int n) {\n'
        f"{body}\n  a[0] = {total};\n}}\n"
    )
    cubin = nvrtc.compile_cubin(text, "sm_80")
    assert cubin.resources["k"].spills
    assert [w.code for w in cubin.warnings] == ["spill"] and "k keeps" in cubin.warnings[0].text


LOG = """\
ptxas info    : 0 bytes gmem
ptxas warning : (C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum \
register requirement in function 'main_kernel'
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized \
due to insufficient register resources for the wgmma pipeline in the function 'main_kernel'
ptxas info    : Compiling entry function 'main_kernel' for 'sm_90a'
ptxas info    : Function properties for main_kernel
    48 bytes stack frame, 44 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 168 registers, used 9 barriers, 48 bytes cumulative stack size, 1088 bytes smem
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 20 registers
"""


def test_the_log_is_read() -> None:
    resources = nvrtc.parse_resources(LOG)
    assert resources == {
        "main_kernel": nvrtc.Resources(168, 44, 40, 48, 1088),
        "other": nvrtc.Resources(20, 0, 0, 0, 0),
    }
    remarks = nvrtc.parse_warnings(LOG, resources)
    assert [(w.code, w.kernel) for w in remarks] == [
        ("C7508", "main_kernel"), ("C7510", "main_kernel"), ("spill", "main_kernel"),
    ]  # fmt: skip
    assert remarks[1].text.startswith("Potential Performance Loss: wgmma.mma_async")


def test_without_the_wheel_the_pip_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "nvrtc_library", lambda: None)
    nvrtc._load.cache_clear()
    try:
        with pytest.raises(TileRuntimeError, match="NVRTC") as caught:
            nvrtc.compile_cubin(ADD, "sm_80")
        assert 'pip install "nvidia-cuda-nvrtc' in caught.value.hint
    finally:
        nvrtc._load.cache_clear()


def test_without_the_headers_the_pip_command_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "include_folder", lambda: None)
    with pytest.raises(TileRuntimeError) as caught:
        nvrtc.compile_cubin("#include <cuda_fp16.h>\n" + ADD, "sm_80")
    assert 'pip install "nvidia-cuda-runtime' in caught.value.hint


@pytest.mark.skipif(wheels.nvdisasm_binary() is None, reason="nvdisasm is not installed")
def test_disassembly() -> None:
    listing = sass.disassemble(nvrtc.compile_cubin(ADD, "sm_90a").image)
    found = list(sass.instructions(listing))
    assert {i.function for i in found} == {"add"}
    counts = sass.opcode_counts(listing)
    assert counts["LDG"] == counts["STG"] == counts["STS"] == counts["LDS"] == 1
    assert counts["BAR"] == 1 and sum(counts.values()) == len(found)
    assert [i.address for i in found] == sorted(i.address for i in found)


@pytest.mark.skipif(wheels.nvdisasm_binary() is None, reason="nvdisasm is not installed")
def test_disassembly_refuses_what_is_no_cubin() -> None:
    with pytest.raises(TileRuntimeError, match="cannot read this cubin"):
        sass.disassemble(b"not an ELF")


def test_lines_of_a_listing() -> None:
    listing = (
        "//--------------------- .text.k   --------------------------\n"
        "        /*0070*/              @!P0 LDG.E.128.CONSTANT R4, [R2.64] ;\n"
        "        /*0080*/              @!UPT UIADD3 UR4, UR4, UR4, URZ ;   /* 0x01 */\n"
        "        /*0090*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8], R24, !UPT ;\n"
        "        /*00a0*/                   EXIT ;\n"
        ".L_x_1:\n"
    )
    found = list(sass.instructions(listing))
    assert [(i.predicate, i.base) for i in found] == [
        ("@!P0", "LDG"), ("@!UPT", "UIADD3"), ("", "HGMMA"), ("", "EXIT"),
    ]  # fmt: skip
    assert found[0].opcode == "LDG.E.128.CONSTANT" and found[0].operands == "R4, [R2.64]"
