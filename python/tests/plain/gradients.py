"""Attention in numpy with its gradients, right and with one mistake each, for tests to certify."""

import os
import unittest

import numpy as np

import attest

GROUPED = "sq=5,sk=9,hq=4,hkv=2,d=8,mask=causal_br"
# Outside nightly a right function is held against the exact result alone, for time.
FORWARD = {} if "ATTEST_NIGHTLY" in os.environ else {"only": "reference_forward"}
BACKWARD = {} if "ATTEST_NIGHTLY" in os.environ else {"only": "reference_backward"}
SMALL = {"isolate": False, "cases": 4, "shapes": "none", "dtypes": ["f32"], "problems": [GROUPED]}


def expanded(array, q):
    """Returns k or v with a head for each head of q."""
    return np.repeat(array, q.shape[2] // array.shape[2], axis=2)


def scores_of(q, k, causal, scale):
    scores = np.einsum("bihd,bjhd->bhij", q, expanded(k, q)) * q.dtype.type(scale)
    queries, keys = np.indices(scores.shape[-2:])
    hidden = causal and keys > queries + scores.shape[3] - scores.shape[2]
    return np.where(hidden, -np.inf, scores).astype(q.dtype)


def attention(q, k, v, *, causal=False, scale=1.0):
    return shown(q, k, v, causal=causal, scale=scale)[0]


def shown(q, k, v, *, causal=False, scale=1.0):
    """Returns lse too."""
    scores = scores_of(q, k, causal, scale)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - largest)
    sums = weights.sum(-1, keepdims=True)
    return (np.einsum("bhij,bjhd->bihd", weights / sums, expanded(v, q)),
            (largest + np.log(sums))[..., 0])


def backward(q, k, v, out, lse, dout, *, causal=False, scale=1.0, scale_of_dq=None, heads=None):
    """Returns dq, dk and dv; dk and dv of so many heads of a group."""
    lse = shown(q, k, v, causal=causal, scale=scale)[1] if lse is None else lse
    with np.errstate(over="ignore"):  # without the mask a score may be far above lse
        weights = np.exp(scores_of(q, k, causal, scale) - lse[..., None])
    delta = np.einsum("bihd,bihd->bhi", dout, out)[..., None]
    slopes = weights * (np.einsum("bihd,bjhd->bhij", dout, expanded(v, q)) - delta)

    def summed(gradient):
        return gradient.reshape(*k.shape[:3], -1, gradient.shape[-1])[..., :heads, :].sum(3)

    return (np.einsum("bhij,bjhd->bihd", slopes, expanded(k, q)) * q.dtype.type(scale_of_dq or scale),
            summed(np.einsum("bhij,bihd->bjhd", slopes, q)) * q.dtype.type(scale),
            summed(np.einsum("bhij,bihd->bjhd", weights, dout)))


def dq_without_scale(*arrays, **words):
    return backward(*arrays, **words, scale_of_dq=1)


def first_head_of_group(*arrays, **words):
    return backward(*arrays, **words, heads=1)


def without_mask(*arrays, causal, scale):
    return backward(*arrays, scale=scale)


MISTAKES = ((dq_without_scale, "dQ lacks the softmax scale"),
            (first_head_of_group, "only the first query head of a group"),
            (without_mask, "reference_backward: outside the proved bound: d"))


class Gradients(unittest.TestCase):
    def certified(self, fn, directions=("forward", "backward"), **options):
        """Certifies a function, up to cases that were not met; returns its part of the certificate."""
        report = attest.certify(fn, **{**SMALL, **options})
        report.raise_if_refused()
        kernel = report.certificate["kernels"][0]
        self.assertEqual(tuple(kernel["description"]["directions"]), directions)
        self.assertEqual(kernel["coverage"]["refused"], [])
        self.assertTrue(all("never" in gap or "--shapes none" in gap for gap in kernel["incomplete"]), kernel["incomplete"])
        self.assertEqual("backward" in directions, "dK" in kernel["worst"])
        return kernel

    def refused(self, fn, words, **options):
        """Returns the message of a function that must be refused, with these words."""
        report = attest.certify(fn, **{**SMALL, **options})
        with self.assertRaises(AssertionError) as raised:
            report.raise_if_refused()
        self.assertIn(words, str(raised.exception))
        return str(raised.exception)

    def refused_at_once(self, kind, words, fn, **options):
        with self.assertRaises(kind) as raised:
            attest.certify(fn, **{**SMALL, **options})
        self.assertIn(words, str(raised.exception))

    def shown_again(self, message, **names):
        """Evaluates the last line of a finding; returns it."""
        line = message.splitlines()[-1]
        with self.assertRaises(AssertionError) as raised:
            eval(line, {"attest": attest, **names})
        self.assertEqual(str(raised.exception), message)
        return line
