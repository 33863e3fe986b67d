"""Ten small kernels in Triton and their launches: the executor of PTX is held to a device's results.

Each result is one that a launch always gives: no sum depends on the order of blocks, and none but
that of softmax takes a product that ptxas might fuse with it. Softmax is to base 2 and divides as IEEE
does, so that ex2.approx is the one approximation here. numpy has no bf16: its bits are handed over as
int16.
"""
import collections

import numpy as np
import triton
import triton.language as tl

N, TILE = 1000, 256  # the last block has a masked part


@triton.jit
def integers(x, y, mixed, quotients, fractions, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    a, b = tl.load(x + i, mask=i < n, other=1), tl.load(y + i, mask=i < n, other=1)
    tl.store(mixed + i, ((a * b) ^ (a >> 3)) + a % b, mask=i < n)
    tl.store(quotients + i, a // b, mask=i < n)
    tl.store(fractions + i, ((a & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True) - 1.0, mask=i < n)


@triton.jit
def rounded(x, bf16, f16, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    v = tl.load(x + i, mask=i < n)
    tl.store(bf16 + i, v.to(tl.bfloat16).to(tl.int16, bitcast=True), mask=i < n)
    tl.store(f16 + i, v.to(tl.float16), mask=i < n)


@triton.jit
def powers(x, y, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(y + i, tl.exp2(tl.load(x + i, mask=i < n)), mask=i < n)


@triton.jit
def row_softmax(x, y, columns, TILE: tl.constexpr):
    row, c = tl.program_id(0) * columns, tl.arange(0, TILE)
    v = tl.load(x + row + c, mask=c < columns, other=float("-inf"))
    p = tl.exp2(v - tl.max(v, 0))
    tl.store(y + row + c, tl.div_rn(p, tl.sum(p, 0)), mask=c < columns)


@triton.jit
def load_matrix(x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    return tl.load(x + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])


@triton.jit
def store_matrix(x, values, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tl.store(x + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :], values)


@triton.jit
def bf16_product(a, b, c, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    left = load_matrix(a, M, K).to(tl.bfloat16, bitcast=True)
    right = load_matrix(b, K, N).to(tl.bfloat16, bitcast=True)
    store_matrix(c, tl.dot(left, right), M, N)


@triton.jit
def f16_product(a, b, c, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """Is a product of a warpgroup on sm_90: 64 rows, four warps."""
    store_matrix(c, tl.dot(load_matrix(a, M, K), load_matrix(b, K, N)), M, N)


@triton.jit
def f32_products(a, b, ieee, tf32, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    left, right = load_matrix(a, M, K), load_matrix(b, K, N)
    store_matrix(ieee, tl.dot(left, right, input_precision="ieee"), M, N)
    store_matrix(tf32, tl.dot(left, right, input_precision="tf32"), M, N)


@triton.jit
def totals(x, counts, n, TILE: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(counts + (v & (BINS - 1)), 1, mask=i < n)


@triton.jit
def scanned(x, sums, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    store_matrix(sums, tl.cumsum(load_matrix(x, ROWS, COLUMNS), 1), ROWS, COLUMNS)


@triton.jit
def causal_flash(q, k, v, out, scale, TILE: tl.constexpr, WIDE: tl.constexpr):
    first = tl.program_id(0) * TILE
    queries = load_matrix(q + first * WIDE, TILE, WIDE)
    rows, columns = first + tl.arange(0, TILE), tl.arange(0, TILE)
    largest, total = tl.full([TILE], float("-inf"), tl.float32), tl.zeros([TILE], tl.float32)
    sums = tl.zeros([TILE, WIDE], tl.float32)
    for key in range(0, first + TILE, TILE):
        keys, values = load_matrix(k + key * WIDE, TILE, WIDE), load_matrix(v + key * WIDE, TILE, WIDE)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        scores = tl.where((key + columns)[None, :] <= rows[:, None], scores, float("-inf"))
        raised = tl.maximum(largest, tl.max(scores, 1))
        p, kept = tl.exp2(scores - raised[:, None]), tl.exp2(largest - raised)
        total, largest = total * kept + tl.sum(p, 1), raised
        sums = tl.dot(p.to(values.dtype), values, sums * kept[:, None])
    store_matrix(out + first * WIDE, tl.div_rn(sums, total[:, None]).to(queries.dtype), TILE, WIDE)


def words(seed, count):
    """Returns 32-bit words of Knuth's linear congruential generator, the same everywhere."""
    found, state = [], seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        found.append(state >> 32)
    return np.array(found, np.uint32)


def numbers(seed, *shape, dtype=np.float32, most=2.0):
    """Returns numbers from -most to most, each rounded to the type once."""
    return ((words(seed, int(np.prod(shape))) / 2**31 - 1) * most).reshape(shape).astype(dtype)


def cut_to_bf16(array):
    return (array.view(np.uint32) >> 16).astype(np.uint16).view(np.int16)


def to_be_rounded(seed, count):
    """Returns float32 of any bits, many of them halfway between two of bf16 or of f16."""
    bits = words(seed, count)
    bits[1::3] = bits[1::3] & 0xFFFF0000 | 0x8000
    exponents = 103 + (bits[2::3] >> 23) % 40  # from below the subnormal numbers of f16 to infinity
    bits[2::3] = bits[2::3] & 0x807FE000 | exponents << 23 | 0x1000
    ends = [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0x477FEFFF,
            0x477FF000, 0x33000000, 0x33000001, 1, 0x80000001, 0x007FFFFF]
    bits[:len(ends)] = ends
    return bits.view(np.float32)


def exponents(seed, count):
    found = numbers(seed, count, most=120.0)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]
    found[:len(ends)] = ends
    return found


Launch = collections.namedtuple("Launch", "kernel grid inputs outputs options")
BLOCKS = (-(-N // TILE),)


def product(kernel, kind, m, k, n, outputs, warps):
    sides = {"a": kind(numbers(11, m, k)), "b": kind(numbers(12, k, n))}
    return Launch(kernel, (1,), sides, {name: np.zeros((m, n), np.float32) for name in outputs},
                  {"M": m, "K": k, "N": n, "num_warps": warps})


def launches():
    """Returns the ten launches by the kernel's name, each with new arrays."""
    sizes, half = {"n": N, "TILE": TILE, "num_warps": 4}, np.float16
    flash = {name: numbers(seed, 64, 32, dtype=half) for name, seed in (("q", 21), ("k", 22), ("v", 23))}

    def of_all(kernel, inputs, **dtypes):
        return Launch(kernel, BLOCKS, inputs, {name: np.zeros(N, of) for name, of in dtypes.items()}, sizes)

    ten = (
        of_all(integers, {"x": words(1, N).view(np.int32), "y": (words(2, N) % 1000 + 1).astype(np.int32)},
               mixed=np.int32, quotients=np.int32, fractions=np.float32),
        of_all(rounded, {"x": to_be_rounded(3, N)}, bf16=np.int16, f16=half),
        of_all(powers, {"x": exponents(4, N)}, y=np.float32),
        Launch(row_softmax, (8,), {"x": numbers(5, 8, 40, most=8.0)}, {"y": np.zeros((8, 40), np.float32)},
               {"columns": 40, "TILE": 64, "num_warps": 2}),
        product(bf16_product, cut_to_bf16, 16, 32, 16, ("c",), 1),
        product(f16_product, half, 64, 32, 16, ("c",), 4),
        product(f32_products, np.float32, 16, 32, 16, ("ieee", "tf32"), 1),
        Launch(totals, BLOCKS, {"x": words(6, N).view(np.int32)}, {"counts": np.zeros(16, np.int32)},
               {**sizes, "BINS": 16}),
        Launch(scanned, (1,), {"x": numbers(7, 8, 64)}, {"sums": np.zeros((8, 64), np.float32)},
               {"ROWS": 8, "COLUMNS": 64, "num_warps": 2}),
        Launch(causal_flash, (2,), flash, {"out": np.zeros((64, 32), half)},
               {"scale": 0.25, "TILE": 32, "WIDE": 32, "num_warps": 4, "num_stages": 1}))
    return {one.kernel.__name__: one for one in ten}
