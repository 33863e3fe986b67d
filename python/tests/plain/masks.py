"""Attention with masks of heads, query lengths and offset windows in numpy, right and with one mistake each."""

import numpy as np
from plain.gradients import expanded


def in_window(shape, queries, left, right):
    """Tells of each pair of each batch entry whether it lies in the window, the last query with the last key."""
    rows, keys = np.indices(shape)
    beyond = keys - rows - (shape[1] - queries[:, None, None, None])
    inside = np.ones(beyond.shape, bool)
    if left is not None:
        inside &= beyond >= -left
    if right is not None:
        inside &= beyond <= right
    return inside


def visible(q, k, causal, head_mask, query_lengths, offset_window, padded):
    """Returns booleans (batch, heads of q or 1, seqlen_q, seqlen_k)."""
    every = np.full(len(q), q.shape[1])
    queries = every if query_lengths is None else query_lengths.astype(np.int64)
    seen = np.arange(q.shape[1])[:, None] < queries[:, None, None, None]
    for ends in ((None, 0) if causal else None, offset_window):
        if ends is not None:
            seen = seen & in_window((q.shape[1], k.shape[1]), every if padded else queries, *ends)
    seen = np.broadcast_to(seen, (*seen.shape[:3], k.shape[1]))
    return seen if head_mask is None else seen & head_mask


def scores_of(q, k, seen, scale):
    scores = np.einsum("bihd,bjhd->bhij", q, expanded(k, q)) * q.dtype.type(scale)
    return np.where(seen, scores, -np.inf).astype(q.dtype)


def shown(q, k, v, *, causal=False, scale=1.0, head_mask=None, query_lengths=None, offset_window=None, padded=False):
    """Returns out and lse, 0 and -inf of rows without a key; `padded` aligns with all rows of q."""
    seen = visible(q, k, causal, head_mask, query_lengths, offset_window, padded)
    scores = scores_of(q, k, seen, scale)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    sums = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (largest + np.log(sums))[..., 0]
    out = np.einsum("bhij,bjhd->bihd", weights / np.where(sums == 0, 1, sums), expanded(v, q))
    return out.astype(q.dtype), lse.astype(q.dtype)


def backward(q, k, v, out, lse, dout, *, causal=False, scale=1.0, head_mask=None, query_lengths=None,
             offset_window=None, whole=False):
    """Returns dq, dk and dv; `whole` takes rows past a length for such as see all keys, in dv."""
    seen = visible(q, k, causal, head_mask, query_lengths, offset_window, False)
    scores = scores_of(q, k, seen, scale)
    with np.errstate(invalid="ignore"):  # lse is NaN where nobody wrote it
        weights = np.exp(scores - np.where(np.isneginf(lse), np.inf, lse)[..., None])
    delta = np.einsum("bihd,bihd->bhi", dout, out)[..., None]
    slopes = weights * (np.einsum("bihd,bjhd->bhij", dout, expanded(v, q)) - delta)
    # Rows past a length may hold anything in out and lse.
    weights, slopes = np.where(seen, weights, 0), np.where(seen, slopes, 0)
    if whole:
        weights = np.where(np.isneginf(lse)[..., None], q.dtype.type(1 / k.shape[1]), weights)

    def summed(gradient):
        return gradient.reshape(*k.shape[:3], -1, gradient.shape[-1]).sum(3)

    return (np.einsum("bhij,bjhd->bihd", slopes, expanded(k, q)) * q.dtype.type(scale),
            summed(np.einsum("bhij,bihd->bjhd", slopes, q)) * q.dtype.type(scale),
            summed(np.einsum("bhij,bihd->bjhd", weights, dout)))


def mask_of_head_0(*arrays, head_mask=None, **words):
    return shown(*arrays, **words, head_mask=None if head_mask is None else head_mask[:, :1])


def mask_of_entry_0(*arrays, head_mask=None, **words):
    return shown(*arrays, **words, head_mask=None if head_mask is None else head_mask[:1])


def mask_left_out(*arrays, head_mask=None, **words):
    return shown(*arrays, **words)


def lengths_of_entry_0(*arrays, query_lengths=None, **words):
    return shown(*arrays, **words,
                 query_lengths=None if query_lengths is None else np.full_like(query_lengths, query_lengths[0]))


def lengths_left_out(*arrays, query_lengths=None, **words):
    return shown(*arrays, **words)


def aligned_with_padding(*arrays, **words):
    return shown(*arrays, **words, padded=True)


def minus_one_unbounded(*arrays, offset_window=None, **words):
    ends = None if offset_window is None else tuple(None if end == -1 else end for end in offset_window)
    return shown(*arrays, **words, offset_window=ends)


def negative_end_at_0(*arrays, offset_window=None, **words):
    ends = None if offset_window is None else tuple(None if end is None else max(end, 0) for end in offset_window)
    return shown(*arrays, **words, offset_window=ends)


def window_left_out(*arrays, offset_window=None, **words):
    return shown(*arrays, **words)


def rows_past_a_length_left(*arrays, query_lengths=None, **words):
    """Returns what `shown` does, and in rows past a length what was in memory."""
    out, lse = shown(*arrays, **words, query_lengths=query_lengths)
    for b, length in enumerate([] if query_lengths is None else query_lengths):
        out[b, length:] = lse[b, :, length:] = 7
    return out, lse


def rows_past_a_length_in_dv(*arrays, **words):
    return backward(*arrays, **words, whole=True)


OF_MASKS = (mask_of_head_0, mask_of_entry_0, mask_left_out)
OF_LENGTHS = (lengths_of_entry_0, lengths_left_out, aligned_with_padding)
OF_WINDOWS = (minus_one_unbounded, negative_end_at_0, window_left_out)
