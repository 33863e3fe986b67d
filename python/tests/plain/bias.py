"""Attention with a bias in numpy, right and with one mistake each, for tests to certify and to judge."""

import numpy as np
from plain.gradients import expanded, scores_of


def wide(bias):
    """Returns a bias of any dtype in numbers that numpy adds."""
    return bias if bias.dtype != np.uint16 else (bias.astype(np.uint32) << 16).view(np.float32)


def shown(q, k, v, *, causal=False, scale=1.0, bias=None, change=lambda bias: bias):
    """Returns out and lse. The bias is changed first."""
    scores = scores_of(q, k, causal, scale)
    if bias is not None:
        scores = scores + change(wide(bias)).astype(q.dtype)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    sums = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (largest + np.log(sums))[..., 0]
    out = np.einsum("bhij,bjhd->bihd", weights / np.where(sums == 0, 1, sums), expanded(v, q))
    return out.astype(q.dtype), lse.astype(q.dtype)


def attention(q, k, v, *, causal=False, scale=1.0, bias=None):
    return shown(q, k, v, causal=causal, scale=scale, bias=bias)[0]


def backward(q, k, v, out, lse, dout, *, causal=False, scale=1.0, bias=None, change=lambda dbias, _: dbias):
    """Returns dq, dk, dv, and dbias where it is given a bias, which is changed before it is summed."""
    scores = scores_of(q, k, causal, scale)
    if bias is not None:
        scores = scores + wide(bias).astype(q.dtype)
    lse = shown(q, k, v, causal=causal, scale=scale, bias=bias)[1] if lse is None else lse
    weights = np.exp(scores - np.where(np.isneginf(lse), np.inf, lse)[..., None])
    delta = np.einsum("bihd,bihd->bhi", dout, out)[..., None]
    slopes = weights * (np.einsum("bihd,bjhd->bhij", dout, expanded(v, q)) - delta)

    def summed(gradient):
        return gradient.reshape(*k.shape[:3], -1, gradient.shape[-1]).sum(3)

    gradients = (np.einsum("bhij,bjhd->bihd", slopes, expanded(k, q)) * q.dtype.type(scale),
                 summed(np.einsum("bhij,bihd->bjhd", slopes, q)) * q.dtype.type(scale),
                 summed(np.einsum("bhij,bihd->bjhd", weights, dout)))
    if bias is None:
        return gradients
    axes = tuple(axis for axis, extent in enumerate(bias.shape) if extent == 1)
    dbias = change(slopes, scale).sum(axes, keepdims=True)
    return (*gradients, dbias.astype(wide(bias).dtype))


def under_the_scale(*arrays, scale=1.0, **words):
    return shown(*arrays, scale=scale, **words, change=lambda bias: bias * scale)


def of_head_0(*arrays, **words):
    return shown(*arrays, **words, change=lambda bias: np.broadcast_to(bias[:, :1], bias.shape))


def in_half(*arrays, **words):
    return shown(*arrays, **words, change=lambda bias: bias.astype(np.float16))


def left_out(*arrays, bias=None, **words):
    return shown(*arrays, **words)


def of_entry_0(*arrays, **words):
    return backward(*arrays, **words, change=lambda dbias, _: dbias[:1])


def scaled(*arrays, **words):
    return backward(*arrays, **words, change=lambda dbias, scale: dbias * scale)


FORWARD_MISTAKES = (under_the_scale, of_head_0, in_half, left_out)
BACKWARD_MISTAKES = (of_entry_0, scaled)
