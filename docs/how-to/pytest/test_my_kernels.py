"""Certifies kernels beside the other tests of their module; run it with pytest."""

import numpy as np
import pytest


def attention(q, k, v, *, causal=False, scale=1.0):
    scores = np.einsum("bihd,bjhd->bhij", q, k, dtype=np.float64) * scale
    if causal:
        queries, keys = np.indices(scores.shape[-2:])
        scores = np.where(keys <= queries + k.shape[1] - q.shape[1], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", weights / weights.sum(-1, keepdims=True), v).astype(q.dtype)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_attention(attest_certify, dtype):
    attest_certify(attention, dtypes=[dtype])
