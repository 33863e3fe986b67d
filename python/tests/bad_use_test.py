"""Calls the package wrongly: each way gives one error that says what is wrong and what is needed."""

import unittest
from unittest import mock

import numpy as np
from plain.attention import arrays, attention

import attest

Q, K, V = arrays(1, 5, 2, 8, seqlen_k=9)
OUT, LSE = attention(Q, K, V)


def nan_in(array):
    copy = array.copy()
    copy[0, 1, 1, 2] = np.nan
    return copy


class BadUse(unittest.TestCase):
    def refused(self, kind, words, *, out=OUT, q=Q, k=K, v=V, **keywords):
        with self.assertRaises(kind) as raised:
            attest.assert_close(out, q, k, v, **keywords)
        self.assertNotIsInstance(raised.exception, AssertionError)
        self.assertIn(words, str(raised.exception))

    def test_arrays(self):
        self.refused(TypeError, "out is None; give an array", out=None)
        self.refused(TypeError, "q has dtype int64; attention is judged in float64",
                     q=Q.astype(np.int64))
        self.refused(TypeError, "k has dtype complex64", k=K.astype(np.complex64))
        self.refused(TypeError, "v is a dict, not an array", v={})
        self.refused(TypeError, "v is a str, not an array", v="array")
        self.refused(ValueError, "V: its dtype is f16, the problem's f32", v=V.astype(np.float16))
        self.refused(ValueError, "O: its dtype is f64, the problem's f32", out=OUT.astype(np.float64))
        self.refused(ValueError, "LSE: its dtype is f16; it must be f32 or f64",
                     lse=LSE.astype(np.float16))
        self.refused(ValueError, "Q[batch=0, seqlen_q=1, num_heads_q=1, head_dim_qk=2]", q=nan_in(Q))

    def test_shapes(self):
        self.refused(ValueError, "q has shape (5, 2, 8); it must be (batch, seqlen, heads, head_dim)",
                     q=Q[0])
        self.refused(ValueError, "it must be (batch, heads, seqlen, head_dim)", q=Q[0], layout="bhsd")
        self.refused(ValueError, "it must be (tokens, heads, head_dim)", cu_seqlens_q=[0, 5])
        self.refused(ValueError, "K: head_dim_qk is 7, the problem says 8", k=K[..., :7])
        self.refused(ValueError, "V: seqlen_k is 8, the problem says 9", v=V[:, :8])
        self.refused(ValueError, "O: seqlen_q is 4, the problem says 5", out=OUT[:, :4])
        self.refused(ValueError, "not a multiple of num_heads_kv=3", k=K[:, :, [0, 1, 1]],
                     v=V[:, :, [0, 1, 1]])
        self.refused(ValueError, "lse has shape (5,); it must be (batch, heads, seqlen_q)",
                     lse=LSE[0, 0])

    def test_keywords(self):
        self.refused(TypeError, "unexpected keyword 'casual'; did you mean 'causal'?", casual=True)
        self.refused(TypeError, "unexpected keyword 'softmax_scale'; did you mean 'scale'?", softmax_scale=0.5)
        self.refused(TypeError, "'atol': no tolerance is chosen here", atol=1e-3)
        for words, what in ((("dropout", "dropout_p", "p_dropout"), "dropout"),
                            (("descale", "q_descale", "k_descale", "v_descale"), "descales, which come with fp8"),
                            (("kv_dtype", "k_dtype", "v_dtype"), "k and v of another dtype than q"),
                            (("o_dtype", "out_dtype"), "out of another dtype than q"), (("fp8",), "fp8")):
            for word in words:
                self.refused(TypeError, f"unexpected keyword {word!r}: this version does not have {what}", **{word: 1})
        self.refused(ValueError, "layout is 'sbhd'; it must be 'bshd' or 'bhsd'", layout="sbhd")
        self.refused(ValueError, "5 queries and 9 keys can be aligned at either end", causal=True)
        self.refused(ValueError, "5 queries and 9 keys can be aligned at either end", window=(2, 2))
        self.refused(ValueError, "the alignment is 'lower_right'", causal="lower_right")
        self.refused(ValueError, "leave align out", causal="top_left", align="bottom_right")
        self.refused(TypeError, "window is 3; give (left, right)", window=3, align="top_left")
        self.refused(TypeError, "window is (1.5, 2)", window=(1.5, 2), align="top_left")
        self.refused(ValueError, "mask has shape (9, 5); it must be (5, 9)", mask=np.ones((9, 5), bool))
        self.refused(ValueError, "same for every head", mask=np.ones((3, 5, 9), bool))
        self.refused(ValueError, "or (1, 2, 5, 9) with some of these 1", mask=np.ones((1, 3, 5, 9), bool))
        heads = np.ones((1, 2, 5, 9), bool)
        heads[:, 1, :, 2:] = False
        with mock.patch("attest._parts._MOST_PAIRS", 0):
            self.refused(ValueError, "out has shape (1, 5, 1, 8); it must have 1 batch entries and 2 heads",
                         out=OUT[:, :, :1], mask=heads)
        self.refused(TypeError, "mask has dtype float32; give booleans", mask=np.zeros((5, 9), "f"))
        self.refused(ValueError, "'blok_64'", mask="blok_64")
        self.refused(ValueError, "key lengths", key_lengths=[3, 3])
        self.refused(TypeError, "key_lengths is [2.5]; give a list of integers", key_lengths=[2.5])
        self.refused(TypeError, "scale is 'half'; give a number", scale="half")
        self.refused(ValueError, "softcap is -1", softcap=-1)
        self.refused(ValueError, "head 0 has 0.5, not 0.0625; exact results are known for 2^(-8 (h + 1) / heads)",
                     alibi=[0.5, 0.25], align="top_left")
        self.refused(ValueError, "alibi has shape (3,); give True, 'standard', 'drawn_SEED' or the slopes of the 2",
                     alibi=[0.5, 0.25, 0.125], align="top_left")

    def test_packed_sequences(self):
        packed = {"out": OUT[0], "q": Q[0], "k": K[0], "v": V[0]}
        self.refused(ValueError, "cu_seqlens_q is [5]", cu_seqlens_q=[5], **packed)
        self.refused(ValueError, "cu_seqlens_q is of 1 sequences, cu_seqlens_k of 2",
                     cu_seqlens_q=[0, 5], cu_seqlens_k=[0, 4, 9], **packed)
        self.refused(ValueError, "Q: seqlen_q is 5, the problem says 4",
                     cu_seqlens_q=[0, 4], cu_seqlens_k=[0, 9], **packed)

    def test_numerics(self):
        self.refused(ValueError, "unknown preset 'fp32'; did you mean 'f32'?", numerics="fp32")
        self.refused(ValueError, "unknown field 'p_casts'; did you mean 'p_cast'?",
                     numerics={"p_casts": "bf16"})
        self.refused(ValueError, "p_cast=fp16 must be one of", numerics={"p_cast": "fp16"})
        self.refused(TypeError, "numerics is 3; give a preset", numerics=3)

    def test_gradients(self):
        grads = (Q, K, V)
        with self.assertRaisesRegex(TypeError, "three arrays"):
            attest.assert_grads_close(Q, Q, K, V, OUT, out=OUT, lse=LSE)
        with self.assertRaisesRegex(TypeError, "dout is None"):
            attest.assert_grads_close(grads, Q, K, V, None, out=OUT, lse=LSE)
        with self.assertRaisesRegex(TypeError, r"dk is None; give an array \(torch .* lacks requires_grad"):
            attest.assert_grads_close((Q, None, V), Q, K, V, OUT, out=OUT, lse=LSE)

    def test_too_large_for_the_machine(self):
        huge = np.broadcast_to(np.float32(1), (64, 1 << 20, 64, 256))  # strides of 0: no memory
        self.refused(ValueError, "GiB", out=huge, q=huge, k=huge, v=huge)


if __name__ == "__main__":
    unittest.main()
