"""Certifies functions with masks of heads, query lengths and offset windows, and judges their results; refuses the
same with one mistake."""

import functools
import unittest

import numpy as np
from other_arrays_test import needs
from plain.attention import arrays
from plain.gradients import BACKWARD, Gradients
from plain.masks import OF_LENGTHS, OF_MASKS, OF_WINDOWS, backward, rows_past_a_length_in_dv, rows_past_a_length_left, shown

import attest

SIZES = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8"
PROBLEMS = {"head_mask": SIZES + ",mask=causal_br,head_mask=bhqk_60_7",
            "query_lengths": SIZES + ",mask=causal_br,query_lengths=3_5",
            "offset_window": SIZES + ",mask=window_3_-1"}
MISTAKES = {"head_mask": OF_MASKS, "query_lengths": OF_LENGTHS, "offset_window": OF_WINDOWS}
WORDS = {"empty_row": "zero_neg_inf", "dtypes": ["f32"]}


class OfNumpy(Gradients):
    def test_right_ones(self):
        kernel = self.certified(shown, backward=backward, problems=[*PROBLEMS.values()], **WORDS, **BACKWARD)
        self.assertLess({*PROBLEMS, "window"}, {*kernel["description"]["features"]})

    def test_mistakes_are_named(self):
        words = {"law": "reference_forward", "isolate": False, **WORDS}
        for name, problem in PROBLEMS.items():
            attest.replay(shown, problem, **words)
            for wrong in MISTAKES[name]:
                with self.subTest(wrong.__name__):
                    fn = functools.wraps(shown)(wrong)
                    with self.assertRaisesRegex(AssertionError, "outside the proved bound: (O|LSE)"):
                        attest.replay(fn, problem, **words)

    def test_a_mistake_in_the_gradient_is_named(self):
        self.refused(shown, "outside the proved bound: dV[", backward=rows_past_a_length_in_dv,
                     problems=[PROBLEMS["query_lengths"]], **WORDS, only="reference_backward")

    def test_rows_past_a_length_that_are_left(self):
        words = {"isolate": False, **WORDS}
        problem = PROBLEMS["query_lengths"]
        left = functools.wraps(shown)(rows_past_a_length_left)
        with self.assertRaisesRegex(AssertionError, "outside the proved bound: (O|LSE)"):
            attest.replay(left, problem, **words)
        for law in ("reference_forward", "reference_backward"):
            attest.replay(left, problem, law=law, backward=backward, past_length="not_written", **words)
        with self.assertRaisesRegex(ValueError, "past_length=left must be one of empty_row not_written"):
            attest.replay(left, problem, past_length="left", **words)

    def test_its_arrays(self):
        given = set()

        def fn(q, k, v, *, scale=1.0, head_mask=None, query_lengths=None, offset_window=None):
            if head_mask is not None:
                given.add((head_mask.dtype.name, head_mask.shape))
            if query_lengths is not None:
                given.add((query_lengths.dtype.name, query_lengths.shape))
            given.add(offset_window)
            return shown(q, k, v, scale=scale, head_mask=head_mask, query_lengths=query_lengths,
                         offset_window=offset_window)

        for end in ("head_mask=bk_60_7", "query_lengths=2_0", "mask=window_inf_-1", "mask=window_-2_9", "mask=none"):
            attest.replay(fn, "b=2,hq=3,sq=5,sk=9,d=8," + end, law="reference_forward", isolate=False, **WORDS)
        self.assertLess({("bool", (2, 1, 1, 9)), ("int32", (2,)), (None, -1), (-2, 9), None}, given)

    def test_a_window_keeps_its_own_keyword(self):
        """A function of both keywords is given the window by one of them."""
        given = []

        def fn(q, k, v, *, causal=False, scale=1.0, window=(-1, -1), offset_window=None):
            given.append((window, offset_window))
            ends = tuple(None if width < 0 else width for width in window)
            return shown(q, k, v, causal=causal, scale=scale, offset_window=offset_window or ends)

        for mask in ("window_3_1", "window_3_-1"):
            attest.replay(fn, f"{SIZES},mask={mask}", law="reference_forward", isolate=False, **WORDS)
        self.assertEqual({window for window, _ in given}, {(-1, -1)})
        self.assertLess({(3, 1), (3, -1)}, {ends for _, ends in given})


@needs("torch")
class OfTorch(Gradients):
    def test_masks_of_sdpa(self):
        import torch
        kernel = self.certified(torch.nn.functional.scaled_dot_product_attention, like="sdpa", dtypes=["f32"],
                                problems=["b=2,hq=2,sq=5,sk=20,d=8,head_mask=bhqk_80_1"])
        self.assertLess({"head_mask", "boolean_mask"}, {*kernel["description"]["features"]})

    def test_a_mask_of_head_0(self):
        import torch
        attention = torch.nn.functional.scaled_dot_product_attention

        @functools.wraps(attention)
        def fn(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
            if attn_mask is not None and attn_mask.ndim == 4:
                attn_mask = attn_mask[:, :1]
            return attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)

        self.refused(fn, "equals the result with the mask of the first head for every head", like=SDPA,
                     dtypes=["f32"], problems=["b=2,hq=2,sq=5,sk=20,d=8,head_mask=bhqk_80_1"])


SDPA = attest.CONVENTIONS["sdpa"]


class Judged(unittest.TestCase):
    """Judges what functions returned, with masks and lengths of any values."""

    def setUp(self):
        self.qkv = arrays(2, 7, 4, 8, heads_kv=2)
        self.dout = arrays(2, 7, 4, 8, seed=1)[0]
        self.mask = np.random.default_rng(5).random((2, 4, 7, 7)) < 0.7
        self.cases = {"head_mask": ({"causal": True, "head_mask": self.mask}, {"causal": True, "mask": self.mask}),
                      "query_lengths": ({"causal": True, "query_lengths": np.array([3, 6])},
                                        {"causal": "bottom_right", "query_lengths": [3, 6]}),
                      "offset_window": ({"offset_window": (4, -1)}, {"offset_window": (4, -1)})}

    def judged(self, out, lse, features):
        attest.assert_close(out, *self.qkv, lse=lse, empty_row="zero_neg_inf", **features)

    def test_right_ones(self):
        for name, (words, features) in self.cases.items():
            with self.subTest(name):
                out, lse = shown(*self.qkv, scale=2.0**-1.5, **words)
                self.judged(out, lse, features)
                grads = backward(*self.qkv, out, lse, self.dout, scale=2.0**-1.5, **words)
                attest.assert_grads_close(grads, *self.qkv, self.dout, out=out, lse=lse, empty_row="zero_neg_inf",
                                          **features)
                exact = attest.reference(*self.qkv, dout=self.dout, empty_row="zero_neg_inf", **features)
                np.testing.assert_allclose(exact.out, out, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(exact.dv, grads[2], rtol=1e-4, atol=1e-5)

    def test_rows_past_a_length_that_are_left(self):
        words, features = self.cases["query_lengths"]
        out, lse = rows_past_a_length_left(*self.qkv, scale=2.0**-1.5, **words)
        with self.assertRaisesRegex(AssertionError, "outside the proved bound: (O|LSE)"):
            self.judged(out, lse, features)
        self.judged(out, lse, {**features, "past_length": "not_written"})
        dq, dk, dv = backward(*self.qkv, *shown(*self.qkv, scale=2.0**-1.5, **words), self.dout, scale=2.0**-1.5,
                              **words)
        dq[0, 3:] = 7
        attest.assert_grads_close((dq, dk, dv), *self.qkv, self.dout, out=out, lse=lse, empty_row="zero_neg_inf",
                                  past_length="not_written", **features)

    def test_mistakes(self):
        for name, (words, features) in self.cases.items():
            for wrong in MISTAKES[name]:
                with self.subTest(wrong.__name__):
                    with self.assertRaisesRegex(AssertionError, "outside the proved bound: (O|LSE)"):
                        self.judged(*wrong(*self.qkv, scale=2.0**-1.5, **words), features)

    def test_masks_with_heads_beside_all_else(self):
        """Masks differ within a group of heads, beside gradients, ALiBi, sinks and a bias."""
        features = {"mask": self.mask, "alibi": True, "sinks": [1.0, 2.0, -1.0, 0.5], "causal": "bottom_right",
                    "bias": np.zeros((1, 4, 7, 7), np.float32), "query_lengths": [7, 5], "empty_row": "zero_neg_inf"}
        exact = attest.reference(*self.qkv, dout=self.dout, **features)
        q, k, v = (x[1:, :5] if n == 0 else x[1:] for n, x in enumerate(self.qkv))
        alone = {**features, "mask": self.mask[1:, :, :5], "bias": features["bias"][:, :, :5], "query_lengths": [5]}
        one = attest.reference(q, k, v, dout=self.dout[1:, :5], **alone)
        np.testing.assert_array_equal(exact.out[1, :5], one.out[0])
        np.testing.assert_array_equal(exact.dv[1], one.dv[0])
        self.assertEqual(exact.out[1, 5:].any(), False)

    def test_bad_use(self):
        q, k, v = self.qkv
        out, _ = shown(q, k, v, scale=2.0**-1.5)

        def refused(kind, words, **features):
            with self.assertRaisesRegex(kind, words):
                attest.assert_close(out, q, k, v, **features)

        refused(ValueError, "batch entry 1 is 8; it must be from 0 to 7", query_lengths=[3, 8])
        refused(ValueError, "one for each of 2 batch entries", query_lengths=[3])
        refused(TypeError, "did you mean 'query_lengths'", seqused_q=[3, 3])
        refused(ValueError, "offset_window is given beside window or causal", offset_window=(3, -1), causal=True)
        refused(TypeError, r"offset_window is 3; give \(left, right\), integers or None", offset_window=3)
        refused(ValueError, r"mask has shape \(3, 7, 7\); it must be", mask=np.ones((3, 7, 7), bool))


if __name__ == "__main__":
    unittest.main()
