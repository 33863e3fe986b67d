"""Holds functions to claims of bits and of NaN where they are given; refuses the same with one mistake."""

import os
import unittest
import warnings

import numpy as np
from plain.gradients import Gradients

import attest

FOUND = ["any_scale", "causal", "cross_lengths", "gqa", "head_dim_v"]
PROBLEM = "b=2,hq=2,sq=5,sk=9,d=8,mask=causal_br"


def attention(q, k, v, *, causal=False, scale=1.0, num_splits=0):
    """Takes each row by itself, over the keys that it sees, whatever the number of splits."""
    return of_rows(q, k, v, causal, scale)


def of_rows(q, k, v, causal, scale, order=1, parts=1, score=lambda one: one, value=lambda one: one, hidden=False):
    out = np.zeros((*q.shape[:3], v.shape[3]), q.dtype)
    group = q.shape[2] // k.shape[2]
    for b, h, i in np.ndindex(q.shape[0], q.shape[2], q.shape[1]):
        seen = k.shape[1] + min(0, i + 1 - q.shape[1]) if causal else k.shape[1]
        if seen <= 0:
            continue
        keys, values = (np.ascontiguousarray(array[b, :seen, h // group][::order]) for array in (k, v))
        scores = score((keys * q[b, i, h]).sum(-1) * q.dtype.type(scale))
        weights = np.exp(scores - scores.max())
        for part in np.array_split(np.arange(seen), parts):
            out[b, i, h] += (weights[part, None] * value(values[part])).sum(0)
        out[b, i, h] /= weights.sum()
        if hidden:
            out[b, i, h] += 0 * v[b, seen:, h // group].sum(0)
    return out


def by_batch(q, k, v, *, causal=False, scale=1.0):
    return of_rows(q, k, v, causal, scale, order=-1 if q.shape[0] > 1 else 1)


def by_splits(q, k, v, *, causal=False, scale=1.0, num_splits=0):
    return of_rows(q, k, v, causal, scale, parts=max(num_splits, 1))


def without_nan(q, k, v, *, causal=False, scale=1.0):
    return of_rows(q, k, v, causal, scale, score=np.nan_to_num)


def clamped(q, k, v, *, causal=False, scale=1.0):
    return of_rows(q, k, v, causal, scale, value=lambda one: np.clip(one, -1e30, 1e30))


def by_product(q, k, v, *, causal=False, scale=1.0):
    return of_rows(q, k, v, causal, scale, hidden=True)


MISTAKES = ((by_batch, "batch_invariant", "batch_invariance"), (by_splits, "split_invariant", "split_invariance"),
            (without_nan, "nonfinite", "nan_propagation"), (clamped, "nonfinite", "infinity_propagation"),
            (by_product, "nonfinite", "hidden_nonfinite"))


class ClaimsOfBits(Gradients):
    def setUp(self):
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, of NaN

    def test_a_function_keeps_what_it_is_held_to(self):
        stated = ["batch_invariant", "split_invariant", "nonfinite"]
        kernel = self.certified(attention, ("forward",), cases=8, problems=[PROBLEM + ",splits=3"],
                                claims=[*FOUND, *stated])
        for word in stated:
            self.assertIn(word, kernel["description"]["features"])
        for law in ("batch_invariance", "split_invariance", "nan_propagation", "infinity_propagation",
                    "hidden_nonfinite"):
            self.assertGreater(kernel["laws"][law]["passed"], 0, law)

    def test_no_call_finds_such_a_claim(self):
        given = set()

        def fn(q, k, v, *, causal=False, scale=1.0, num_splits=5):
            given.add(num_splits)
            return attention(q, k, v, causal=causal, scale=scale)

        kernel = self.certified(fn, ("forward",), problems=[PROBLEM], only="reference_forward")
        self.assertEqual(set(kernel["description"]["features"]) & {"batch_invariant", "split_invariant", "nonfinite"},
                         set())
        self.assertEqual(given, {5})
        self.certified(fn, ("forward",), problems=[PROBLEM + ",splits=3"],
                       claims=[*FOUND, "split_invariant"], only="reference_forward")
        self.assertLessEqual({3, 5}, given)

    def test_a_keyword_is_needed_for_splits(self):
        def fn(q, k, v, *, causal=False, scale=1.0):
            return attention(q, k, v, causal=causal, scale=scale)

        with self.assertRaisesRegex(ValueError, "'split_invariant' is asked for by num_splits"):
            attest.certify(fn, claims=[*FOUND, "split_invariant"], isolate=False)

    def test_mistakes_are_refused_by_their_law(self):
        for fn, word, law in MISTAKES if "ATTEST_NIGHTLY" in os.environ else MISTAKES[::2]:
            with self.subTest(fn.__name__):
                attest.replay(fn, PROBLEM, law="reference_forward", isolate=False, dtypes=["f32"],
                              claims=[*FOUND, word])
                report = attest.certify(fn, only=law, claims=[*FOUND, word], isolate=False, cases=20, dtypes=["f32"])
                self.assertEqual([finding["law"] for finding in report.findings], [law])


if __name__ == "__main__":
    unittest.main()
