"""Certifies a function that takes K and V in one buffer; refuses the same where it reads the wrong columns."""

import unittest

import numpy as np
from plain.attention import attention as plain
from plain.gradients import Gradients

import attest

CLAIMS = ["any_scale", "cross_lengths", "gqa", "head_dim_v", "shared_kv"]
PROBLEMS = ("hq=2,hkv=1,sq=3,sk=5,d=8,dv=4,shared_kv=first", "hq=2,hkv=1,sq=3,sk=5,d=8,dv=4,shared_kv=last",
            "hq=2,hkv=1,sq=3,sk=5,d=4,dv=8,shared_kv=last", "hq=2,hkv=1,sq=3,sk=5,d=4,shared_kv=first")


def attention(q, k, v, *, scale=1.0):
    return plain(q, k, v, scale=scale)[0]


def values_at_first_column(q, k, v, *, scale=1.0):
    """Takes V for the first columns of K wherever they share memory."""
    if np.shares_memory(k, v) and v.shape[-1] < k.shape[-1]:
        v = k[..., : v.shape[-1]]
    return plain(q, k, v, scale=scale)[0]


class SharedKv(Gradients):
    def test_a_right_one(self):
        kernel = self.certified(attention, ("forward",), dtypes=["f32"], claims=CLAIMS, problems=list(PROBLEMS),
                                only="reference_forward")
        self.assertIn("shared_kv", kernel["description"]["features"])
        for problem in PROBLEMS:
            attest.replay(attention, problem, law="shared_kv", dtypes=["f32"], claims=CLAIMS)

    def test_the_wrong_columns(self):
        for problem, refused in zip(PROBLEMS, (False, True, False, False)):
            for law in "reference_forward", "shared_kv":
                words = {"law": law, "dtypes": ["f32"], "claims": CLAIMS, "isolate": False}
                with self.subTest(problem, law=law):
                    if not refused:
                        attest.replay(values_at_first_column, problem, **words)
                        continue
                    with self.assertRaises(AssertionError):
                        attest.replay(values_at_first_column, problem, **words)


if __name__ == "__main__":
    unittest.main()
