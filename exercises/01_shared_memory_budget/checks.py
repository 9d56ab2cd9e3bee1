"""What the judge asks in exercise 01, what is right, and which wrong ideas it recognises."""

# No postponed annotations here: those of the kernel below are values of its closure.
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import tilelab
import tilelab.language as T
from judge.checks import Case, Fields, Measured, Quiz, WrongIdea

FIELDS = ("bytes_per_stage", "total_bytes", "blocks_per_sm")
KIB = 1024
SM_SIZES = (64 * KIB, 100 * KIB, 128 * KIB, 164 * KIB, 228 * KIB)
PER_CATEGORY = 8

Args = dict[str, int]
Draw = Callable[[Random, int], Args]  # the number of the case in its category


def tile_bytes(rows: int, columns: int, bits: int) -> int:
    """Bytes of one packed tile, rounded up."""
    return -(-rows * columns * bits // 8)


def budget(
    block_M: int, block_N: int, block_K: int, bits: int, num_stages: int, shared_per_sm_bytes: int
) -> Fields:
    """The reference."""
    stage = tile_bytes(block_M, block_K, bits) + tile_bytes(block_K, block_N, bits)
    return _fields(stage, stage * max(num_stages, 1), shared_per_sm_bytes)


def _fields(stage: int, total: int, available: int) -> Fields:
    blocks = available // total if total else 0
    return {"bytes_per_stage": stage, "total_bytes": total, "blocks_per_sm": blocks}


# -- cases ----------------------------------------------------------------------------------------


def _args(m: int, n: int, k: int, bits: int, stages: int, available: int) -> Args:
    return {
        "block_M": m, "block_N": n, "block_K": k, "bits": bits, "num_stages": stages,
        "shared_per_sm_bytes": available,
    }  # fmt: skip


PUBLIC = (
    Case("public.anchor", "the example of the task", _args(128, 128, 64, 16, 3, 228 * KIB), False),
    Case("public.rectangle", "M, N and K differ", _args(64, 256, 32, 8, 4, 164 * KIB), False),
    Case("public.packed", "4-bit, odd tile", _args(5, 3, 7, 4, 2, 64 * KIB), False),
    Case("public.too_big", "does not fit", _args(256, 256, 128, 32, 3, 100 * KIB), False),
)


def _powers(rng: Random, low: int = 32, high: int = 256) -> int:
    return rng.choice([size for size in (16, 32, 64, 128, 256) if low <= size <= high])


def _tile(rng: Random) -> tuple[int, int, int]:
    """Three sizes of which no two are equal, so that swapping or dropping one shows."""
    while True:
        sizes = _powers(rng), _powers(rng), _powers(rng, 16, 128)
        if len(set(sizes)) == 3:
            return sizes


def _odd(rng: Random) -> int:
    return rng.randrange(3, 64, 2)


def _of_width(bits: int) -> Draw:
    def draw(rng: Random, number: int) -> Args:
        return _args(*_tile(rng), bits, rng.randint(2, 5), rng.choice(SM_SIZES))

    return draw


def _odd_four_bits(rng: Random, number: int) -> Args:
    return _args(_odd(rng), _odd(rng), _odd(rng), 4, rng.randint(2, 5), rng.choice(SM_SIZES))


def _one_copy(rng: Random, number: int) -> Args:
    """0 and 1 by turns: a draw without one of them would let its mistake pass."""
    return _args(*_tile(rng), rng.choice((8, 16, 32)), number % 2, rng.choice(SM_SIZES))


def _at_the_edge(rng: Random, number: int) -> Args:
    """An SM that holds a whole number of blocks, or one byte less or more."""
    args = _args(*_tile(rng), rng.choice((4, 8, 16)), rng.randint(1, 4), 0)
    total = budget(**args)["total_bytes"]
    return {**args, "shared_per_sm_bytes": total * rng.randint(2, 5) + number % 3 - 1}


def _just_too_big(rng: Random, number: int) -> Args:
    """One byte less than a single block needs."""
    args = _args(*_tile(rng), rng.choice((8, 16, 32)), rng.randint(2, 5), 0)
    return {**args, "shared_per_sm_bytes": budget(**args)["total_bytes"] - 1}


CATEGORIES: dict[str, tuple[str, Draw]] = {
    "int4": ("4-bit elements", _of_width(4)),
    "int4_odd": ("4-bit elements, odd tiles", _odd_four_bits),
    "int8": ("8-bit elements", _of_width(8)),
    "half": ("16-bit elements", _of_width(16)),
    "single": ("32-bit elements", _of_width(32)),
    "one_copy": ("0 or 1 stages", _one_copy),
    "edge": ("blocks that just fit", _at_the_edge),
    "too_big": ("one byte too much", _just_too_big),
}


def draw(rng: Random) -> list[Case]:
    """The hidden cases: eight of each category."""

    def cases() -> Iterator[Case]:
        for name, (category, make) in CATEGORIES.items():
            for number in range(PER_CATEGORY):
                yield Case(f"hidden.{name}.{number}", category, make(rng, number), True, points=1)

    return list(cases())


# -- what the compiler really asks for ------------------------------------------------------------

SIZE = 1024  # of the square matrices; the block's shared memory does not depend on it


def tiled_gemm(block_M: int, block_N: int, block_K: int, num_stages: int) -> Any:
    """A pipelined GEMM with these tiles, as a program."""

    @T.prim_func
    def gemm(
        A: T.Tensor((SIZE, SIZE), "float16"),
        B: T.Tensor((SIZE, SIZE), "float16"),
        C: T.Tensor((SIZE, SIZE), "float16"),
    ):
        with T.Kernel(SIZE // block_N, SIZE // block_M, threads=128) as (column, row):
            a_tile = T.alloc_shared((block_M, block_K), "float16")
            b_tile = T.alloc_shared((block_K, block_N), "float16")
            total = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(total)
            for k in T.Pipelined(SIZE // block_K, num_stages=num_stages):
                T.copy(A[row * block_M, k * block_K], a_tile)
                T.copy(B[k * block_K, column * block_N], b_tile)
                T.gemm(a_tile, b_tile, total)
            T.copy(total, C[row * block_M, column * block_N])

    return gemm


@cache
def compiled_bytes(block_M: int, block_N: int, block_K: int, num_stages: int) -> int:
    """Dynamic shared memory of the compiled kernel, on a chip with TMA."""
    program = tiled_gemm(block_M, block_N, block_K, num_stages)
    kernel = tilelab.compile(
        program, target=tilelab.parse_target("hopper"), pass_configs={"tl.plain_pipeline": True}
    )
    return kernel.program.kernels[0].dynamic_bytes


COMPILED = Measured(
    Case("compile.anchor", "the compiled kernel", _args(128, 128, 64, 16, 3, 228 * KIB), False),
    lambda: {"total_bytes": compiled_bytes(128, 128, 64, 3)},
)

# -- wrong ideas ----------------------------------------------------------------------------------


def _variant(
    stage: Callable[[int, int, int, int], int] | None = None,
    total: Callable[[int, int], int] | None = None,
    blocks: Callable[[int, int], int] | None = None,
) -> Callable[..., Fields]:
    """The reference with one of its three formulas replaced."""

    def compute(
        block_M: int, block_N: int, block_K: int, bits: int, num_stages: int,
        shared_per_sm_bytes: int,
    ) -> Fields:  # fmt: skip
        one = stage(block_M, block_N, block_K, bits) if stage else (
            tile_bytes(block_M, block_K, bits) + tile_bytes(block_K, block_N, bits)
        )  # fmt: skip
        all_ = total(one, num_stages) if total else one * max(num_stages, 1)
        fields = dict(_fields(one, all_, shared_per_sm_bytes))
        if blocks and all_:
            fields["blocks_per_sm"] = blocks(shared_per_sm_bytes, all_)
        return fields

    return compute


IDEAS = (
    WrongIdea(
        "ONE_TILE_ONLY", "bytes_per_stage counts the A tile only",
        "a stage holds an A tile and a B tile (rule 2)",
        _variant(stage=lambda m, n, k, bits: tile_bytes(m, k, bits)),
    ),
    WrongIdea(
        "ACCUMULATOR_COUNTED", "a 32-bit C tile was added to every stage",
        "the accumulator lives in registers and takes no shared memory",
        _variant(stage=lambda m, n, k, bits: tile_bytes(m, k, bits) + tile_bytes(k, n, bits)
                 + 4 * m * n),
    ),
    WrongIdea(
        "BITS_AS_BYTES", "the element width was taken for bytes",
        "bits is in bits: eight of them make a byte",
        _variant(stage=lambda m, n, k, bits: (m * k + k * n) * bits),
    ),
    WrongIdea(
        "WHOLE_BYTES_PER_ELEMENT", "every 4-bit element was given a byte of its own",
        "elements are packed: round the tile up, not the element (rule 1)",
        _variant(stage=lambda m, n, k, bits: (m * k + k * n) * -(-bits // 8)),
    ),
    WrongIdea(
        "SUBBYTE_LOST", "bits // 8 is 0 for 4-bit elements",
        "multiply by the number of elements before you divide by 8 (rule 1)",
        _variant(stage=lambda m, n, k, bits: (m * k + k * n) * (bits // 8)),
    ),
    WrongIdea(
        "ROUNDED_DOWN", "half a byte at the end of a tile was dropped",
        "round each tile up to whole bytes (rule 1)",
        _variant(stage=lambda m, n, k, bits: m * k * bits // 8 + k * n * bits // 8),
    ),
    WrongIdea(
        "ROUNDED_TOGETHER", "the two tiles were rounded up together",
        "round each tile up by itself (rule 1)",
        _variant(stage=lambda m, n, k, bits: -(-(m * k + k * n) * bits // 8)),
    ),
    WrongIdea(
        "STAGES_IGNORED", "total_bytes counts one stage only",
        "every stage keeps a copy of its own (rule 3)",
        _variant(total=lambda stage, stages: stage),
    ),
    WrongIdea(
        "NO_COPY_FOR_STAGE_0", "num_stages=0 was given no memory",
        "without pipelining there is still one copy (rule 3)",
        _variant(total=lambda stage, stages: stage * stages),
    ),
    WrongIdea(
        "ONE_COPY_TOO_MANY", "a copy more than num_stages was counted",
        "num_stages copies in all, the one in use among them (rule 3)",
        _variant(total=lambda stage, stages: stage * (stages + 1)),
    ),
    WrongIdea(
        "BLOCKS_ROUNDED_UP", "part of a block was counted as a block",
        "only whole blocks fit: round down (rule 4)",
        _variant(blocks=lambda available, total: -(-available // total)),
    ),
    WrongIdea(
        "AT_LEAST_ONE_BLOCK", "a block that does not fit was counted as one",
        "when not even one block fits the answer is 0 (rule 4)",
        _variant(blocks=lambda available, total: max(available // total, 1)),
    ),
)  # fmt: skip

EXERCISE = Quiz(
    entry="budget",
    fields=FIELDS,
    public=PUBLIC,
    draw=draw,
    expected=budget,
    ideas=IDEAS,
    starter_code="NOT_IMPLEMENTED",
    measured=(COMPILED,),
    hint_command="read the rules in exercises/01_shared_memory_budget/task.md",
)
