"""Certifies functions with sinks and judges their results; refuses the same with one mistake."""

import dataclasses
import functools
import inspect
import unittest
from unittest import mock

import numpy as np
from differentiated_test import OF_JAX, OF_TORCH
from other_arrays_test import needs
from plain.attention import arrays
from plain.gradients import BACKWARD, FORWARD, Gradients
from plain.sinks import BACKWARD_MISTAKES, FORWARD_MISTAKES, attention, backward, shown

import attest

PROBLEM = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,mask=causal_br,sinks=drawn_1"
OPTIONS = {"problems": [PROBLEM]}
NUMPY = dataclasses.replace(attest.CONVENTIONS["flash_attn_func"], arrays="numpy")


class OfNumpy(Gradients):
    def test_right_ones(self):
        kernel = self.certified(shown, backward=backward, **OPTIONS, **BACKWARD)
        self.assertIn("sinks", kernel["description"]["features"])
        self.assertIn("dSinks", kernel["worst"])
        kernel = self.certified(attention, ("forward",), dtypes=["f32", "f64"], **OPTIONS, only="reference_forward")
        self.assertIn("sinks", kernel["description"]["features"])
        self.certified(attention, backward=backward, dtypes=["f64"], problems=[PROBLEM + ",dtype=f64"],
                       only="reference_backward")

    def test_mistakes_are_named(self):
        for wrong, output in FORWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                words = {"law": "reference_forward", "isolate": False, "dtypes": ["f32"]}
                fn = functools.wraps(shown)(wrong)
                with self.assertRaisesRegex(AssertionError, r"outside the proved bound: " + output.replace("[", r"\[")):
                    attest.replay(fn, PROBLEM, **words)
                attest.replay(shown, PROBLEM, **words)

    def test_mistakes_in_the_gradient_are_named(self):
        for wrong in BACKWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                message = self.refused(shown, "outside the proved bound: dSinks[", backward=wrong, **OPTIONS,
                                       only="reference_backward")
                line = self.shown_again(message, shown=shown, **{wrong.__name__: wrong})
                eval(line.replace(wrong.__name__, "backward"), {"attest": attest, "shown": shown, "backward": backward})

    def test_the_keyword_of_each_convention(self):
        for name in "s_aux", "learnable_sink":
            given = []

            def fn(q, k, v, softmax_scale=1.0, causal=False, given=given, **words):
                given.append(words[name])
                return shown(q, k, v, scale=softmax_scale, causal=causal, sinks=words[name])

            named = [*inspect.signature(fn).parameters.values()][:-1]
            fn.__signature__ = inspect.Signature([*named, inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)])
            with self.subTest(name):
                kernel = self.certified(fn, ("forward",), like=NUMPY, **OPTIONS, only="reference_forward")
                self.assertIn("sinks", kernel["description"]["features"])
                self.assertEqual({None if one is None else (one.dtype.name, one.shape[0] > 0) for one in given},
                                 {None, ("float32", True)})

    def test_a_function_that_names_no_sinks_gets_none(self):
        seen = set()

        def fn(q, k, v, scale=1.0, **words):
            seen.update(words)
            return attention(q, k, v, scale=scale)

        self.certified(fn, ("forward",), problems=[], claims=["gqa"], **FORWARD)
        self.assertIn("softcap", seen)
        self.assertNotIn("sinks", seen)

    def test_a_convention_is_found_without_its_extras(self):
        for like in "flash_attn_func", "flash_attn_varlen_func", "plain":
            row = attest.CONVENTIONS[like]
            self.assertLess(row.extras, row.keywords.keys())

            def fn():
                pass

            fn.__signature__ = inspect.Signature([inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY)
                                                  for word in row.keywords.keys() - row.extras])
            self.assertIs(attest._conventions.convention(None, fn), row)

    def test_a_gradient_that_is_missing(self):
        def three(*arrays, **words):
            return backward(*arrays, **words)[:3]

        self.refused(attention, "returned 3 arrays; it must be four arrays (dq, dk, dv, dsinks) where it is given "
                     "sinks", backward=three, **OPTIONS, only="reference_backward")

        def of_rows(*arrays, **words):
            dq, dk, dv, *dsinks = backward(*arrays, **words)
            return dq, dk, dv, dsinks[0][:, None] if dsinks else None

        self.refused(attention, "returned dsinks of shape (1, 1); it must be (1,)", backward=of_rows, **OPTIONS,
                     only="reference_backward")


def torch_attention(q, k, v, causal=False, scale=1.0, sinks=None, detached=False):
    import torch
    k, v = (x.repeat_interleave(q.shape[2] // k.shape[2], 2) for x in (k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * scale
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[3] - scores.shape[2])
        scores = scores.masked_fill(~seen, float("-inf"))
    if sinks is not None:
        sinks = sinks.detach() if detached else sinks
        scores = torch.cat([scores, sinks[:, None, None].expand(*scores.shape[:3], 1)], -1)
    weights = torch.softmax(scores, -1)[..., :k.shape[1]]
    return torch.einsum("bhij,bjhd->bihd", weights, v)


def torch_attention_by(backward):
    """Returns numpy's attention for torch, with this backward pass."""
    import torch

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(context, q, k, v, causal, scale, sinks):
            given = {"causal": causal, "scale": scale,
                     "sinks": None if sinks is None else sinks.detach().numpy()}
            out = torch.from_numpy(attention(*(x.detach().numpy() for x in (q, k, v)), **given))
            context.save_for_backward(q, k, v, out)
            context.words = given
            return out

        @staticmethod
        def backward(context, dout):
            q, k, v, out = (x.detach().numpy() for x in context.saved_tensors)
            gradients = backward(q, k, v, out, None, dout.numpy(), **context.words)
            dq, dk, dv, *dsinks = (torch.from_numpy(np.ascontiguousarray(one)) for one in gradients)
            return dq, dk, dv, None, None, dsinks[0] if dsinks else None

    def custom(q, k, v, causal=False, scale=1.0, sinks=None):
        return Attention.apply(q, k, v, causal, scale, sinks)

    return custom


@needs("torch")
class OfTorch(Gradients):
    def test_right_ones(self):
        kernel = self.certified(torch_attention, like=OF_TORCH, **OPTIONS)
        self.assertIn("dSinks", kernel["worst"])
        self.certified(torch_attention, like=OF_TORCH, dtypes=["f64"], problems=[PROBLEM + ",dtype=f64"])
        self.certified(torch_attention_by(backward), like=OF_TORCH, gradients=True, **OPTIONS)

    def test_mistakes_are_named(self):
        for wrong in BACKWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                self.refused(torch_attention_by(wrong), "outside the proved bound: dSinks[", like=OF_TORCH, **OPTIONS)

    def test_a_detached_sink(self):
        @functools.wraps(torch_attention)
        def detached(*arrays, **words):
            return torch_attention(*arrays, **words, detached=True)

        self.refused(detached, "torch_attention has no gradient of its sinks", like=OF_TORCH, **OPTIONS)
        self.certified(detached, ("forward",), like=OF_TORCH, gradients=False, **OPTIONS)


def jax_attention(q, k, v, causal=False, scale=1.0, sinks=None):
    import jax
    import jax.numpy as jnp
    k, v = (jnp.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
    scores = jnp.einsum("bihd,bjhd->bhij", q, k, precision="highest") * scale
    seen = jnp.tri(*scores.shape[-2:], scores.shape[3] - scores.shape[2], dtype=bool) | (not causal)
    scores = jnp.where(seen, scores, -jnp.inf)
    if sinks is not None:
        scores = jnp.concatenate([scores, jnp.broadcast_to(sinks[:, None, None], (*scores.shape[:3], 1))], -1)
    weights = jax.nn.softmax(scores, -1)[..., :k.shape[1]]
    return jnp.einsum("bhij,bjhd->bihd", weights, v, precision="highest")


@needs("jax")
class OfJax(Gradients):
    WORDS = {"law": "reference_backward", "dtypes": ["f32"], "like": OF_JAX, "isolate": False,
             "claims": ["causal", "gqa", "cross_lengths", "sinks"]}

    def test_vjp(self):
        attest.replay(jax_attention, PROBLEM, **self.WORDS)

    def test_a_mistake(self):
        import jax

        @functools.wraps(jax_attention)
        def halved(q, k, v, causal=False, scale=1.0, sinks=None):
            if sinks is not None:
                sinks = (sinks + jax.lax.stop_gradient(sinks)) / 2
            return jax_attention(q, k, v, causal, scale, sinks)

        with self.assertRaisesRegex(AssertionError, r"outside the proved bound: dSinks\["):
            attest.replay(halved, PROBLEM, **self.WORDS)


class Judged(unittest.TestCase):
    """Judges what functions returned, with sinks of any values."""

    SINKS = np.array([1.5, -0.25, 3.0, -np.inf], np.float32)
    WORDS = {"causal": True, "scale": 2.0**-1.5}

    def setUp(self):
        self.qkv = arrays(2, 7, 4, 8, heads_kv=2)
        self.dout = arrays(2, 7, 4, 8, seed=1)[0]
        self.features = {"causal": True, "sinks": self.SINKS}
        self.out, self.lse = shown(*self.qkv, **self.WORDS, sinks=self.SINKS)

    def gradients(self, work=backward):
        return work(*self.qkv, self.out, self.lse, self.dout, **self.WORDS, sinks=self.SINKS)

    def test_right_ones(self):
        attest.assert_close(self.out, *self.qkv, lse=self.lse, **self.features)
        exact = attest.reference(*self.qkv, dout=self.dout, **self.features)
        *grads, dsinks = self.gradients()
        self.assertEqual((len(exact), exact.dsinks.shape, exact.dsinks[3]), (5, (4,), 0))
        np.testing.assert_allclose(exact.dsinks, dsinks, rtol=1e-4)
        attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, lse=self.lse, dsinks=dsinks, **self.features)
        attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, dsinks=dsinks, **self.features)
        proved, probable = attest.bounds(*self.qkv, dout=self.dout, out=self.out, lse=self.lse, **self.features)
        self.assertTrue((proved.dsinks >= probable.dsinks).all() and (probable.dsinks[:3] > 0).all())
        self.assertIsNone(attest.reference(*self.qkv, **self.features).dsinks)
        self.assertIsNone(attest.reference(*self.qkv, dout=self.dout, causal=True).dsinks)

    def test_mistakes(self):
        for wrong, output in FORWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                out, lse = wrong(*self.qkv, **self.WORDS, sinks=self.SINKS)
                with self.assertRaisesRegex(AssertionError, r"outside the proved bound: (?s:.*)sinks=given"):
                    attest.assert_close(out, *self.qkv, lse=lse, **self.features)
        for wrong in BACKWARD_MISTAKES:
            with self.subTest(wrong.__name__):
                *grads, dsinks = self.gradients(wrong)
                with self.assertRaisesRegex(AssertionError, r"outside the proved bound: dSinks\["):
                    attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, lse=self.lse, dsinks=dsinks,
                                              **self.features)

    @mock.patch("attest._parts._MOST_PAIRS", 0)  # as of a mask of more pairs than the library takes
    def test_masks_of_heads(self):
        mask = np.random.default_rng(0).random((1, 4, 7, 7)) < 0.5
        mask[..., 0] = True
        mask = mask[:, [0, 0, 2, 2]]
        exact = attest.reference(*self.qkv, dout=self.dout, mask=mask, sinks=self.SINKS)
        for heads in slice(0, 2), slice(2, 4):
            q, k, v, dout = (array[:, :, one] for array, one in zip(
                (*self.qkv, self.dout), (heads, *[slice(heads.start // 2, heads.stop // 2)] * 2, heads)))
            one = attest.reference(q, k, v, dout=dout, mask=mask[0, heads.start], sinks=self.SINKS[heads])
            np.testing.assert_array_equal(exact.dsinks[heads], one.dsinks)
        out, lse, *grads = (array.astype(np.float32) for array in exact)
        given = {"out": out, "lse": lse, "mask": mask, "sinks": self.SINKS}
        attest.assert_grads_close(grads, *self.qkv, self.dout, dsinks=exact.dsinks.astype(np.float32), **given)
        with self.assertRaisesRegex(AssertionError, r"dSinks\[(?s:.*)heads 0 to 1"):
            attest.assert_grads_close(grads, *self.qkv, self.dout, dsinks=-exact.dsinks, **given)
        with self.assertRaisesRegex(ValueError, "mask differs between batch entries"):
            attest.reference(*self.qkv, dout=self.dout, mask=np.concatenate([mask, ~mask]), sinks=self.SINKS)

    def test_bad_use(self):
        def refused(kind, words, **features):
            with self.assertRaisesRegex(kind, words):
                attest.assert_close(self.out, *self.qkv, causal=True, **features)

        refused(ValueError, r"sinks has shape \(3,\); it must be \(4,\)", sinks=self.SINKS[:3])
        refused(ValueError, "that of head 1 is 0.1, which float32 does not hold", sinks=np.array([1, 0.1, 2, 3]))
        refused(ValueError, "sinks: that of head 2 is nan", sinks=np.array([1, 2, np.nan, 3], np.float32))
        refused(TypeError, "did you mean 'sinks'", s_aux=self.SINKS)
        *grads, dsinks = self.gradients()
        for given, features, words in ((None, self.features, "dsinks is None; give the gradient of sinks"),
                                       (dsinks, {"causal": True}, "dsinks is given without sinks")):
            with self.assertRaisesRegex(TypeError, words):
                attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, dsinks=given, **features)
        with self.assertRaisesRegex(ValueError, "dSinks: num_heads_q is 3, the problem says 4"):
            attest.assert_grads_close(grads, *self.qkv, self.dout, out=self.out, dsinks=dsinks[:3], **self.features)

    def test_sinks_without_effect(self):
        out, lse = shown(*self.qkv, **self.WORDS)
        with self.assertRaisesRegex(attest.NothingProved, "too small to tell from none"):
            attest.assert_close(out, *self.qkv, lse=lse, causal=True, sinks=np.full(4, -80, np.float32))
        attest.assert_close(out, *self.qkv, lse=lse, causal=True, sinks=np.full(4, -np.inf, np.float32))

    def test_narrow_sinks(self):
        attest.assert_close(self.out, *self.qkv, lse=self.lse, causal=True, sinks=self.SINKS.astype(np.float16))
        attest.assert_close(self.out, *self.qkv, lse=self.lse, causal=True, sinks=self.SINKS.tolist())


if __name__ == "__main__":
    unittest.main()
