"""Stands for the module with one's own kernels."""

import numpy as np


def attention(q, k, v, *, causal=False, scale=1.0):
    """Returns out of q, k, v (batch, seqlen, heads, head_dim); causal at the bottom right."""
    scores = np.einsum("bihd,bjhd->bhij", q, k, dtype=np.float64) * scale
    if causal:
        queries, keys = np.indices(scores.shape[-2:])
        scores = np.where(keys <= queries + k.shape[1] - q.shape[1], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", weights / weights.sum(-1, keepdims=True), v).astype(q.dtype)
