"""Judges right results in every spelling of a problem, and the same with one wrong element, which fail."""

import gc
import unittest
import weakref
from unittest import mock

import numpy as np
from plain.attention import arrays, attention, causal

import attest
from attest._call import Call

OF_HEADS = np.random.default_rng(0).random((2, 4, 5, 5)) < 0.5
OF_HEADS[..., 0] = True
STANDARD = np.array([2.0**-4, 2.0**-8], np.float32)

CASES = {  # arrays, what numpy is told, what attest is told
    "plain": (arrays(2, 5, 4, 8), {}, {}),
    "grouped heads": (arrays(2, 5, 4, 8, heads_kv=2, seqlen_k=9, head_dim_v=6), {}, {}),
    "float64": (arrays(1, 5, 2, 8, dtype=np.float64), {}, {}),
    "float16": (arrays(1, 5, 2, 8, dtype=np.float16), {}, {}),
    "causal": (arrays(1, 7, 2, 8), {"visible": causal(7, 7)}, {"causal": True}),
    "top left": (arrays(1, 5, 2, 8, seqlen_k=9), {"visible": causal(5, 9)}, {"causal": "top_left"}),
    "bottom right": (arrays(1, 5, 2, 8, seqlen_k=9), {"visible": causal(5, 9, 4)},
                     {"causal": "bottom_right"}),
    "window": (arrays(1, 9, 2, 8), {"visible": causal(9, 9, 1) & ~causal(9, 9, -4)},
               {"window": (3, 1)}),
    "causal window": (arrays(1, 5, 2, 8, seqlen_k=9),
                      {"visible": causal(5, 9, 4) & ~causal(5, 9, 1)},
                      {"window": (2, -1), "causal": "bottom_right"}),
    "left window": (arrays(1, 5, 2, 8, seqlen_k=9), {"visible": ~causal(5, 9, 1)},
                    {"window": (2, None), "align": "bottom_right"}),
    "mask": (arrays(2, 5, 2, 8), {"visible": causal(5, 5)}, {"mask": causal(5, 5)}),
    "broadcast mask": (arrays(2, 5, 2, 8), {"visible": causal(5, 5)},
                       {"mask": causal(5, 5)[None, None]}),
    "masks of heads": (arrays(2, 5, 4, 8), {"visible": OF_HEADS}, {"mask": OF_HEADS}),
    "masks of grouped heads": (arrays(2, 5, 4, 8, heads_kv=2), {"visible": OF_HEADS[:1, [0, 0, 1, 1]]},
                               {"mask": OF_HEADS[:1, [0, 0, 1, 1]]}),
    "masks within a group": (arrays(2, 5, 4, 8, heads_kv=2), {"visible": OF_HEADS[:1]}, {"mask": OF_HEADS[:1]}),
    "padding mask": (arrays(2, 5, 4, 8, heads_kv=2), {"visible": OF_HEADS[:, :1, 1:2]},
                     {"mask": OF_HEADS[:, :1, 1:2]}),
    "padding mask and lengths": (arrays(2, 5, 2, 8),
                                 {"visible": OF_HEADS[:, :1] & (np.arange(5) < np.array([3, 5])[:, None, None, None])},
                                 {"mask": OF_HEADS[:, :1], "key_lengths": [3, 5]}),
    "spelled mask": (arrays(1, 4, 1, 8),
                     {"visible": np.kron(np.eye(2, dtype=bool), np.ones((2, 2), bool))},
                     {"mask": "documents_2_2"}),
    "key lengths": (arrays(2, 5, 2, 8), {"visible": np.arange(5) < np.array([3, 5])[:, None, None, None]},
                    {"key_lengths": [3, 5]}),
    "scale": (arrays(1, 5, 2, 8), {"scale": -0.25}, {"scale": -0.25}),
    "softcap": (arrays(1, 5, 2, 8), {"softcap": 1.5}, {"softcap": 1.5}),
    **{f"alibi {name}": (arrays(1, 5, 2, 8, seqlen_k=9),
                         {"bias": -STANDARD[:, None, None] * abs(np.arange(5)[:, None] + 4 - np.arange(9))},
                         {"alibi": alibi, "align": "bottom_right"})
       for name, alibi in (("", True), ("as slopes", STANDARD), ("as slopes of entries", STANDARD[None]))},
}


def spoilt(array):
    copy = array.copy()
    copy[(-1,) * copy.ndim] += 1
    return copy


class AssertClose(unittest.TestCase):
    def check(self, out, lse, q, k, v, **features):
        attest.assert_close(out, q, k, v, lse=lse, **features)
        with self.assertRaisesRegex(AssertionError, r"^outside the proved bound: O\["):
            attest.assert_close(spoilt(out), q, k, v, lse=lse, **features)
        with self.assertRaisesRegex(AssertionError, r"^outside the proved bound: LSE\["):
            attest.assert_close(out, q, k, v, lse=spoilt(lse), **features)

    def test_every_feature(self):
        for name, ((q, k, v), told, features) in CASES.items():
            with self.subTest(name):
                out, lse = attention(q, k, v, **told)
                self.check(out, lse, q, k, v, **features)
                exact = attest.reference(q, k, v, **features)
                self.assertEqual(exact.out.shape, out.shape)
                np.testing.assert_array_equal(exact.lse.astype(np.float32), lse.astype(np.float32))

    def test_heads_before_sequence(self):
        q, k, v = arrays(2, 5, 4, 8, heads_kv=2, seqlen_k=9, head_dim_v=6)
        out, lse = attention(q, k, v)
        turned = [array.swapaxes(1, 2) for array in (out, q, k, v)]  # no copy: strides alone
        self.check(turned[0], lse, *turned[1:], layout="bhsd")
        self.check(*(np.ascontiguousarray(array) for array in (turned[0], lse, *turned[1:])),
                   layout="bhsd")
        self.assertEqual(attest.reference(*turned[1:], layout="bhsd").out.shape, turned[0].shape)

    def test_any_strides(self):
        q, k, v = arrays(2, 10, 2, 16)
        q, k, v = q[:, ::2], k.astype(k.dtype.newbyteorder()), v[:, ::-1]
        out, lse = attention(q, k, v)
        self.check(out, lse, q, k, v)

    def test_packed_sequences(self):
        lengths = [3, 0, 5]
        ends = np.cumsum([0, *lengths])
        q, k, v = (array[0] for array in arrays(1, 8, 2, 8))
        parts = [attention(*(array[None, begin:end] for array in (q, k, v)), visible=causal(n, n))
                 for begin, end, n in zip(ends, ends[1:], lengths) if n]
        out = np.concatenate([part[0][0] for part in parts])
        lse = np.concatenate([part[1][0] for part in parts], axis=1)
        self.check(out, lse, q, k, v, cu_seqlens_q=ends, causal=True)
        self.check(out, lse, q, k, v, cu_seqlens_q=ends, cu_seqlens_k=list(ends), causal="top_left")

    def test_conventions(self):
        q, k, v = arrays(1, 3, 1, 8, seqlen_k=2)
        out, lse = attention(q[:, 1:], k, v, visible=causal(2, 2))
        empty = np.full((1, 1, 1, 8), np.nan, np.float32)
        out, lse = np.concatenate([empty, out], 1), np.concatenate([empty[..., 0], lse], 2)
        self.check(out, lse / np.float32(np.log(2)), q, k, v, causal="bottom_right", empty_row="nan",
                   lse_base="two")

    def test_numerics(self):
        q, k, v = arrays(1, 64, 2, 16, dtype=np.float16)
        scores = np.einsum("bihd,bjhd->bhij", q, k, dtype=np.float32) / 4
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        products = np.einsum("bhij,bjhd->bihd", weights.astype(np.float16), v, dtype=np.float32)
        out = (products / weights.sum(-1).swapaxes(1, 2)[..., None]).astype(np.float16)
        for numerics in ("p_cast_to_input", "tensor_core", {"p_cast": "f16"},
                         {"preset": "p_cast_to_input", "exp_ulps": 4, "flushes_p": True}):
            attest.assert_close(out, q, k, v, numerics=numerics)
        with self.assertRaisesRegex(AssertionError, "would pass with numerics p_cast_to_input"):
            attest.assert_close(out, q, k, v, numerics="f32")

    def test_flushed_subnormals(self):
        q, k, v = arrays(1, 8, 2, 16, seqlen_k=2)
        tiny = v[..., :8]

        def flushed(array, below=2.0**-126):
            return np.where(abs(array) < below, 0, array).astype(np.float32)

        tiny *= np.float32(2.0**-126)
        self.assertTrue((flushed(tiny) != tiny).any() and flushed(tiny).any())
        out = flushed(attention(q, k, flushed(v))[0])
        attest.assert_close(out, q, k, v, numerics={"flushes_subnormals": True})
        with self.assertRaisesRegex(AssertionError, "^outside the proved bound"):
            attest.assert_close(out, q, k, v)
        tiny *= np.float32(64)
        out = attention(q, k, flushed(v, below=2.0**-120))[0]
        with self.assertRaisesRegex(AssertionError, "^outside the proved bound"):
            attest.assert_close(out, q, k, v, numerics={"flushes_subnormals": True})

    def test_the_message_says_what_is_wrong(self):
        q, k, v = arrays(1, 5, 2, 8, seqlen_k=9)
        out, _ = attention(q, k, v, visible=causal(5, 9))
        with self.assertRaises(AssertionError) as raised:
            attest.assert_close(out, q, k, v, causal="bottom_right")
        for words in ("O[batch=0, seqlen_q=", ", exact ", ", error ", ", bound ",
                      "largest term of the bound of O: ",
                      "equals the result with top-left causal alignment", "mask=causal_br"):
            self.assertIn(words, str(raised.exception))

    def test_the_call_keeps_the_memory_it_points_to(self):
        q, k, v = arrays(1, 5, 2, 8)
        out, lse = attention(q, k, v, visible=causal(5, 5))
        call = Call(q, k, v, "f32", {"mask": causal(5, 5).tolist()})
        struct, kept = call.asking(out=out, lse=lse), weakref.ref(call)
        mask = weakref.ref(call._mask)
        del call
        gc.collect()
        self.assertIsNotNone(kept())
        self.assertEqual(struct.boolean_mask, mask().ctypes.data)

    def test_nothing_proved(self):
        q, k, v = arrays(1, 5, 1, 8)
        tiny = (q * np.float32(2.0**-30), k, v)
        with self.assertRaisesRegex(attest.NothingProved, "cannot tell it from a wrong result"):
            attest.assert_close(attention(*tiny)[0], *tiny)
        q, k, v = (np.concatenate([array, array]) for array in (q, k, v))
        hidden = np.zeros((2, 1, 5, 5), bool)
        with self.assertRaises(attest.NothingProved):
            attest.assert_close(np.zeros_like(q), q, k, v, mask=hidden)
        hidden[1] = causal(5, 5)  # the other entry proves something
        out = np.concatenate([np.zeros_like(q[:1]), attention(q[1:], k[1:], v[1:], visible=causal(5, 5))[0]])
        attest.assert_close(out, q, k, v, mask=hidden)


class AssertGradsClose(unittest.TestCase):
    @mock.patch("attest._parts._MOST_PAIRS", 0)  # as of a mask of more pairs than the library takes
    def test_masks_of_heads(self):
        (q, k, v), mask = arrays(2, 5, 4, 8, heads_kv=2), OF_HEADS[:, [0, 0, 1, 1]]
        dout = arrays(2, 5, 4, 8, seed=1)[0]
        out, lse, *grads = (array.astype(np.float32) for array in attest.reference(q, k, v, dout=dout, mask=mask))
        whole = attest.reference(q, k, v, dout=dout, mask=mask[0, 0])
        self.assertEqual([array.shape for array in grads], [array.shape for array in whole[2:]])
        attest.assert_grads_close(grads, q, k, v, dout, out=out, lse=lse, mask=mask)
        proved, _ = attest.bounds(q, k, v, dout=dout, out=out, lse=lse, mask=mask)
        self.assertEqual(proved.dk.shape, k.shape)
        grads[1] = spoilt(grads[1])
        with self.assertRaisesRegex(AssertionError, r"bound: dK\[(?s:.*)\nindices count from batch entry 1, heads 2 to 3"):
            attest.assert_grads_close(grads, q, k, v, dout, out=out, lse=lse, mask=mask)
        with self.assertRaisesRegex(ValueError, "mask differs between heads that share keys"):
            attest.reference(q, k, v, dout=dout, mask=OF_HEADS)

    @mock.patch("attest._parts._MOST_PAIRS", 0)  # as of a mask of more pairs than the library takes
    def test_masks_of_heads_with_alibi(self):
        q, k, v = arrays(2, 5, 4, 8)
        with self.assertRaisesRegex(ValueError, "mask differs between heads, and the slopes of ALiBi"):
            attest.reference(q, k, v, mask=OF_HEADS, alibi=True)
        of_entries = OF_HEADS[:, :1]
        one = attest.reference(q[1:], k[1:], v[1:], mask=of_entries[1, 0], alibi=True)
        np.testing.assert_array_equal(attest.reference(q, k, v, mask=of_entries, alibi=True).out[1:], one.out)

    def test_right_and_wrong_gradients(self):
        q, k, v = arrays(1, 5, 2, 8, seqlen_k=9, head_dim_v=6, heads_kv=1)
        dout = arrays(1, 5, 2, 6, seed=1)[0]
        dlse = arrays(1, 2, 5, 1, seed=2)[0][..., 0]
        features = {"causal": "bottom_right", "softcap": 2.0}
        for extra in ({}, {"dlse": dlse}):
            exact = attest.reference(q, k, v, dout=dout, **extra, **features)
            out, lse, *grads = (array.astype(np.float32) for array in exact)
            attest.assert_grads_close(grads, q, k, v, dout, out=out, lse=lse, **extra, **features)
            for index, name in enumerate(("dQ", "dK", "dV")):
                wrong = list(grads)
                wrong[index] = spoilt(wrong[index])
                with self.assertRaisesRegex(AssertionError, rf"outside the proved bound: {name}\["):
                    attest.assert_grads_close(wrong, q, k, v, dout, out=out, lse=lse, **extra,
                                              **features)
            with self.assertRaisesRegex(AssertionError, r"outside the proved bound: O\["):
                attest.assert_grads_close(grads, q, k, v, dout, out=spoilt(out), lse=lse, **extra,
                                          **features)
            attest.assert_grads_close(grads, q, k, v, dout, out=out, **extra, **features)
            with self.assertRaisesRegex(AssertionError, r"outside the proved bound: dV\["):
                attest.assert_grads_close(wrong, q, k, v, dout, out=out, **extra, **features)

    def test_a_gradient_of_lse_counts(self):
        q, k, v = arrays(1, 5, 2, 8)
        out, lse, *grads = (array.astype(np.float32) for array in attest.reference(q, k, v, dout=q))
        with self.assertRaisesRegex(AssertionError, r"dQ\["):
            attest.assert_grads_close(grads, q, k, v, q, out=out, lse=lse, dlse=lse)

    def test_gradients_are_those_of_the_reference(self):
        q, k, v = arrays(1, 3, 1, 4, dtype=np.float64)
        dout = arrays(1, 3, 1, 4, dtype=np.float64, seed=1)[0]
        step = 2.0**-17
        exact = attest.reference(q, k, v, dout=dout).dq
        moved = q.copy()
        moved[0, 1, 0, 2] += step
        rise = ((attention(moved, k, v)[0] - attention(q, k, v)[0]) * dout).sum() / step
        np.testing.assert_allclose(exact[0, 1, 0, 2], rise, rtol=8 * step)


class Bounds(unittest.TestCase):
    def test_bounds_are_those_that_judge(self):
        q, k, v = arrays(1, 5, 2, 8)
        exact = attest.reference(q, k, v)
        proved, probable = attest.bounds(q, k, v)
        self.assertTrue((proved.out >= probable.out).all() and (probable.lse > 0).all())
        attest.assert_close((exact.out + probable.out / 4).astype(np.float32), q, k, v,
                            numerics={"exp_ulps": 64})
        with self.assertRaises(AssertionError):
            attest.assert_close((exact.out + 2 * proved.out).astype(np.float32), q, k, v)
        wider = attest.bounds(q, k, v, numerics="tf32")
        self.assertTrue((wider.probable.out > probable.out).all())

    def test_bounds_of_gradients(self):
        q, k, v = arrays(1, 5, 2, 8)
        exact = attest.reference(q, k, v, dout=q)
        out, lse = exact.out.astype(np.float32), exact.lse.astype(np.float32)
        bounds = attest.bounds(q, k, v, dout=q, out=out, lse=lse)
        self.assertEqual(bounds.proved.dk.shape, k.shape)
        self.assertTrue((bounds.probable.dk > 0).all())
        unseen = attest.bounds(q, k, v, dout=q, out=out)
        for output in ("dq", "dk", "dv"):
            self.assertTrue((getattr(unseen.probable, output) >= getattr(bounds.probable, output)).all())
        self.assertTrue((unseen.probable.dv > bounds.probable.dv).all())
        with self.assertRaisesRegex(ValueError, "O is not given"):
            attest.bounds(q, k, v, dout=q, lse=lse)


if __name__ == "__main__":
    unittest.main()
