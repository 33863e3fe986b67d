"""Kernels in Triton, right and wrong, and functions that launch them: emulated_kernels.py and emulated_counts.py do."""

import functools
import importlib
import os
import pathlib
import sys
from unittest import mock

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

WILD = pathlib.Path(__file__).resolve().parents[3] / "docs" / "how-to" / "wild"


@triton.jit
def add(x, y, z, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def add_one_too_far(x, y, z, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(z + i + 1, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def add_without_mask(x, y, z, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(z + i, tl.load(x + i) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def last_sum_wins(x, z, TILE: tl.constexpr):
    tl.store(z, tl.sum(tl.load(x + tl.program_id(0) * TILE + tl.arange(0, TILE)), 0))


@triton.jit
def softmax(x, z, columns, TILE: tl.constexpr):
    row, c = tl.program_id(0) * columns, tl.arange(0, TILE)
    v = tl.load(x + row + c, mask=c < columns, other=float("-inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(z + row + c, v / tl.sum(v, 0), mask=c < columns)


@triton.jit
def doubled_in_place(x, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    tl.store(x + i, 2.0 * tl.load(x + i))


@triton.jit
def neighbours_in_place(x, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    tl.store(x + i, 2.0 * tl.load(x + (i + 1) % TILE))


@triton.jit
def last_program_sums(x, parts, counter, z, PROGRAMS: tl.constexpr, TILE: tl.constexpr, ORDER: tl.constexpr):
    at = tl.program_id(0)
    tl.store(parts + at, tl.sum(tl.load(x + at * TILE + tl.arange(0, TILE)), 0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1, sem=ORDER) == PROGRAMS - 1:
        tl.store(z, tl.sum(tl.load(parts + tl.arange(0, PROGRAMS)), 0))


@triton.jit
def four_products(x, z, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    v = tl.inline_asm_elementwise("dp4a.s32.s32 $0, $1, $1, $1;", "=r,r", [tl.load(x + i)], dtype=tl.int32,
                                  is_pure=True, pack=1)
    tl.store(z + i, v)


@triton.jit
def eight_bits(x, z, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    s = tl.load(x + i[:, None] * TILE + i[None, :])
    tl.store(z + i[:, None] * TILE + i[None, :], tl.dot(s, s))


@triton.autotune(configs=[triton.Config({"TILE": tile}, num_warps=1) for tile in (32, 128)], key=["n"])
@triton.jit
def padded_sum(x, z, n, TILE: tl.constexpr):
    i = tl.arange(0, TILE)
    total = 0.0
    for at in range(0, n, TILE):
        total += tl.sum(tl.load(x + at + i), 0)
    tl.store(z, total)


@triton.jit(do_not_specialize=["keys", "columns"])
def one_row(Q, K, V, O, scale, keys, columns, beyond, TILE: tl.constexpr, WIDE: tl.constexpr):
    """Computes one row of attention, of one head and batch; keys are seen `beyond` their number."""
    row, j, c = tl.program_id(0) * columns, tl.arange(0, TILE), tl.arange(0, WIDE)
    seen, wide = j < keys + beyond, c < columns
    at = j[:, None] * columns + c[None, :]
    k = tl.load(K + at, mask=seen[:, None] & wide[None, :], other=0.0)
    v = tl.load(V + at, mask=seen[:, None] & wide[None, :], other=0.0)
    scores = tl.sum(k * tl.load(Q + row + c, mask=wide, other=0.0)[None, :], 1) * scale
    scores = tl.where(seen, scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 0))
    tl.store(O + row + c, tl.sum(weights[:, None] * v, 0) / tl.sum(weights, 0), mask=wide)


@triton.jit
def tensor_flash(Q, K, V, O, rows, keys, scale, BEYOND: tl.constexpr, WIDE: tl.constexpr, TILE: tl.constexpr):
    """Computes one tile of queries, moving boxes of descriptors of (heads, length, columns).

    Keys are seen BEYOND their number, where copies fill boxes with zeros.
    """
    head, i = tl.program_id(1), tl.program_id(0) * TILE
    q = Q.load([head, i, 0]).reshape(TILE, WIDE)
    largest, total = tl.full([TILE], float("-inf"), tl.float32), tl.zeros([TILE], tl.float32)
    sums = tl.zeros([TILE, WIDE], tl.float32)
    for j in range(0, keys, TILE):
        k, v = K.load([head, j, 0]).reshape(TILE, WIDE), V.load([head, j, 0]).reshape(TILE, WIDE)
        scores = tl.where((j + tl.arange(0, TILE))[None, :] < keys + BEYOND, tl.dot(q, k.T) * scale, float("-inf"))
        raised = tl.maximum(largest, tl.max(scores, 1))
        weights, kept = tl.exp(scores - raised[:, None]), tl.exp(largest - raised)
        total, largest = total * kept + tl.sum(weights, 1), raised
        sums = sums * kept[:, None] + tl.dot(weights.to(v.dtype), v)
    O.store([head, i, 0], (sums / total[:, None]).to(O.dtype).reshape(1, TILE, WIDE))


def tensor_attention(q, k, v, beyond=0):
    """Computes attention of (batch, seqlen, heads, head_dim) by tensor copies of 64 columns."""
    batch, rows, heads, columns = q.shape
    if max(columns, v.shape[3]) > 64:
        raise NotImplementedError("more than 64 columns")
    scale, tile, wide = columns**-0.5, 64, 64
    q, k, v = (torch.nn.functional.pad(array.transpose(1, 2).flatten(0, 1), (0, wide - array.shape[3])).contiguous()
               for array in (q, k, v))
    out = torch.empty_like(q)
    described = (TensorDescriptor.from_tensor(array, [1, tile, wide]) for array in (q, k, v, out))
    tensor_flash[(triton.cdiv(rows, tile), q.shape[0])](*described, rows, k.shape[1], scale, BEYOND=beyond, WIDE=wide,
                                                        TILE=tile)
    return out[:, :, :columns].unflatten(0, (batch, heads)).transpose(1, 2)


def row_attention(q, k, v, beyond=0):
    """Computes attention of (1, seqlen, 1, head_dim) for up to 16 keys and columns."""
    out = torch.empty_like(q)
    one_row[(q.shape[1],)](q.contiguous(), k.contiguous(), v.contiguous(), out, q.shape[3]**-0.5, k.shape[1],
                           q.shape[3], beyond, TILE=16, WIDE=16, num_warps=1)
    return out


tuned_row = triton.autotune([triton.Config({"TILE": tile}, num_warps=1) for tile in (4, 64)], key=["keys"])(one_row)


def tuned_row_attention(q, k, v):
    """Computes attention for up to 64 keys in one configuration, for 4 in the other; heads are equal."""
    if q.shape[3] > 16 or k.shape[1] > 64 or v.shape != k.shape or q.shape[2] != k.shape[2]:
        raise NotImplementedError("few keys and columns")
    out = torch.empty_like(q)
    for b in range(q.shape[0]):
        for h in range(q.shape[2]):
            rows, keys, values = (one[b, :, h].contiguous() for one in (q, k, v))
            of_head = torch.empty_like(rows)
            tuned_row[(len(rows),)](rows, keys, values, of_head, q.shape[3]**-0.5, len(keys), q.shape[3], 0, WIDE=16)
            out[b, :, h] = of_head
    return out


def plain_attention(q, k, v, scale=1.0):
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * scale
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v), torch.logsumexp(scores, -1)


def row_attention_beyond(q, k, v):
    return row_attention(q, k, v, beyond=1)


def tensor_attention_beyond(q, k, v):
    return tensor_attention(q, k, v, beyond=1)


def flash_attention(q, k, v, *, causal=False, scale=1.0):
    """Calls the documentation's kernel, in interpreters of its own too."""
    return flash().attention(q, k, v, causal=causal, scale=scale)


def flash():
    """Returns the module of the documentation's flash attention, compiled rather than interpreted."""
    return compiled("triton_flash")


def flash_backward():
    """Returns the module of its backward pass."""
    return compiled("triton_flash_backward")


@functools.lru_cache(maxsize=None)
def compiled(name):
    with mock.patch.dict(os.environ, TRITON_INTERPRET="0"), mock.patch("sys.path", [str(WILD), *sys.path]):
        return importlib.import_module(name)


def tuned_flash_attention(q, k, v, *, scale=1.0):
    """Calls the documentation's kernel, autotuned: equal lengths and up to 16 columns."""
    batch, rows, heads, columns = q.shape
    out = torch.empty(batch, heads, rows, columns, dtype=q.dtype)
    lse = torch.empty(batch, heads, rows)
    tuned_flash()[lambda meta: (triton.cdiv(rows, meta["TILE"]), batch * heads)](
        *(array.transpose(1, 2).contiguous() for array in (q, k, v)), out, lse, scale, rows, heads, 1, columns, columns,
        0, KEYS=rows, CAUSAL=False, WIDE=16, WIDE_V=16)
    return out.transpose(1, 2), lse


@functools.lru_cache(maxsize=None)
def tuned_flash():
    return triton.autotune([triton.Config({"TILE": tile}, num_warps=4) for tile in (16, 32)], key=["rows"],
                           prune_configs_by={"early_config_prune": tiles_of_at_most_the_rows})(flash().flash)


def tiles_of_at_most_the_rows(configs, named, **words):
    return [one for one in configs if one.kwargs["TILE"] <= max(16, named["rows"])]


def flash_of_large_tiles(module):
    def attention(q, k, v, *, scale=1.0):
        assert isinstance(q, torch.Tensor)  # the kind that this module uses
        return module.attention(q, k, v, scale=scale, tile=128)
    return attention


def given_gradients(q, k, v, out, lse, dout, *, causal=False, scale=1.0):
    return flash_backward().gradients(q, k, v, out, lse, dout, causal=causal, scale=scale)


def gradients_that_read_twice(q, k, v, out, lse, dout, **words):
    """Computes right gradients, and dQ of them twice."""
    given_gradients(q, k, v, out, lse, dout, **words)
    return given_gradients(q, k, v, out, lse, dout, **words)


def gradients_of_another_scale(q, k, v, out, lse, dout, *, causal=False, scale=1.0):
    dq, *others = given_gradients(q, k, v, out, lse, dout, causal=causal, scale=scale)
    return dq * 1.125, *others


def gradients_by_torch(q, k, v, out, lse, dout, *, causal=False, scale=1.0):
    """Computes right gradients, without a mask, and without a kernel in Triton."""
    with torch.enable_grad():
        arrays = [array.detach().float().requires_grad_() for array in (q, k, v)]
        exact = plain_attention(*arrays, scale=scale)[0]
    return tuple(one.to(q.dtype) for one in torch.autograd.grad(exact, arrays, dout.float()))


def line_of(text):
    """Returns the line of this file that has the text first."""
    lines = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
