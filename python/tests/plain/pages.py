"""Attention over pages of k and v in numpy, right and with one mistake each, for tests to certify."""

import numpy as np
from plain.gradients import expanded


def attention(q, k, v, *, causal=False, scale=1.0, key_lengths=None, block_table=None):
    return shown(q, k, v, causal=causal, scale=scale, key_lengths=key_lengths, block_table=block_table)[0]


def shown(q, k, v, *, causal=False, scale=1.0, key_lengths=None, block_table=None, entry_of=None, more=0):
    """Returns lse too. The pages are those of batch entry `entry_of`, and so many keys more are read."""
    out, lse = np.zeros((*q.shape[:3], v.shape[3]), q.dtype), np.empty((q.shape[0], q.shape[2], q.shape[1]), q.dtype)
    for b in range(len(q)):
        length = int(k.shape[1] if key_lengths is None else key_lengths[b])
        if block_table is None:
            keys, values = k[b, :length], v[b, :length]
        else:
            row = block_table[b if entry_of is None else entry_of]
            slots = np.arange(length + more)
            pages = row[np.minimum(slots // k.shape[1], len(row) - 1)]
            keys, values = (pool[pages, slots % k.shape[1]] for pool in (k, v))
        out[b], lse[b] = _of_entry(q[b], keys, values, causal, scale, length)
    return out, lse


def _of_entry(q, k, v, causal, scale, length):
    scores = np.einsum("ihd,jhd->hij", q, expanded(k[None], q[None])[0]) * q.dtype.type(scale)
    queries, keys = np.indices(scores.shape[-2:])
    hidden = causal & (keys > queries + length - len(q))
    scores = np.where(hidden, -np.inf, scores).astype(q.dtype)
    with np.errstate(invalid="ignore", divide="ignore"):
        largest = scores.max(-1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
        sums = weights.sum(-1, keepdims=True)
        out = np.einsum("hij,jhd->ihd", np.where(sums > 0, weights / sums, 0), expanded(v[None], q[None])[0])
        return out, (largest + np.log(sums))[..., 0]


def pages_of_entry_0(*arrays, **words):
    return shown(*arrays, **words, entry_of=0)


def one_slot_more(*arrays, **words):
    return shown(*arrays, **words, more=1)


MISTAKES = pages_of_entry_0, one_slot_more
