"""Differentiates the flash attention of triton_flash.py: Dao 2023, algorithm 2, with dQ in a kernel of its own."""
import triton_flash  # first: it says whether Triton interprets
import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def tile_of(matrix, i, rows, columns, WIDE: tl.constexpr):
    """Loads rows i of a matrix; those beyond the last read 0."""
    c = tl.arange(0, WIDE)
    return tl.load(matrix + i[:, None] * columns + c[None, :],
                   mask=(i[:, None] < rows) & (c[None, :] < columns), other=0.0)


@triton.jit
def store_tile(matrix, i, rows, columns, values, WIDE: tl.constexpr):
    c = tl.arange(0, WIDE)
    tl.store(matrix + i[:, None] * columns + c[None, :], values.to(matrix.dtype.element_ty),
             mask=(i[:, None] < rows) & (c[None, :] < columns))


@triton.jit
def rows_of(vector, i, rows):
    """Loads a word of each row by one lane; a plain load of few words is made by every lane that holds the row."""
    c = tl.arange(0, 16)
    return tl.sum(tl.load(vector + i[:, None] + c[None, :], mask=(i[:, None] < rows) & (c[None, :] == 0), other=0.0), 1)


@triton.jit
def pairs(q, k, v, do, lse, delta, scale, i, j, rows, keys, CAUSAL: tl.constexpr):
    """Returns P and the gradients of scores of a tile of pairs."""
    seen = (i[:, None] < rows) & (j[None, :] < keys)
    if CAUSAL:
        seen = seen & (j[None, :] <= i[:, None] + keys - rows)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    p = tl.where(seen, tl.exp2((scores - lse[:, None]) * LOG2E), 0.0)
    return p, p * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None])


@triton.jit(do_not_specialize=["rows", "keys"])
def query_gradients(Q, K, V, O, dO, LSE, DELTA, dQ, scale, rows, keys, group, columns, columns_v,
                    CAUSAL: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr, WIDE_V: tl.constexpr):
    """Computes dQ of one tile of queries, and the products of O and dO: they stay, all keys pass by."""
    head, i = tl.program_id(1), tl.program_id(0) * TILE + tl.arange(0, TILE)
    kv = head // group
    q = tile_of(Q + head * rows * columns, i, rows, columns, WIDE)
    do = tile_of(dO + head * rows * columns_v, i, rows, columns_v, WIDE_V)
    o = tile_of(O + head * rows * columns_v, i, rows, columns_v, WIDE_V)
    delta = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)
    tl.store(DELTA + head * rows + i, delta, mask=i < rows)
    lse = rows_of(LSE + head * rows, i, rows)
    dq = tl.zeros([TILE, WIDE], tl.float32)
    for first in range(0, keys, TILE):
        j = first + tl.arange(0, TILE)
        k = tile_of(K + kv * keys * columns, j, keys, columns, WIDE)
        v = tile_of(V + kv * keys * columns_v, j, keys, columns_v, WIDE_V)
        _, ds = pairs(q, k, v, do, lse, delta, scale, i, j, rows, keys, CAUSAL)
        dq += tl.dot(ds.to(k.dtype), k, input_precision="ieee")
    store_tile(dQ + head * rows * columns, i, rows, columns, dq * scale, WIDE)


@triton.jit(do_not_specialize=["rows", "keys"])
def key_gradients(Q, K, V, dO, LSE, DELTA, dK, dV, scale, rows, keys, group, columns, columns_v,
                  CAUSAL: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr, WIDE_V: tl.constexpr):
    """Computes dK and dV of one tile of keys: they stay, the queries of all heads of the group pass by."""
    kv, j = tl.program_id(1), tl.program_id(0) * TILE + tl.arange(0, TILE)
    k = tile_of(K + kv * keys * columns, j, keys, columns, WIDE)
    v = tile_of(V + kv * keys * columns_v, j, keys, columns_v, WIDE_V)
    dk = tl.zeros([TILE, WIDE], tl.float32)
    dv = tl.zeros([TILE, WIDE_V], tl.float32)
    for head in range(kv * group, (kv + 1) * group):
        for first in range(0, rows, TILE):
            i = first + tl.arange(0, TILE)
            q = tile_of(Q + head * rows * columns, i, rows, columns, WIDE)
            do = tile_of(dO + head * rows * columns_v, i, rows, columns_v, WIDE_V)
            lse = tl.load(LSE + head * rows + i, mask=i < rows, other=0.0)
            delta = tl.load(DELTA + head * rows + i, mask=i < rows, other=0.0)
            p, ds = pairs(q, k, v, do, lse, delta, scale, i, j, rows, keys, CAUSAL)
            dv += tl.dot(tl.trans(p.to(do.dtype)), do, input_precision="ieee")
            dk += tl.dot(tl.trans(ds.to(q.dtype)), q, input_precision="ieee")
    store_tile(dK + kv * keys * columns, j, keys, columns, dk * scale, WIDE)
    store_tile(dV + kv * keys * columns_v, j, keys, columns_v, dv, WIDE_V)


def gradients(q, k, v, out, lse, dout, *, causal=False, scale=1.0, tile=None):
    """Calls the kernels; returns dq, dk and dv."""
    q, k, v, out, dout = (array.transpose(1, 2).contiguous() for array in (q, k, v, out, dout))
    batch, heads, rows, columns = q.shape
    keys, columns_v, group = k.shape[2], v.shape[3], heads // k.shape[1]
    wide, wide_v = (max(16, triton.next_power_of_2(n)) for n in (columns, columns_v))
    tile = tile or (32 if max(wide, wide_v) <= 128 else 16)
    delta = torch.empty_like(lse)
    dq, dk, dv = (torch.empty_like(array) for array in (q, k, v))
    of_queries, of_keys = ((triton.cdiv(length, tile), batch * count)
                           for length, count in ((rows, heads), (keys, k.shape[1])))
    sizes = scale, rows, keys, group, columns, columns_v, causal, tile, wide, wide_v
    warps = 4 if tile * max(wide, wide_v) <= 4096 else 8  # so that registers hold the sums
    query_gradients[of_queries](q, k, v, out, dout, lse, delta, dq, *sizes, num_warps=warps, num_stages=2)
    key_gradients[of_keys](q, k, v, dout, lse, delta, dk, dv, *sizes, num_warps=warps, num_stages=2)
    return tuple(array.transpose(1, 2) for array in (dq, dk, dv))


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(context, q, k, v, causal, scale, tile):
        out, lse = triton_flash.attention(q, k, v, causal=causal, scale=scale, tile=tile)
        context.save_for_backward(q, k, v, out, lse)
        context.words = {"causal": causal, "scale": scale, "tile": tile}
        context.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    def backward(context, dout, _):
        return (*gradients(*context.saved_tensors, dout, **context.words), None, None, None)


def attention(q, k, v, *, causal=False, scale=1.0, tile=None):
    """Computes attention that differentiates itself; returns out and lse."""
    return Attention.apply(q, k, v, causal, scale, tile)
