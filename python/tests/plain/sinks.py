"""Attention with sinks in numpy, right and with one mistake each, for tests to certify and to judge."""

import numpy as np
from plain.gradients import expanded, scores_of


def attention(q, k, v, *, causal=False, scale=1.0, sinks=None):
    return shown(q, k, v, causal=causal, scale=scale, sinks=sinks)[0]


def shown(q, k, v, *, causal=False, scale=1.0, sinks=None, scaled=1, of_lse=True):
    """Returns lse too. The sinks take such a factor; without `of_lse` lse is of the keys alone."""
    scores = scores_of(q, k, causal, scale)
    scores_of_sinks = np.full(q.shape[2], -np.inf, q.dtype) if sinks is None else sinks * q.dtype.type(scaled)
    scores_of_sinks = scores_of_sinks[:, None, None]
    largest = np.maximum(scores.max(-1, keepdims=True), scores_of_sinks)
    weights, of_sinks = np.exp(scores - largest), np.exp(scores_of_sinks - largest)
    sums = weights.sum(-1, keepdims=True)
    out = np.einsum("bhij,bjhd->bihd", weights / (sums + of_sinks), expanded(v, q))
    return out.astype(q.dtype), (largest + np.log(sums + of_sinks if of_lse else sums))[..., 0].astype(q.dtype)


def backward(q, k, v, out, lse, dout, *, causal=False, scale=1.0, sinks=None, sign=-1, entries=slice(None)):
    """Returns dq, dk, dv, and dsinks where it is given sinks: with that sign, and of these batch entries."""
    lse = shown(q, k, v, causal=causal, scale=scale, sinks=sinks)[1] if lse is None else lse
    weights = np.exp(scores_of(q, k, causal, scale) - lse[..., None])
    delta = np.einsum("bihd,bihd->bhi", dout, out)[..., None]
    slopes = weights * (np.einsum("bihd,bjhd->bhij", dout, expanded(v, q)) - delta)

    def summed(gradient):
        return gradient.reshape(*k.shape[:3], -1, gradient.shape[-1]).sum(3)

    gradients = (np.einsum("bhij,bjhd->bihd", slopes, expanded(k, q)) * q.dtype.type(scale),
                 summed(np.einsum("bhij,bihd->bjhd", slopes, q)) * q.dtype.type(scale),
                 summed(np.einsum("bhij,bihd->bjhd", weights, dout)))
    if sinks is None:
        return gradients
    of_rows = np.exp(sinks[:, None] - lse) * delta[..., 0]
    return (*gradients, sign * of_rows[entries].sum((0, 2)))


def not_in_lse(*arrays, sinks=None, **words):
    return shown(*arrays, **words, sinks=sinks, of_lse=False)


def under_the_scale(*arrays, sinks=None, scale=1.0, **words):
    return shown(*arrays, **words, scale=scale, sinks=sinks, scaled=scale)


def of_head_0(*arrays, sinks=None, **words):
    return shown(*arrays, **words, sinks=None if sinks is None else np.full_like(sinks, sinks[0]))


def left_out(*arrays, sinks=None, **words):
    return shown(*arrays, **words)


def other_sign(*arrays, **words):
    return backward(*arrays, **words, sign=1)


def of_entry_0(*arrays, **words):
    return backward(*arrays, **words, entries=slice(1))


FORWARD_MISTAKES = ((not_in_lse, "LSE["), (under_the_scale, "O["), (of_head_0, "O["), (left_out, "O["))
BACKWARD_MISTAKES = (other_sign, of_entry_0)
