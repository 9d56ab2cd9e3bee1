"""The CUDA text of a drawn program, run on this machine's CPU by fibers (host.h).

The simulator reads thread IR and codegen writes CUDA text of it: this compares the two where there
is no GPU. Only for text without assembly (no tensor cores, no asynchronous copies). Hides the C++
compiler and how numpy arrays become kernel arguments.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.program import Program, Verdict
from tilelab.ir import Expr, const_int

TOOLKIT = Path(os.environ.get("CUDA_HOME", "no toolkit")) / "include"
"""The wheels lack headers that a C++ compiler asks for: a whole toolkit is needed."""
available = shutil.which("g++") is not None and TOOLKIT.exists()
FLAGS = ("-std=c++17", "-O0", "-w", "-fPIC", "-fwrapv", f"-I{TOOLKIT}")


@cache
def _folder() -> Path:
    """Where the header lies compiled, once for the process."""
    folder = Path(tempfile.mkdtemp(prefix="drawn"))
    shutil.copy(Path(__file__).with_name("host.h"), folder / "host.h")
    command = ["g++", *FLAGS, "-x", "c++-header", "host.h", "-o", "host.h.gch"]
    subprocess.run(command, cwd=folder, check=True)
    return folder


def runs_here(kernel: Any) -> bool:
    """Whether the kernel's text can run on a CPU."""
    lowered = kernel._builds.build().lowered
    text = lowered.cuda.text
    launches = lowered.program.kernels
    fixed = all(const_int(e) is not None for k in launches for e in k.grid)
    plain = not any(k.maps or k.static_bytes for k in launches)
    return fixed and plain and not lowered.program.workspaces and not re.search(r"\basm\b", text)


def _source(lowered: Any) -> str:
    text = re.sub(r"^.*extern __shared__.*$", "", lowered.cuda.text, flags=re.M)
    text = re.sub(r"^#include.*$", "", text, flags=re.M)
    order = {p.name: i for i, p in enumerate(lowered.program.params)}
    calls: list[str] = []
    for k, name in zip(lowered.program.kernels, lowered.cuda.kernel_names, strict=True):
        found = [f"*(void**)(args + {order[t.name]})" for t in k.tensors]
        args = ", ".join(f"Any{{{f}}}" for f in found)
        grid, block = _extents(k.grid), ", ".join(map(str, k.threads))
        calls.append(f"  launch(dim3({grid}), dim3({block}), [&] {{ {name}({args}); }});")
    holder = "struct Any { void* p; template <typename T> operator T*() const { return (T*)p; } };"
    body = "\n".join(calls)
    return f'#include "host.h"\n{text}\n{holder}\nextern "C" void run(void** args) {{\n{body}\n}}\n'


def _extents(grid: tuple[Expr, ...]) -> str:
    return ", ".join(str(const_int(e)) for e in grid)


def run_text(kernel: Any, program: Program) -> Verdict:
    """Compile the text for the CPU, run it, compare with numpy."""
    source = _source(kernel._builds.build().lowered)
    folder = _folder()
    stem = hashlib.sha1(source.encode()).hexdigest()[:16]
    (folder / f"{stem}.cpp").write_text(source)
    command = ["g++", *FLAGS, "-shared", f"{stem}.cpp", "-o", f"{stem}.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return Verdict("host compiler", done.stderr[:2000])
    library = ctypes.CDLL(str(folder / f"{stem}.so"))
    arrays = [t.numbers() for t in program.tensors]
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    library.run(pointers)
    want = program.expected()
    for tensor, got in zip(program.tensors, arrays, strict=True):
        name = tensor.tile.name
        wrong = got.astype(np.float64) != want[name].astype(np.float64)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            return Verdict("text mismatch", f"{int(wrong.sum())} elements of {name} are wrong, "
                           f"first at {at}: {got[at]}, not {want[name][at]}")  # fmt: skip
    return Verdict("right")
