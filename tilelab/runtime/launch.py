"""Call a compiled kernel on the GPU, with as little host time as possible.

A call's tensors are compared with the signatures seen before (dtype, shape, strides, device); only
a new one goes through all checks. Addresses seen before have their parameters packed already.
Records are never changed once made, so threads may share a kernel and graphs may capture it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

from tilelab.errors import TileInternalError, TileValueError
from tilelab.ir import ScalarParam, TensorParam, WorkCounter
from tilelab.runtime import driver as cuda
from tilelab.runtime.arguments import Binding, Signature, misaligned
from tilelab.runtime.module import Launch, LoadedVariant, Packed, Place, Variant, launcher_of
from tilelab.runtime.tensors import TensorFacts, facts_of, torch_dtype

MISS: Any = object()
"""Answer of the quick path: this call's signature is new, bind it first."""

# Signatures seen, and sets of addresses for each; then forgotten all at once.
_MOST_PLANS, _MOST_RECORDS = 1024, 512

Build = Callable[[int, bool], Variant]
"""(device, aligned) -> the program to run there; `aligned` as in thread.Program."""


class Launcher:
    """The GPU side of one kernel object."""

    def __init__(self, signature: Signature, build: Build) -> None:
        self._signature = signature
        self._build = build
        self._loaded: dict[tuple[int, bool], LoadedVariant] = {}
        self._plans: dict[Any, Callable[[Sequence[Any]], Any]] = {}
        self._keys = tuple(_key_maker(signature.params[i]) for i in signature.inputs)
        self._any_tensor = any(key is not _scalar_key for key in self._keys)
        plain = self._any_tensor and all(key is _contiguous_key for key in self._keys)
        self._key = _plain_key if plain else self._mixed_key
        self.quick = _quick_call(self._plans, self._key)
        """(arguments) -> the result, if the call's signature was seen before; MISS otherwise."""

    def run(self, binding: Binding, device: int) -> Any:
        """Run a checked call on GPU `device`, and remember its signature."""
        args = [binding.values[i] for i in self._signature.inputs]
        plan = _Plan(self, self._signature, binding, device)
        result = plan.run(args)
        if self._any_tensor:  # without a tensor the device could be another one next time
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[self._key(args)] = plan.run
        return result

    def _mixed_key(self, args: Sequence[Any]) -> Any:
        parts = [key(a) for key, a in zip(self._keys, args, strict=False)]
        return (len(args), *parts)

    @property
    def in_use(self) -> tuple[LoadedVariant, ...]:
        """The variants that calls have loaded so far."""
        return tuple(self._loaded.values())

    def loaded(self, device: int, aligned: bool) -> LoadedVariant:
        """The program on a device, built and loaded at first use."""
        key = (device, aligned)
        found = self._loaded.get(key)
        if found is None:
            variant = self._build(device, aligned)
            found = LoadedVariant(cuda.require(), device, variant, self._signature)
            found = self._loaded.setdefault(key, found)
        return found


def _quick_call(
    plans: dict[Any, Callable[[Sequence[Any]], Any]], key: Callable[[Sequence[Any]], Any]
) -> Callable[[Sequence[Any]], Any]:
    """The quick path, as closures: looking up attributes would cost a tenth of a call."""

    def quick(args: Sequence[Any]) -> Any:
        try:
            run = plans.get(key(args))
        except (AttributeError, TypeError):
            return MISS  # not a torch tensor where one belongs: the checks say what is wrong
        return MISS if run is None else run(args)

    return quick


def _plain_key(args: Sequence[Any]) -> Any:
    """What of the arguments decides everything but addresses, when all are tensors declared
    without strides: a contiguous one needs none here, and others never become a plan."""
    return tuple([(a.dtype, a.shape, a.is_contiguous(), a.get_device()) for a in args])


def _contiguous_key(a: Any) -> Any:
    return (a.dtype, a.shape, a.is_contiguous(), a.get_device())


def _strided_key(a: Any) -> Any:
    return (a.dtype, a.shape, a.stride(), a.get_device())


def _key_maker(param: TensorParam | ScalarParam) -> Callable[[Any], Any]:
    if isinstance(param, ScalarParam):
        return _scalar_key
    return _contiguous_key if param.buffer.strides is None else _strided_key


def _scalar_key(value: Any) -> Any:
    """Bits of a float (0.0 is not -0.0, NaN is NaN); integers as they are."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, int):
        return value
    raise TypeError("not a Python number")


class _Plan:
    """Everything about a call that its signature decides; addresses are left open."""

    def __init__(
        self, owner: Launcher, signature: Signature, binding: Binding, device: int
    ) -> None:
        import torch

        self._owner = owner
        self._signature = signature
        self._device = device
        self._numbers = signature.numbers(binding)
        self._inputs = tuple(
            (slot, position)
            for slot, position in enumerate(signature.inputs)
            if isinstance(signature.params[position], TensorParam)
        )
        self._empty = _allocator(device)
        self._outputs = tuple(self._output(position) for position in signature.outputs)
        self._stream: Callable[[int], int] = torch._C._cuda_getCurrentRawStream  # pyright: ignore
        self._records: dict[tuple[int, ...], _Record] = {}
        self._launch = launcher_of(cuda.require(), device)
        self.run = self._runner()

    def _output(self, position: int) -> tuple[tuple[int, ...], tuple[int, ...], Any]:
        param = self._signature.params[position]
        assert isinstance(param, TensorParam)
        if param.buffer.strides is not None:
            raise TileValueError(
                f"output {param.name} of {self._signature.name} is declared with strides: it "
                "cannot be allocated",
                code="TL1621", hint="pass it as an argument instead of naming it in out_idx",
            )  # fmt: skip
        shape = self._signature.shape_of(position, self._numbers)
        return shape, row_major(shape), torch_dtype(param.buffer)

    def _runner(self) -> Callable[[Sequence[Any]], Any]:
        """The call itself: allocate the outputs, launch on torch's current stream, return the
        outputs. Locals of a closure are quicker than attributes."""
        empty, stream, device = self._empty, self._stream, self._device
        records, launch, outputs = self._records, self._launch, self._outputs
        slots = tuple(slot for slot, _ in self._inputs)
        all_tensors = len(slots) == len(self._signature.inputs)

        def run(args: Sequence[Any]) -> Any:
            made = [empty(shape, strides, dtype) for shape, strides, dtype in outputs]
            tensors = args if all_tensors else [args[i] for i in slots]
            key = (stream(device), *[t.data_ptr() for t in tensors], *[t.data_ptr() for t in made])
            record = records.get(key)
            if record is None:
                record = self._new_record(args, made, key)
            launch(record.launches or self._with_space(record))
            if len(made) == 1:
                return made[0]
            return made or None

        return run

    def _new_record(
        self, args: Sequence[Any], outputs: Sequence[Any], key: tuple[int, ...]
    ) -> _Record:
        tensors = {position: args[slot] for slot, position in self._inputs}
        tensors.update(zip(self._signature.outputs, outputs, strict=True))
        facts = {position: facts_of(tensor) for position, tensor in tensors.items()}
        loaded = self._variant(facts)
        places = {
            self._param(p).buffer.root.name: Place(
                fact.pointer, fact.shape, self._signature.strides_of(p, self._numbers)
            )
            for p, fact in facts.items()
        }
        record = _Record(loaded, places, key[0])
        if not loaded.workspaces:
            record.keep = loaded.pack(places, self._numbers, key[0])
            record.launches = record.keep.launches
        if len(self._records) >= _MOST_RECORDS:
            self._records.clear()
        self._records[key] = record
        return record

    def _param(self, position: int) -> TensorParam:
        param = self._signature.params[position]
        assert isinstance(param, TensorParam)
        return param

    def _variant(self, facts: dict[int, TensorFacts]) -> LoadedVariant:
        """The fast variant when the tensors keep its alignment, else the general one. A tensor of
        fixed shape has no general variant: then its address is the caller's mistake."""
        loaded = self._owner.loaded(self._device, True)
        program = loaded.variant.program
        named = {self._param(p).name: fact for p, fact in facts.items()}
        problem = misaligned(program.aligned, named)
        if problem is None:
            return loaded
        fixed = [need for need in program.aligned if need.buffer.root.is_static]
        if len(fixed) == len(program.aligned) or misaligned(fixed, named):
            raise TileValueError(
                f"{problem} (kernel {self._signature.name})",
                code="TL1619", notes=self._signature.notes,
                hint="pass a tensor that starts at a 16-byte boundary, for example x.clone()",
            )  # fmt: skip
        general = self._owner.loaded(self._device, False)
        if misaligned(general.variant.program.aligned, named):
            raise TileInternalError(
                f"the general variant of {self._signature.name} still assumes aligned tensors",
                hint="this is a bug of tilelab: please report it with the program",
            )
        return general

    def _with_space(self, record: _Record) -> Sequence[Any]:
        """Launches with workspaces made anew; the allocator keeps their memory until the stream
        has passed the launch."""
        shapes = [(b, shape(*self._numbers)) for b, shape in record.loaded.workspaces]
        spaces = [self._empty(shape, row_major(shape), torch_dtype(b)) for b, shape in shapes]
        key = tuple(t.data_ptr() for t in spaces)
        packed = record.with_space.get(key)
        if packed is None:
            places = dict(record.places)
            for (b, _), tensor in zip(record.loaded.workspaces, spaces, strict=True):
                fact = facts_of(tensor)
                places[b.root.name] = Place(fact.pointer, fact.shape, fact.strides)
            packed = record.loaded.pack(places, self._numbers, record.stream)
            record.with_space[key] = packed
        self._clear_counters(record, spaces)
        return packed.launches

    def _clear_counters(self, record: _Record, spaces: Sequence[Any]) -> None:
        """Counters begin at 0, once for each launch: a graph that captures the call does it too."""
        driver = record.loaded.driver
        for (b, _), tensor in zip(record.loaded.workspaces, spaces, strict=True):
            if not isinstance(b, WorkCounter):
                continue
            with driver.current(self._device) if driver.device_count > 1 else nullcontext():
                driver.clear(tensor.data_ptr(), tensor.numel(), record.stream, self._device)


class _Record:
    """The packed launches for one stream and set of addresses."""

    def __init__(self, loaded: LoadedVariant, places: dict[str, Place], stream: int) -> None:
        self.loaded = loaded
        self.places = places
        self.stream = stream
        self.launches: tuple[Launch, ...] = ()
        self.keep: Packed | None = None
        self.with_space: dict[tuple[int, ...], Packed] = {}


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= max(extent, 1)
    return tuple(strides)


Allocate = Callable[[tuple[int, ...], tuple[int, ...], Any], Any]
"""(shape, strides, torch dtype) -> an uninitialised tensor."""


@lru_cache(maxsize=16)
def _allocator(device: int) -> Allocate:
    """How outputs are allocated on a GPU. torch's own compiled code has a call that skips the
    dispatcher (a third of the time of torch.empty); it allocates on the current device, so it is
    taken only where there is no other."""
    import torch

    compiled_code: Any = getattr(getattr(torch, "_C", None), "_dynamo", None)
    quick = getattr(getattr(compiled_code, "guards", None), "_empty_strided_cuda", None)
    if quick is not None and torch.cuda.device_count() == 1:
        return quick
    where = torch.device("cuda", device)
    return lambda shape, strides, dtype: torch.empty_strided(
        shape, strides, dtype=dtype, device=where
    )
