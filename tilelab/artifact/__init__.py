"""Compiled kernels as plain data: `save` one, `load` it elsewhere without its Python.

    data = tilelab.artifact.save(kernel)          # JSON-able: thread IR and the launch record
    kernel = tilelab.artifact.load(data)          # checked, then run or simulated

`load` trusts nothing: only known kinds of nodes and instructions are made, every field is checked
against its type, sizes are bounded, and the verifier runs. What arrives is a program of tile
language and nothing else: no Python, no CUDA text, no machine code, no call of C functions.
"""

from tilelab.artifact.decode import load
from tilelab.artifact.encode import save
from tilelab.artifact.loaded import LoadedKernel
from tilelab.calls import answer_all

__all__ = ["LoadedKernel", "load", "save"]
answer_all(globals(), ("load", "save"), "artifact")
