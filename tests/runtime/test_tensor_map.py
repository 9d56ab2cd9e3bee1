"""The rules of TMA descriptors, checked without a driver; and numbers against cuda.h."""

from __future__ import annotations

import re

import pytest

from tilelab import dtypes
from tilelab.errors import TileValueError
from tilelab.ir import Buffer, Scope, Var
from tilelab.runtime import driver, tensor_map, wheels
from tilelab.runtime.module import LaunchConfig
from tilelab.thread.nodes import TensorMap


def spec(box: tuple[int, ...] = (64, 128), swizzle: int = 128, rank: int = 2) -> TensorMap:
    shape = tuple(Var(f"n{i}") for i in range(rank))
    buffer = Buffer("A", shape, dtypes.FLOAT16, Scope.GLOBAL)
    return TensorMap("A_map", buffer, tuple(reversed(range(rank))), box, swizzle)


def refused(map_: TensorMap, pointer: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> str:
    with pytest.raises(TileValueError, match="tensor A") as caught:
        tensor_map.geometry(map_, pointer, shape, strides)
    assert caught.value.code == "TL1635" and caught.value.hint
    return caught.value.message


def test_dimensions_go_inside_out() -> None:
    found = tensor_map.geometry(spec(), 4096, (100, 200), (256, 1))
    assert found == tensor_map.Geometry(4096, (200, 100), (512,), (64, 128))


def test_three_axes_with_a_map_of_two_kept_apart() -> None:
    map_ = TensorMap("m", spec(rank=3).tensor, (2, 0, 1), (64, 8, 4), 128)
    found = tensor_map.geometry(map_, 4096, (5, 6, 64), (384, 64, 1))
    assert found.dims == (64, 5, 6) and found.strides == (768, 128)


def test_pointer() -> None:
    assert "8 bytes past a multiple of 16" in refused(spec(), 4104, (64, 64), (64, 1))


def test_rows() -> None:
    assert "stride of axis 0 is 130 bytes" in refused(spec(), 4096, (64, 65), (65, 1))


def test_one_row_needs_no_stride() -> None:
    found = tensor_map.geometry(spec(), 4096, (1, 65), (65, 1))
    assert found.strides[0] % 16 == 0 and found.strides[0] >= 130


def test_innermost_axis() -> None:
    assert "4 bytes apart" in refused(spec(), 4096, (64, 64), (128, 2))


def test_extents() -> None:
    assert "extents" in refused(spec(), 4096, (0, 64), (64, 1))


@pytest.mark.parametrize(
    ("box", "swizzle", "word"),
    [
        ((64, 257), 128, "outside 1 to 256"), ((64, 0), 128, "outside"),
        ((4, 64), 0, "8 bytes, not a multiple of 16"), ((128, 64), 128, "the swizzle covers 128"),
        ((64, 64), 64, "the swizzle covers 64"), ((64,), 128, "one extent for each axis"),
    ],
)  # fmt: skip
def test_box(box: tuple[int, ...], swizzle: int, word: str) -> None:
    assert word in refused(spec(box, swizzle), 4096, (64, 64), (64, 1))


def test_rank() -> None:
    map_ = spec((8,) * 6, 0, rank=6)
    assert "6 axes" in refused(map_, 4096, (8,) * 6, (8**5, 8**4, 8**3, 64, 8, 1))


def test_memory_is_aligned() -> None:
    for _ in range(20):
        assert tensor_map.Encoded().address % 64 == 0
    assert len(bytes(tensor_map.Encoded())) == 128


HEADER = None if wheels.include_folder() is None else wheels.include_folder() / "cuda.h"
needs_header = pytest.mark.skipif(
    HEADER is None or not HEADER.is_file(), reason="cuda.h is not installed"
)


def enumerators(prefix: str) -> dict[str, int]:
    """Members of the enum in cuda.h that starts with `prefix`, counted where no number stands."""
    found: dict[str, int] = {}
    value = -1
    for line in HEADER.read_text(errors="replace").splitlines():
        match = re.match(rf"\s*({prefix}\w+)\s*(?:=\s*(\d+))?\s*[,/]?", line)
        if match and not line.lstrip().startswith(("*", "#")):
            value = int(match[2]) if match[2] else value + 1
            found.setdefault(match[1].removeprefix(prefix), value)
    return found


@needs_header
def test_numbers_of_attributes_are_those_of_cuda_h() -> None:
    theirs = enumerators("CU_DEVICE_ATTRIBUTE_")
    names = {
        "sms": "MULTIPROCESSOR_COUNT", "l2_bytes": "L2_CACHE_SIZE",
        "major": "COMPUTE_CAPABILITY_MAJOR", "minor": "COMPUTE_CAPABILITY_MINOR",
        "shared_per_sm": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
        "shared_per_block": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
        "shared_reserved_per_block": "RESERVED_SHARED_MEMORY_PER_BLOCK",
        "registers_per_sm": "MAX_REGISTERS_PER_MULTIPROCESSOR",
        "threads_per_sm": "MAX_THREADS_PER_MULTIPROCESSOR",
        "blocks_per_sm": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    }  # fmt: skip
    assert {k: theirs[v] for k, v in names.items()} == driver._DEVICE_ATTRIBUTES


@needs_header
def test_numbers_of_tensor_maps_are_those_of_cuda_h() -> None:
    types = enumerators("CU_TENSOR_MAP_DATA_TYPE_")
    for name in ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32",
                 "float64", "bfloat16"):  # fmt: skip
        assert tensor_map.DATA_TYPES[name] == types[name.upper()]
    swizzles = enumerators("CU_TENSOR_MAP_SWIZZLE_")
    assert {
        0: swizzles["NONE"], 32: swizzles["32B"], 64: swizzles["64B"], 128: swizzles["128B"],
    } == tensor_map.SWIZZLES  # fmt: skip
    assert enumerators("CU_TENSOR_MAP_L2_PROMOTION_")["L2_256B"] == tensor_map._PROMOTE_256_BYTES


def test_the_launch_configuration_has_c_s_layout() -> None:
    offsets = {name: getattr(LaunchConfig, name).offset for name, _ in LaunchConfig._fields_}
    assert offsets["shared_bytes"] == 24 and offsets["stream"] == 32
    assert offsets["attributes"] == 40 and offsets["num_attributes"] == 48
