"""Certifies gradients by torch's autograd and by jax.vjp, where they are installed."""

import dataclasses
import functools
import os
import unittest

import numpy as np
from other_arrays_test import needs
from plain.gradients import GROUPED, MISTAKES, SMALL, Gradients, attention, backward

import attest

PLAIN = attest.CONVENTIONS["plain"]
OF_TORCH = dataclasses.replace(PLAIN, arrays="torch")
OF_JAX = dataclasses.replace(PLAIN, arrays="jax")


def torch_attention(q, k, v, causal=False, scale=1.0):
    import torch
    k, v = (x.repeat_interleave(q.shape[2] // k.shape[2], 2) for x in (k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * scale
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[3] - scores.shape[2])
        scores = scores.masked_fill(~seen, float("-inf"))
    return torch.einsum("bhij,bjhd->bihd", torch.softmax(scores, -1), v)


def torch_attention_by(backward):
    """Returns numpy's attention for torch, with this backward pass."""
    import torch

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(context, q, k, v, causal, scale):
            arrays = (x.detach().numpy() for x in (q, k, v))
            out = torch.from_numpy(attention(*arrays, causal=causal, scale=scale))
            context.save_for_backward(q, k, v, out)
            context.words = {"causal": causal, "scale": scale}
            return out

        @staticmethod
        def backward(context, dout):
            q, k, v, out = (x.detach().numpy() for x in context.saved_tensors)
            gradients = backward(q, k, v, out, None, dout.numpy(), **context.words)
            return (*(torch.from_numpy(np.ascontiguousarray(one)) for one in gradients), None, None)

    def custom(q, k, v, causal=False, scale=1.0):
        return Attention.apply(q, k, v, causal, scale)

    return custom


@needs("torch")
class OfTorch(Gradients):
    def test_right_ones(self):
        self.certified(torch_attention, like=OF_TORCH)
        self.certified(torch_attention_by(backward), like=OF_TORCH, gradients=True)
        self.certified(torch_attention, ("forward",), like=OF_TORCH, gradients=False)

    def test_a_kernel_of_torch_s_own(self):
        from torch.nn.functional import scaled_dot_product_attention
        report = attest.certify(scaled_dot_product_attention, isolate=False, like="sdpa", dtypes=["f32"],
                                cases=10, only="reference_backward")
        self.assertEqual((report.findings, report.verdict), ([], "law_holds"), str(report))
        self.assertIn("dK", report.certificate["kernels"][0]["worst"])

    def test_mistakes_are_named(self):
        for wrong, words in MISTAKES:
            with self.subTest(wrong.__name__):
                custom = torch_attention_by(wrong)
                message = self.refused(custom, words, like=OF_TORCH)
                self.shown_again(message, custom=custom, OF_TORCH=OF_TORCH)

    def test_a_detached_result(self):
        def detached(*arrays, causal=False, scale=1.0):
            return torch_attention(*arrays, causal, scale).detach()

        def sometimes(*arrays, causal=False, scale=1.0):
            return (detached if causal else torch_attention)(*arrays, causal=causal, scale=scale)

        self.certified(detached, ("forward",), like=OF_TORCH)
        self.refused_at_once(TypeError, "detached returned out without grad_fn", detached, like=OF_TORCH,
                             gradients=True)
        self.refused(sometimes, "sometimes returned out without grad_fn", like=OF_TORCH)

    def test_a_function_that_takes_no_graph(self):
        def by_numpy(q, k, v, causal=False, scale=1.0):
            import torch
            arrays = (x.numpy() for x in (q, k, v))
            return torch.from_numpy(attention(*arrays, causal=causal, scale=scale))

        self.certified(by_numpy, ("forward",), like=OF_TORCH)
        self.refused_at_once(RuntimeError, "requires grad", by_numpy, like=OF_TORCH, gradients=True)

    def test_an_input_that_is_not_used(self):
        self.refused_at_once(TypeError, "dq is None", lambda q, k, v: v + 0 * k, like=OF_TORCH)

    def test_another_out_in_each_call(self):
        calls = []

        def drifts(*arrays, causal=False, scale=1.0):
            calls.append(1)
            return torch_attention(*arrays, causal, scale) * (1 + len(calls) * 1e-5)

        self.refused_at_once(TypeError, "two equal calls of drifts return different out", drifts,
                             like=OF_TORCH)

    def test_gradients_are_on(self):
        import torch
        with torch.no_grad():
            self.certified(torch_attention, like=OF_TORCH, gradients=True)


def jax_attention(q, k, v, causal=False, scale=1.0):
    import jax
    import jax.numpy as jnp
    k, v = (jnp.repeat(x, q.shape[2] // k.shape[2], 2) for x in (k, v))
    scores = jnp.einsum("bihd,bjhd->bhij", q, k, precision="highest") * scale
    seen = jnp.tri(*scores.shape[-2:], scores.shape[3] - scores.shape[2], dtype=bool) | (not causal)
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1)
    return jnp.einsum("bhij,bjhd->bihd", weights, v, precision="highest")


def jax_attention_by(factor_of_dq):
    """Returns the same with a dq that is so much larger."""
    import jax

    @functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
    def attention(q, k, v, causal, scale):
        return jax_attention(q, k, v, causal, scale)

    def pull_back(causal, scale, pull, dout):
        dq, dk, dv = pull(dout)
        return dq * factor_of_dq, dk, dv

    attention.defvjp(lambda q, k, v, *words: jax.vjp(lambda *arrays: jax_attention(*arrays, *words), q, k, v),
                     pull_back)

    def custom(q, k, v, causal=False, scale=1.0):
        return attention(q, k, v, causal, scale)

    return custom


@needs("jax")
class OfJax(Gradients):
    """Runs few problems: jax compiles for each."""

    FEW = {"like": OF_JAX, "cases": 2, "claims": ["causal", "gqa", "cross_lengths"]}

    def test_vjp(self):
        import jax
        compiled = jax.jit(jax_attention, static_argnames="causal")
        report = attest.certify(compiled, **{**SMALL, **self.FEW}, only="reference_backward")
        self.assertEqual((report.findings, report.verdict), ([], "law_holds"), str(report))
        self.assertIn("dK", report.certificate["kernels"][0]["worst"])

    @unittest.skipUnless("ATTEST_NIGHTLY" in os.environ, "in ci/nightly, for time")
    def test_a_mistake(self):
        words = {"law": "reference_backward", "dtypes": ["f32"], "like": OF_JAX, "isolate": False,
                 "claims": self.FEW["claims"]}
        attest.replay(jax_attention_by(1), GROUPED, **words)
        custom = jax_attention_by(2)
        with self.assertRaisesRegex(AssertionError, r"outside the proved bound: dQ\[") as raised:
            attest.replay(custom, GROUPED, **words)
        self.shown_again(str(raised.exception), custom=custom, OF_JAX=OF_JAX)

    def test_what_has_no_gradient(self):
        import jax

        def by_numpy(q, k, v, causal=False, scale=1.0):
            def called(*arrays):
                return attention(*map(np.asarray, arrays), causal=causal, scale=scale)
            return jax.pure_callback(called, q, q, k, v)

        report = attest.certify(by_numpy, **{**SMALL, **self.FEW}, only="reference_forward")
        self.assertEqual(report.certificate["kernels"][0]["description"]["directions"], ["forward"])
        self.refused_at_once(ValueError, "callback", by_numpy, **self.FEW, gradients=True)


if __name__ == "__main__":
    unittest.main()
