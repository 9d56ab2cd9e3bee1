"""Draws two chained products as attention has them: scores, a mask, weights, sums of values.

Scores are whole numbers and are themselves the weights, so that every element is compared bit by
bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.fuzz.choices import Choices
from tests.fuzz.draw_product import block_of, times
from tests.fuzz.program import Launch, Program, Tensor
from tests.fuzz.scalars import Env, Value, as_type, binary, both, literal, name, select
from tests.fuzz.tiles import Statement, Tile, load, loop, parallel, store, tile
from tests.fuzz.whole import Region, copy, fill, gemm, reduce, whole


@dataclass
class Attention:
    """Sizes and tiles of one draw."""

    c: Choices

    def __post_init__(self) -> None:
        c = self.c
        self.heads, self.group = c.pick((1, 2)), c.pick((1, 2))
        self.rows, self.columns = c.pick((64, 32, 16, 128, 48)), c.pick((64, 32, 16, 128, 48))
        self.dim, self.dim_v = c.pick((64, 32, 16, 128, 48)), c.pick((64, 32, 16, 128, 48))
        self.blocks = 1 + c.below(3)
        self.queries = self.rows * self.blocks - (c.below(self.rows) if c.chance(40) else 0)
        self.keys = self.columns * (1 + c.below(4))
        self.keys -= c.below(self.columns) if c.chance(40) else 0
        self.dtype = c.pick(("float16", "bfloat16"))
        self.threads = c.pick((128, 256, 64))
        self.stages = c.below(4)
        self.causal = c.chance(50)
        self.order = c.pick(("bhsd", "bshd"))
        self.tiles: list[Tile] = []
        self.allocations: list[str] = []

    def alloc(self, named: str, shape: tuple[int, ...], dtype: str, scope: str) -> Tile:
        """A tile of the kernel."""
        made = tile(named, shape, dtype, scope, 1 << 20)
        self.tiles.append(made)
        self.allocations.append(f'{named} = T.alloc_{scope}({made.spelled()}, "{dtype}")')
        return made

    def tensor(self, named: str, rows: int, heads: int, dim: int, dtype: str) -> Tile:
        """(heads, rows, dim) or (rows, heads, dim)."""
        shape = (heads, rows, dim) if self.order == "bhsd" else (rows, heads, dim)
        return tile(named, shape, dtype, "global", 1)

    def part(self, source: Tile, head: Value, row: Value, rows: int) -> Region:
        """Rows of one head."""
        zero, dim = literal(0), source.shape[2]
        if self.order == "bhsd":
            return block_of(source, row, zero, (rows, dim), "slice", head)
        return Region(source, (row, head, zero), (rows, 1, dim), (True, False, True), "slice")

    def program(self) -> Program:
        """The whole program."""
        c, (m, n) = self.c, (self.rows, self.columns)
        every = self.heads * self.group
        q = self.tensor("Q", self.queries, every, self.dim, self.dtype)
        k = self.tensor("K", self.keys, self.heads, self.dim, self.dtype)
        v = self.tensor("V", self.keys, self.heads, self.dim_v, self.dtype)
        out = self.tensor("Out", self.queries, every, self.dim_v, "float32")
        q_s, k_s, v_s = (
            self.alloc(f"{t.name}_shared", (r, t.shape[2]), self.dtype, "shared")
            for t, r in ((q, m), (k, n), (v, n))
        )
        bx, by = name("bx", "int32", 0, self.blocks - 1), name("by", "int32", 0, every - 1)
        scores = self.alloc("scores", (m, n), "float32", "fragment")
        probs = self.alloc("probs", (m, n), self.dtype, c.pick(("fragment", "fragment", "shared")))
        acc = self.alloc("acc", (m, self.dim_v), "float32", "fragment")
        ko = name("ko", "int32", 0, 8)
        head = by if self.group == 1 else binary("//", by, literal(self.group))
        ahead = c.chance(50)
        fetch_v = copy(self.part(v, head, times(ko, n), n), whole(v_s))
        body = [copy(self.part(k, head, times(ko, n), n), whole(k_s))] + [fetch_v] * ahead
        body += self.weights(scores, probs, q_s, k_s, bx, ko)
        body += self.totals(scores, probs)
        body += [fetch_v] * (not ahead) + [gemm(probs, v_s, acc, False, False, self.policy())]
        made = [copy(self.part(q, by, times(bx, m), m), whole(q_s)), fill(whole(acc), 0)]
        made += [*self.beginning, self.steps(body)]
        made += self.ending(acc)
        made.append(copy(whole(acc), self.part(out, by, times(bx, m), m)))
        tensors = [Tensor(t, -1, 1, at) for at, t in enumerate((q, k, v))] + [Tensor(out, 9, 9)]
        grid = (self.blocks, every)
        return Program(tensors, [Launch(grid, self.threads, self.allocations, self.tiles, made)])

    def policy(self) -> str:
        """A warp policy, or none."""
        policy = self.c.pick(("", "FullRow", "FullRow", "Square"))
        return f", policy=T.GemmWarpPolicy.{policy}" if policy else ""

    def weights(self, scores: Tile, probs: Tile, q: Tile, k: Tile, bx: Value, ko: Value
                ) -> list[Statement]:  # fmt: skip
        """Scores under a mask, as operands of the second product: kept within -8..8, so that
        sums stay exact."""
        c, (m, n) = self.c, scores.shape
        axes = [name("i", "int32", 0, m - 1), name("j", "int32", 0, n - 1)]
        row, column = binary("+", times(bx, m), axes[0]), binary("+", times(ko, n), axes[1])
        seen = binary("<", column, literal(self.keys))
        if self.causal:
            seen = both("and", binary(">=", row, column), seen) if c.chance(50) else (
                binary(">=", row, column))  # fmt: skip
        score = Value(load(scores, axes).text, load(scores, axes).at, "float32", -512, 512)
        kept = binary("T.min", binary("T.max", score, literal(-8)), literal(8))
        masked = select(seen, kept, as_type(literal(0), "float32"), c.chance(20))
        product = gemm(q, k, scores, False, True, self.policy())
        ranges = list(zip(("i", "j"), (m, n), strict=True))
        how = c.below(3)
        if how == 0:
            return [fill(whole(scores), 0), product,
                    parallel(ranges, [store(probs, axes, masked)])]  # fmt: skip
        written = parallel(ranges, [store(scores, axes, masked)])
        if how == 1:
            return [fill(whole(scores), 0), product, written, copy(whole(scores), whole(probs))]
        start = select(seen, as_type(literal(0), "float32"), literal(1), False)
        first = parallel(ranges, [store(scores, axes, start)])
        return [first, product, written, copy(whole(scores), whole(probs))]

    def totals(self, scores: Tile, probs: Tile) -> list[Statement]:
        """Row sums and maxima beside the products."""
        c, m = self.c, scores.shape[0]
        self.beginning: list[Statement] = []
        self.total = None
        if c.chance(40):
            return []
        self.total = self.alloc("total", (m,), "float32", "fragment")
        self.beginning.append(fill(whole(self.total), 0))
        source = scores if c.chance(50) or probs.scope == "shared" else probs
        made = [reduce(c.pick(("sum", "max")), source, self.total, 1, False)]
        if c.chance(40):
            faded = self.alloc("faded", (m,), "float32", "fragment")
            axis = [name("i", "int32", 0, m - 1)]
            value = binary("T.min", self._small(load(self.total, axis)), literal(3))
            made.append(parallel([("i", m)], [store(faded, axis, value)]))
            acc = self.tiles[5]
            axes = [*axis, name("j", "int32", 0, acc.shape[1] - 1)]
            scaled = binary("+", self._small(load(acc, axes)), self._small(load(faded, axis)))
            made.append(parallel([("i", m), ("j", acc.shape[1])], [store(acc, axes, scaled)]))
        return made

    def _small(self, value: Value) -> Value:
        return Value(value.text, value.at, value.dtype, -1 << 19, 1 << 19)

    def steps(self, body: list[Statement]) -> Statement:
        """The loop over blocks of keys: all of them, or as far as the mask reaches."""
        m, n = self.rows, self.columns
        full = -(-self.keys // n)
        head = str(full)
        if self.causal and self.c.chance(70):
            head = f"T.min(T.ceildiv((bx + 1) * {m}, {n}), {full})"

            def count(env: Env) -> int:
                return min(-(-(int(env["bx"]) + 1) * m // n), full)

            return loop("ko", f"T.Pipelined({head}, num_stages={self.stages})",
                        lambda env: range(count(env)), body)  # fmt: skip
        return loop("ko", f"T.Pipelined({head}, num_stages={self.stages})",
                    lambda env: range(full), body)  # fmt: skip

    def ending(self, acc: Tile) -> list[Statement]:
        """What follows the loop."""
        if self.total is None or self.c.chance(50):
            return []
        axes = [name("i", "int32", 0, acc.shape[0] - 1), name("j", "int32", 0, acc.shape[1] - 1)]
        value = binary("-", self._small(load(acc, axes)), self._small(load(self.total, axes[:1])))
        ranges = list(zip(("i", "j"), acc.shape, strict=True))
        return [parallel(ranges, [store(acc, axes, value)])]


def draw_attention(c: Choices) -> Program:
    """Two chained products."""
    return Attention(c).program()
