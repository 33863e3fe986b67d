"""Judges arrays of torch, jax and ml_dtypes, where they are installed."""

import importlib.util
import unittest

import numpy as np
from plain.attention import arrays, attention

import attest


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


class OtherArrays(unittest.TestCase):
    def check(self, of, dtype=np.float32):
        """Judges arrays that `of` makes from numpy's."""
        q, k, v = arrays(2, 5, 2, 8, dtype=dtype)
        out, lse = attention(q, k, v)
        attest.assert_close(of(out), of(q), of(k), of(v), lse=of(lse))
        out[0, 1, 1, 2] += 1
        with self.assertRaisesRegex(AssertionError, r"O\[batch=0, seqlen_q=1, num_heads_q=1, head_dim_v=2"):
            attest.assert_close(of(out), of(q), of(k), of(v))

    @needs("ml_dtypes")
    def test_bfloat16_of_ml_dtypes(self):
        import ml_dtypes
        self.check(np.asarray, dtype=ml_dtypes.bfloat16)

    @needs("torch")
    def test_torch(self):
        import torch
        self.check(torch.from_numpy)
        self.check(lambda array: torch.from_numpy(array.copy()).requires_grad_())
        self.check(torch.from_numpy, dtype=np.float16)

    @needs("torch")
    def test_tensors_of_torch_that_are_no_arrays(self):
        import torch
        q, k, v = map(torch.from_numpy, arrays(1, 5, 2, 8))
        for given, words in ((q.to("meta"), r"q \(torch.float32 on meta\): "), (q.to_sparse(), "q .*Sparse"),
                             (q.to(torch.float8_e4m3fn), r"q \(torch.float8_e4m3fn on cpu\): ")):
            with self.assertRaisesRegex(TypeError, words):
                attest.assert_close(q, given, k, v)

    @needs("torch")
    def test_bfloat16_of_torch(self):
        import torch
        q, k, v = (torch.from_numpy(array).bfloat16() for array in arrays(1, 5, 2, 8))
        exact = attest.reference(q, k, v)
        out = torch.from_numpy(exact.out).bfloat16()
        attest.assert_close(out, q, k, v, lse=torch.from_numpy(exact.lse).float())
        attest.assert_close(out.transpose(1, 2), *(x.transpose(1, 2) for x in (q, k, v)), layout="bhsd")
        out[0, 1, 1, 2] += 1
        with self.assertRaises(AssertionError):
            attest.assert_close(out, q, k, v)

    @needs("jax")
    def test_jax(self):
        import jax.numpy as jnp
        self.check(jnp.asarray)
        q, k, v = (jnp.asarray(array, jnp.bfloat16) for array in arrays(1, 5, 2, 8))
        exact = attest.reference(q, k, v)
        attest.assert_close(jnp.asarray(exact.out, jnp.bfloat16), q, k, v)
        with self.assertRaises(AssertionError):
            attest.assert_close(jnp.zeros_like(q), q, k, v)


if __name__ == "__main__":
    unittest.main()
