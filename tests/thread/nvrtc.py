"""Compile a piece of CUDA with NVRTC and read its machine code, with no GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest

from tilelab.target import Target
from tilelab.thread import Intrinsic
from tilelab.thread.intrinsics import PRELUDE, TENSOR_MAP, helper_texts

TOOLKIT = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13"
available = importlib.util.find_spec("cuda.bindings") is not None and TOOLKIT.exists()
needs_nvrtc = pytest.mark.skipif(not available, reason="the CUDA wheels are not installed")


def source_with(used: list[Intrinsic], kernel: str, includes: tuple[str, ...] = ()) -> str:
    """A translation unit: headers, helpers of `used`, and the kernel."""
    headers = dict.fromkeys([*includes, *(h for i in used for h in i.includes)])
    lines = [f"#include <{h}>" for h in headers]
    body = "\n".join(helper_texts(used))
    return "\n".join([*lines, PRELUDE, TENSOR_MAP, f"namespace tl {{\n{body}\n}}", kernel])


def compile_cuda(source: str, target: Target) -> tuple[str, str]:
    """(SASS, compiler log) of a source; fails the test with the log when it does not compile."""
    from cuda.bindings import nvrtc

    options = [
        f"--gpu-architecture={target.arch}", "--std=c++17", f"--include-path={TOOLKIT}/include",
        "--ptxas-options=-v", "--diag-suppress=177",
    ]  # fmt: skip
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, [], [])
    encoded = [o.encode() for o in options]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    text = log.decode(errors="replace")
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, f"{text}\n{source}"
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = b" " * size
    nvrtc.nvrtcGetCUBIN(program, cubin)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        tool = TOOLKIT / "bin" / "nvdisasm"
        sass = subprocess.run([tool, file.name], capture_output=True, text=True, check=True).stdout
    return sass, text
