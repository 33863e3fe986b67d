"""Certifies functions with a bias and judges their results; refuses the same with one mistake."""

import dataclasses
import functools
import unittest
from unittest import mock

import numpy as np
from differentiated_test import OF_TORCH
from other_arrays_test import needs
from plain.attention import arrays
from plain.bias import BACKWARD_MISTAKES, FORWARD_MISTAKES, attention, backward, shown
from plain.gradients import BACKWARD, FORWARD, Gradients

import attest

PROBLEM = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,mask=causal_br,bias=hqk_f32_drawn_1"
OPTIONS = {"problems": [PROBLEM]}


class OfNumpy(Gradients):
    def test_right_ones(self):
        kernel = self.certified(shown, backward=backward, dtypes=["f32"], **OPTIONS, **BACKWARD)
        self.assertIn("bias", kernel["description"]["features"])
        self.assertIn("dBias", kernel["worst"])
        kernel = self.certified(attention, ("forward",), dtypes=["f32"], **OPTIONS, **FORWARD)
        self.assertIn("bias", kernel["description"]["features"])

    def test_mistakes_are_named(self):
        for wrong in FORWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                words = {"law": "reference_forward", "isolate": False, "dtypes": ["f32"]}
                fn = functools.wraps(shown)(wrong)
                with self.assertRaisesRegex(AssertionError, "outside the proved bound: O"):
                    attest.replay(fn, PROBLEM, **words)
                attest.replay(shown, PROBLEM, **words)

    def test_mistakes_in_the_gradient_are_named(self):
        for wrong in BACKWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                self.refused(shown, "outside the proved bound: dBias[", backward=wrong, dtypes=["f32"], **OPTIONS,
                             only="reference_backward")

    def test_its_arrays(self):
        given = set()

        def fn(q, k, v, *, scale=1.0, bias=None):
            if bias is not None:
                given.add((bias.dtype.name, bias.ndim))
            return shown(q, k, v, scale=scale, bias=bias)

        self.certified(fn, ("forward",), dtypes=["f32"], problems=["b=2,hq=2,sq=5,d=8,bias=k_holes_1"],
                       empty_row="zero_neg_inf")
        self.assertEqual(given, {("float32", 4)})

    def test_the_keyword_of_jax(self):
        given = set()

        def fn(q, k, v, bias=None, *, scale=1.0):
            if bias is not None:
                given.add(bias.ndim)
            return attention(q, k, v, scale=scale, bias=bias)

        kernel = self.certified(fn, ("forward",), like=dataclasses.replace(attest.CONVENTIONS["jax"], arrays="numpy"),
                                dtypes=["f32"], problems=["b=2,hq=2,sq=5,sk=9,d=8,bias=k_drawn_1"], **FORWARD)
        self.assertIn("bias", kernel["description"]["features"])
        self.assertEqual(given, {4})

    def test_a_gradient_that_is_missing(self):
        def three(*arrays, **words):
            return backward(*arrays, **words)[:3]

        self.refused(attention, "returned 3 arrays; it must be four arrays (dq, dk, dv, dbias) where it is given "
                     "bias", backward=three, dtypes=["f32"], **OPTIONS, only="reference_backward")


def torch_attention(q, k, v, causal=False, scale=1.0, bias=None, detached=False):
    import torch
    k, v = (x.repeat_interleave(q.shape[2] // k.shape[2], 2) for x in (k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * scale
    if bias is not None:
        scores = scores + (bias.detach() if detached else bias)
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[3] - scores.shape[2])
        scores = scores.masked_fill(~seen, float("-inf"))
    return torch.einsum("bhij,bjhd->bihd", torch.softmax(scores, -1), v)


@needs("torch")
class OfTorch(Gradients):
    def test_right_ones(self):
        kernel = self.certified(torch_attention, like=OF_TORCH, dtypes=["f32"], **OPTIONS)
        self.assertIn("dBias", kernel["worst"])

    def test_the_additive_mask_of_sdpa(self):
        import torch
        kernel = self.certified(torch.nn.functional.scaled_dot_product_attention, like="sdpa_bias", dtypes=["f32"],
                                problems=["b=2,hq=2,sq=5,sk=9,d=8,bias=hqk_drawn_1"])
        self.assertIn("bias", kernel["description"]["features"])

    def test_a_detached_bias(self):
        @functools.wraps(torch_attention)
        def detached(*arrays, **words):
            return torch_attention(*arrays, **words, detached=True)

        self.refused(detached, "torch_attention has no gradient of its bias", like=OF_TORCH, dtypes=["f32"],
                     **OPTIONS)


@needs("jax")
class OfJax(Gradients):
    """Asks for one problem: jax compiles for each."""

    WORDS = {"law": "reference_backward", "dtypes": ["f32"], "like": "jax", "isolate": False,
             "claims": ["causal", "gqa", "cross_lengths", "bias"]}
    PROBLEM = PROBLEM.replace("causal_br", "causal_tl")

    def test_the_bias_of_jax(self):
        import jax
        attest.replay(jax.nn.dot_product_attention, self.PROBLEM, **self.WORDS)

    def test_gradients_in_bf16(self):
        import jax

        problem, words = f"{self.PROBLEM.replace('_f32', '')},dtype=bf16", {**self.WORDS, "dtypes": ["bf16"]}
        declared = {"preset": "autodiff", "flushes_subnormals": True}
        attest.replay(jax.nn.dot_product_attention, problem, numerics=declared, **words)
        with self.assertRaisesRegex(AssertionError, r"outside the proved bound: d(?s:.*)"
                                    "would pass with numerics.dp_cast = bf16"):
            attest.replay(jax.nn.dot_product_attention, problem, numerics="p_cast_to_input", **words)

    def test_a_mistake(self):
        import jax

        @functools.wraps(jax.nn.dot_product_attention)
        def halved(*arrays, bias=None, **words):
            bias = None if bias is None else (bias + jax.lax.stop_gradient(bias)) / 2
            return jax.nn.dot_product_attention(*arrays, bias=bias, **words)

        with self.assertRaisesRegex(AssertionError, r"outside the proved bound: dBias\["):
            attest.replay(halved, self.PROBLEM, **self.WORDS)


class Judged(unittest.TestCase):
    """Judges what functions returned, with a bias of any values."""

    WORDS = {"causal": True, "scale": 2.0**-1.5}

    def setUp(self):
        self.qkv = arrays(2, 7, 4, 8, heads_kv=2)
        self.dout = arrays(2, 7, 4, 8, seed=1)[0]
        self.bias = np.random.default_rng(5).standard_normal((1, 4, 7, 7), np.float32)
        self.bias[0, 2, :, 3] = -np.inf
        self.features = {"causal": True, "bias": self.bias}
        self.out, self.lse = shown(*self.qkv, **self.WORDS, bias=self.bias)

    def gradients(self, work=backward):
        return work(*self.qkv, self.out, self.lse, self.dout, **self.WORDS, bias=self.bias)

    def test_right_ones(self):
        attest.assert_close(self.out, *self.qkv, lse=self.lse, **self.features)
        attest.assert_close(self.out, *self.qkv, lse=self.lse, causal=True, bias=self.bias[0])
        exact = attest.reference(*self.qkv, dout=self.dout, **self.features)
        *grads, dbias = self.gradients()
        self.assertEqual((len(exact), exact.dbias.shape), (5, (1, 4, 7, 7)))
        np.testing.assert_allclose(exact.dbias, dbias, rtol=1e-3, atol=1e-5)
        attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, lse=self.lse, dbias=dbias, **self.features)
        proved, probable = attest.bounds(*self.qkv, dout=self.dout, out=self.out, lse=self.lse, **self.features)
        self.assertTrue((proved.dbias >= probable.dbias).all() and (probable.dbias[0, 2, :, 3] == 0).all())
        self.assertIsNone(attest.reference(*self.qkv, dout=self.dout, causal=True).dbias)

    def test_mistakes(self):
        for wrong in FORWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                out, lse = wrong(*self.qkv, **self.WORDS, bias=self.bias)
                with self.assertRaisesRegex(AssertionError, r"outside the proved bound: (?s:.*)bias=hqk_given"):
                    attest.assert_close(out, *self.qkv, lse=lse, **self.features)
        for wrong in BACKWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                *grads, dbias = self.gradients(wrong)
                with self.assertRaisesRegex(AssertionError, r"outside the proved bound: dBias\["):
                    attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, lse=self.lse, dbias=dbias,
                                              **self.features)

    def test_a_mask_as_a_bias(self):
        hidden = np.where(np.tri(7, dtype=bool), 0, -np.inf).astype(np.float32)
        out, lse = shown(*self.qkv, **self.WORDS)
        attest.assert_close(out, *self.qkv, lse=lse, bias=hidden)

    def test_bad_use(self):
        def refused(kind, words, **features):
            with self.assertRaisesRegex(kind, words):
                attest.assert_close(self.out, *self.qkv, causal=True, **features)

        refused(ValueError, r"bias has shape \(3, 7, 7\); it must be \(2, 4, 7, 7\)", bias=self.bias[0, :3])
        refused(ValueError, "a value is nan", bias=np.full((1, 1), np.nan, np.float32))
        refused(ValueError, "its dtype is f64; it must be the problem's, f32, or f32", bias=self.bias.astype(float))
        refused(TypeError, "did you mean 'bias'", attn_bias=self.bias)
        *grads, dbias = self.gradients()
        for given, features, words in ((None, self.features, "dbias is None; give the gradient of bias"),
                                       (dbias, {"causal": True}, "dbias is given without bias")):
            with self.assertRaisesRegex(TypeError, words):
                attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, dbias=given, **features)
        with self.assertRaisesRegex(ValueError, "dbias has shape"):
            attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, dbias=dbias[0], **self.features)
        mask = np.ones((2, 4, 7, 7), bool)
        mask[0, 0, :, 1] = False
        with mock.patch("attest._parts._MOST_PAIRS", 0):
            refused(ValueError, "beside a bias; give it as -inf in the bias", bias=self.bias, mask=mask)

    def test_a_bias_without_effect(self):
        out, lse = shown(*self.qkv, **self.WORDS)
        with self.assertRaisesRegex(attest.NothingProved, "too small to tell from none"):
            attest.assert_close(out, *self.qkv, lse=lse, causal=True, bias=np.full((7, 7), 1e-30, np.float32))
        with self.assertRaisesRegex(attest.NothingProved, "the same for all keys shows in LSE alone"):
            attest.assert_close(out, *self.qkv, causal=True, bias=np.ones((7, 1), np.float32))


if __name__ == "__main__":
    unittest.main()
