"""Attention in numpy for the tests to hold against the library: written apart from it, in float64."""

import numpy as np


def arrays(*shape_of_q, heads_kv=None, seqlen_k=None, head_dim_v=None, dtype=np.float32, seed=0):
    """Draws q, k, v of (batch, seqlen, heads, head_dim)."""
    batch, seqlen_q, heads, head_dim = shape_of_q
    keys = (batch, seqlen_k or seqlen_q, heads_kv or heads)
    random = np.random.default_rng(seed)
    return tuple(random.standard_normal(shape).astype(dtype)
                 for shape in (shape_of_q, (*keys, head_dim), (*keys, head_dim_v or head_dim)))


def causal(seqlen_q, seqlen_k, shift=0):
    """Tells of each pair (seqlen_q, seqlen_k) whether key j <= i + shift."""
    return np.arange(seqlen_k)[None] <= np.arange(seqlen_q)[:, None] + shift


def attention(q, k, v, visible=True, scale=None, softcap=0, bias=0):
    """Returns out in q's dtype and lse, float64 for float64 and else float32.

    `visible` and `bias` broadcast to (batch, heads, seqlen_q, seqlen_k).
    """
    dtype, group = q.dtype, q.shape[2] // k.shape[2]
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    k, v = (np.repeat(array, group, axis=2) for array in (k, v))
    scores = np.einsum("bihd,bjhd->bhij", q, k) * (scale or 1 / np.sqrt(q.shape[-1]))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    scores = np.where(visible, scores + bias, -np.inf)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - largest)
    sums = weights.sum(-1, keepdims=True)
    out = np.einsum("bhij,bjhd->bihd", weights / sums, v)
    lse = (largest + np.log(sums))[..., 0]
    return out.astype(dtype), lse.astype(np.float64 if dtype == np.float64 else np.float32)
