"""Certifies functions of packed sequences, called as flash_attn_varlen_func is."""

import dataclasses
import functools
import inspect
import unittest

import numpy as np
from other_arrays_test import needs
from plain.gradients import BACKWARD, Gradients, backward, shown

import attest

VARLEN = dataclasses.replace(attest.CONVENTIONS["flash_attn_varlen_func"], arrays="numpy")
PACKED = "hq=4,hkv=2,d=8,mask=cu_3x5_1x4_2x2+causal_br"
OPTIONS = {"like": VARLEN, "problems": [PACKED]}


def each_sequence(work, arrays, ends, **words):
    """Returns the results of every sequence, one after another; those of a batch of 1 each."""
    spans = [list(map(slice, one, one[1:])) for one in ends]
    results = [work(*(array[None, span[k]] for array, span in zip(arrays, spans)), **words)
               for k in range(len(spans[0]))]
    return list(zip(*results))


def varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0,
           softmax_scale=1.0, causal=False):
    assert max_seqlen_q == np.diff(cu_seqlens_q).max() and max_seqlen_k == np.diff(cu_seqlens_k).max()
    ends = (cu_seqlens_q, cu_seqlens_k, cu_seqlens_k)
    out, lse = each_sequence(shown, (q, k, v), ends, causal=causal, scale=softmax_scale)
    return np.concatenate(out, axis=1)[0], np.concatenate(lse, axis=2)[0]


def varlen_backward(q, k, v, out, lse, dout, *, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                    softmax_scale, causal):
    def of_one(q, k, v, out, lse, dout, **words):
        return backward(q, k, v, out, lse.swapaxes(1, 2), dout, **words)

    gradients = each_sequence(of_one, (q, k, v, out, lse.swapaxes(0, 1), dout),
                              (cu_seqlens_q, cu_seqlens_k, cu_seqlens_k, *[cu_seqlens_q] * 3),
                              causal=causal, scale=softmax_scale)
    return tuple(np.concatenate(one, axis=1)[0] for one in gradients)


def one_sequence(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=1.0,
                 causal=False):
    """Returns attention over the tokens of all sequences."""
    out, lse = shown(*(x[None] for x in (q, k, v)), causal=causal, scale=softmax_scale)
    return out[0], lse[0]


@functools.wraps(varlen)
def without_lse(*arrays, **words):
    return varlen(*arrays, **words)[0]


@functools.wraps(varlen)
def lse_by_token(*arrays, **words):
    out, lse = varlen(*arrays, **words)
    return out, lse.T


def wrong_ends_backward(*arrays, cu_seqlens_k, **words):
    middle = np.sort(np.maximum(cu_seqlens_k[1:-1] - 1, 1))
    return varlen_backward(*arrays, cu_seqlens_k=np.concatenate([cu_seqlens_k[:1], middle,
                                                                 cu_seqlens_k[-1:]]), **words)


class Varlen(Gradients):
    def test_right_ones(self):
        kernel = self.certified(varlen, **OPTIONS, backward=varlen_backward, **BACKWARD)
        claimed = kernel["description"]["features"]
        self.assertEqual(claimed, ["causal_bottom_right", "packed_sequences", "gqa", "head_dim_v",
                                   "any_scale", "any_strides", "lse", "cross_lengths"])
        self.certified(without_lse, ("forward",), **OPTIONS, only="reference_forward")

    def test_mistakes_are_named(self):
        message = self.refused(one_sequence, "reference_forward: outside the proved bound: ", **OPTIONS,
                               only="reference_forward")
        self.shown_again(message, one_sequence=one_sequence, VARLEN=VARLEN)
        message = self.refused(varlen, "reference_backward: outside the proved bound: d", **OPTIONS,
                               backward=wrong_ends_backward, only="reference_backward")
        names = {"varlen": varlen, "VARLEN": VARLEN}
        line = self.shown_again(message, wrong_ends_backward=wrong_ends_backward, **names)
        eval(line.replace("wrong_ends", "varlen"), {"attest": attest, "varlen_backward": varlen_backward,
                                                    **names})

    def test_bad_use(self):
        self.refused_at_once(TypeError, "out of shape (2, 6, 4, 8); it must be (12, 4, 8)",
                             lambda q, *_, **__: q.reshape(2, 6, 4, 8), **OPTIONS)
        self.refused_at_once(TypeError, "lse of shape (12, 4); it must be (4, 12)",
                             lse_by_token, **OPTIONS)
        with self.assertRaisesRegex(ValueError, "layout is 'sbhd'; it must be one of bshd, bhsd, thd"):
            dataclasses.replace(VARLEN, layout="sbhd")

    def test_the_convention_is_found(self):
        found = attest._conventions.convention
        self.assertIs(found(None, varlen), attest.CONVENTIONS["plain"])  # it lacks some keywords
        for name, row in attest.CONVENTIONS.items():
            words = [inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY) for word in row.keywords]

            def fn():
                pass

            fn.__signature__ = inspect.Signature(words)
            expected = {"numpy": "plain", "sdpa_bias": "sdpa"}.get(name, name)  # asked for by name alone
            self.assertIs(found(None, fn), attest.CONVENTIONS[expected])

    @needs("torch")
    def test_torch(self):
        import torch

        def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                                   dropout_p=0.0, softmax_scale=None, causal=False,
                                   window_size=(-1, -1), softcap=0.0, alibi_slopes=None):
            if softcap or alibi_slopes is not None or window_size != (-1, -1):
                raise NotImplementedError("a plain or causal mask alone")
            results = []
            for begin, end, first, last in zip(cu_seqlens_q, cu_seqlens_q[1:], cu_seqlens_k,
                                               cu_seqlens_k[1:]):
                group = q.shape[1] // k.shape[1]
                keys, values = (x[first:last].repeat_interleave(group, 1) for x in (k, v))
                scores = torch.einsum("ihd,jhd->hij", q[begin:end], keys) * softmax_scale
                if causal:
                    seen = torch.ones(scores.shape[1:], dtype=torch.bool).tril(last - first - end + begin)
                    scores = scores.masked_fill(~seen, float("-inf"))
                results.append(torch.einsum("hij,jhd->ihd", torch.softmax(scores, -1), values))
            return torch.cat(results)

        kernel = self.certified(flash_attn_varlen_func, problems=[PACKED])
        self.assertIn("packed_sequences", kernel["description"]["features"])


if __name__ == "__main__":
    unittest.main()
