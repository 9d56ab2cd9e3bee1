"""A GPU that is not there: programs written for CUDA run on CPU tensors and the simulator.

Hides how torch is made to believe it. Inside `simulated_device` every request for a CUDA tensor
gives a CPU tensor, `torch.cuda` describes the target's chip, and events tell the time that the
simulator models for kernels (wall-clock time for everything else).
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Generator, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

from tilelab.errors import TileNotSupported
from tilelab.runtime.reports import collect_reports
from tilelab.target import Target

NOTICE = (
    "tilelab: CUDA tensors are kept on the CPU and kernels run on the simulator; times of kernels "
    "are modelled, all other times are this CPU's\n"
)
NO_GRAPHS = "TL1708"


def on_cpu(value: Any) -> Any:
    """A device argument with "cuda" (any number) turned into "cpu"; other values unchanged."""
    if isinstance(value, str):
        return "cpu" if value.split(":")[0] == "cuda" else value
    kind = getattr(value, "type", None)
    return "cpu" if kind == "cuda" and hasattr(value, "index") else value


def _redirect(torch: Any) -> Any:
    """A TorchFunctionMode that gives CPU tensors where CUDA ones are asked for."""

    class KeepOnCpu(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.Tensor.cuda:
                return args[0]
            if func == torch.Tensor.is_cuda.__get__:
                return True
            named: dict[str, Any] = dict(kwargs or {})
            if "device" in named:
                named["device"] = on_cpu(named["device"])
            named.pop("pin_memory", None)  # needs a driver
            return func(*map(on_cpu, args), **named)

    return KeepOnCpu()


class Event:
    """Stands in for torch.cuda.Event: notes the time at `record`."""

    reports: ClassVar[list[Any]] = []  # of the open simulated_device

    def __init__(self, *_: Any, **__: Any) -> None:
        self._modelled = self._wall = 0.0

    def record(self, stream: Any = None) -> None:
        """Note the modelled time so far, and the wall clock."""
        self._modelled = sum(r.modelled_ms for r in self.reports)
        self._wall = time.perf_counter() * 1e3

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds to `end`: the kernels' modelled time if any ran between, else wall time."""
        modelled = end._modelled - self._modelled
        return modelled if modelled > 0 else end._wall - self._wall

    def synchronize(self) -> None:
        """Everything has happened already."""

    def wait(self, stream: Any = None) -> None:
        """Everything has happened already."""

    def query(self) -> bool:
        """Whether it has happened."""
        return True


class Stream:
    """Stands in for torch.cuda.Stream: work is done when it is asked for."""

    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = "cpu"

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def synchronize(self) -> None:
        """Everything has happened already."""

    def wait_stream(self, stream: Any) -> None:
        """Everything has happened already."""

    def wait_event(self, event: Any) -> None:
        """Everything has happened already."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event at this point."""
        event = event or Event()
        event.record()
        return event


def _properties(target: Target) -> SimpleNamespace:
    """What torch.cuda.get_device_properties tells, from the target's limits."""
    limits = target.limits
    major, minor = target.capability
    return SimpleNamespace(
        name=_name(target), major=major, minor=minor, multi_processor_count=limits.sms,
        total_memory=80 << 30, warp_size=32, L2_cache_size=limits.l2_bytes,
        max_threads_per_multi_processor=limits.threads_per_sm,
        max_threads_per_block=limits.threads_per_block,
        regs_per_multiprocessor=limits.registers_per_sm,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=limits.shared_per_block,
        shared_memory_per_multiprocessor=limits.shared_per_sm, is_integrated=False,
    )  # fmt: skip


def _name(target: Target) -> str:
    return f"tilelab simulator ({target.name})"


def _no_graphs(*_: Any, **__: Any) -> Any:
    raise TileNotSupported(
        "the simulator records no CUDA graphs", code=NO_GRAPHS,
        hint='call the kernels directly, or time them with backend="event"',
    )  # fmt: skip


def _answer(value: Any) -> Callable[..., Any]:
    """A function that gives `value` whatever it is called with."""
    return lambda *_args, **_kwargs: value  # pyright: ignore[reportUnknownLambdaType]


def _here(*_: Any, **__: Any) -> contextlib.nullcontext[None]:
    """For `with torch.cuda.device(0):` and `with torch.cuda.stream(s):`."""
    return contextlib.nullcontext()


def _stand_ins(target: Target) -> Mapping[str, Any]:
    """Attributes of torch.cuda, by name."""
    memory = 80 << 30
    found: dict[str, Any] = {
        "get_device_name": _answer(_name(target)), "Event": Event, "Stream": Stream,
        "get_device_capability": _answer(target.capability), "device": _here, "stream": _here,
        "get_device_properties": _answer(_properties(target)), "device_count": _answer(1),
        "CUDAGraph": _no_graphs, "graph": _no_graphs, "mem_get_info": _answer((memory, memory)),
    }  # fmt: skip
    groups = {
        True: "is_available is_initialized is_bf16_supported",
        None: "synchronize empty_cache init set_device reset_peak_memory_stats ipc_collect "
        "manual_seed manual_seed_all seed seed_all",
        0: "current_device memory_allocated max_memory_allocated memory_reserved "
        "max_memory_reserved",
    }
    for value, names in groups.items():
        # One function for each name: torch's own tables refuse one object under two names.
        found |= {name: _answer(value) for name in names.split()}
    stream = Stream()
    return found | {name: _answer(stream) for name in ("current_stream", "default_stream")}


@contextlib.contextmanager
def _replaced(owner: Any, values: Mapping[str, Any]) -> Generator[None]:
    before = {name: getattr(owner, name) for name in values if hasattr(owner, name)}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                setattr(owner, name, before[name])
            else:
                delattr(owner, name)


def _by_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with its device argument (the first, or by name) put on the CPU."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        kwargs = {k: on_cpu(v) if k == "device" else v for k, v in kwargs.items()}
        return function(*map(on_cpu, args), **kwargs)

    return wrapped


@contextlib.contextmanager
def simulated_device(target: Target) -> Generator[None]:
    """Inside, torch answers as on a machine with one GPU of `target`, and nothing leaves the CPU.

    Tells so once on the error stream.
    """
    import torch as loaded

    torch: Any = loaded
    sys.stderr.write(NOTICE)
    by_device = {name: _by_device(getattr(torch, name)) for name in ("set_default_device",)}
    with contextlib.ExitStack() as stack:
        Event.reports = stack.enter_context(collect_reports())
        stack.enter_context(_replaced(torch.cuda, _stand_ins(target)))
        stack.enter_context(_replaced(torch, by_device | {"Generator": _generator(torch)}))
        stack.enter_context(_redirect(torch))
        yield


def _generator(torch: Any) -> Any:
    """torch.Generator, made on the CPU whatever device is asked for."""
    original = torch.Generator

    class Generator(original):
        def __new__(cls, device: Any = "cpu") -> Any:
            return original.__new__(cls, device=on_cpu(device))

    return Generator
