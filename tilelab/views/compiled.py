"""What views read of a compiled kernel, so that they know neither its class nor how it is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tilelab.codegen.source import CudaSource
from tilelab.ir import Function
from tilelab.passes.base import CompileTrace
from tilelab.sim import SimReport
from tilelab.thread.nodes import Program


class KernelResources(Protocol):
    """What ptxas reported of one kernel."""

    @property
    def registers(self) -> int: ...
    @property
    def spill_stores(self) -> int: ...


class Compiled(Protocol):
    """What `show` reads of a compiled kernel."""

    @property
    def trace(self) -> CompileTrace: ...
    @property
    def program(self) -> Program: ...
    @property
    def source(self) -> CudaSource: ...
    @property
    def prim_func(self) -> Function: ...
    @property
    def resources(self) -> Mapping[str, KernelResources]: ...
    def get_sass(self) -> str: ...
    def get_profiler(self) -> Any: ...
    def simulate(self, *args: Any, **options: Any) -> SimReport: ...
    @property
    def pass_configs(self) -> Mapping[str, Any]: ...
    def remade(self, *, pass_configs: Mapping[str, Any]) -> Compiled: ...
