"""Thread IR -> CUDA C++ text, with a map from its lines to IR nodes and Python lines."""

from tilelab.codegen.emit import emit
from tilelab.codegen.source import CudaSource, KernelSpan, LineLink

__all__ = ["CudaSource", "KernelSpan", "LineLink", "emit"]
