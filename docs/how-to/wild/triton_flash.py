"""Certifies a small flash attention in Triton, by Triton's interpreter where there is no GPU."""
import os

os.environ.setdefault("TRITON_INTERPRET", "1")  # before Triton is loaded
import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def flash(Q, K, V, O, LSE, scale, rows, heads, group, columns, columns_v, shift,
          KEYS: tl.constexpr, CAUSAL: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr,
          WIDE_V: tl.constexpr):
    """Computes one tile of queries: the running maximum and sum of Milakov and Gimelshein 2018."""
    head = tl.program_id(1)
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    c, cv, j = tl.arange(0, WIDE), tl.arange(0, WIDE_V), tl.arange(0, TILE)
    kv = head // heads * (heads // group) + head % heads // group
    q = tl.load(Q + (head * rows + i[:, None]) * columns + c[None, :],
                mask=(i[:, None] < rows) & (c[None, :] < columns), other=0.0)
    largest = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    sums = tl.zeros([TILE, WIDE_V], tl.float32)
    for first in range(0, KEYS, TILE):
        at = first + j
        k = tl.load(K + (kv * KEYS + at[None, :]) * columns + c[:, None],
                    mask=(at[None, :] < KEYS) & (c[:, None] < columns), other=0.0)
        v = tl.load(V + (kv * KEYS + at[:, None]) * columns_v + cv[None, :],
                    mask=(at[:, None] < KEYS) & (cv[None, :] < columns_v), other=0.0)
        scores = tl.dot(q, k, input_precision="ieee") * scale
        seen = at[None, :] < KEYS
        if CAUSAL:
            seen = seen & (at[None, :] <= i[:, None] + shift)
        scores = tl.where(seen, scores, float("-inf"))
        raised = tl.maximum(largest, tl.max(scores, 1))
        base = tl.where(raised == float("-inf"), 0.0, raised)  # no key yet: -inf - -inf is NaN
        weights = tl.exp2((scores - base[:, None]) * LOG2E)
        kept = tl.exp2((largest - base) * LOG2E)
        total = total * kept + tl.sum(weights, 1)
        sums = sums * kept[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        largest = raised
    out = sums / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(O + (head * rows + i[:, None]) * columns_v + cv[None, :], out.to(O.dtype.element_ty),
             mask=(i[:, None] < rows) & (cv[None, :] < columns_v))
    tl.store(LSE + head * rows + i, largest + tl.log(total), mask=i < rows)


def attention(q, k, v, *, causal=False, scale=1.0, tile=None):
    """Calls the kernel; returns out and lse. Tiles of wide heads are small, so that a block has room for them."""
    q, k, v = (array.transpose(1, 2).contiguous() for array in (q, k, v))
    batch, heads, rows, columns = q.shape
    keys, columns_v = k.shape[2], v.shape[3]
    wide, wide_v = (max(16, triton.next_power_of_2(n)) for n in (columns, columns_v))
    widest = max(wide, wide_v)
    tile = tile or (64 if widest <= 128 else 32 if widest <= 256 else 16)
    out = torch.empty(batch, heads, rows, columns_v, dtype=q.dtype, device=q.device)
    lse = torch.empty(batch, heads, rows, device=q.device)
    flash[(triton.cdiv(rows, tile), batch * heads)](
        q, k, v, out, lse, scale, rows, heads, heads // k.shape[1], columns, columns_v,
        keys - rows, keys, causal, tile, wide, wide_v)
    return out.transpose(1, 2), lse


SUBJECTS = {
    "Triton flash (own, interpreted), f32": {"fn": attention, "dtypes": ["f32"]},
    "Triton flash (own, interpreted), f16": {
        "fn": attention, "dtypes": ["f16"], "numerics": "p_cast_to_input"},
}
