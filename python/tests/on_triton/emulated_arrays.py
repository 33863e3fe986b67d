"""Kernels in Triton on arrays of numpy, without torch: run by emulated_gpu_test.py in a process of its own."""

import sys
import unittest

import numpy as np
import triton
import triton.language as tl

import attest


@triton.jit
def add(x, y, z, n, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit(do_not_specialize=["rows", "keys", "columns"])
def one_tile(Q, K, V, O, LSE, scale, rows, keys, columns, beyond, TILE: tl.constexpr):
    """Computes attention of one head with up to TILE rows, keys and columns; keys are seen `beyond` theirs."""
    head = tl.program_id(0)
    i = tl.arange(0, TILE)
    q = tl.load(Q + (head * rows + i[:, None]) * columns + i[None, :],
                mask=(i[:, None] < rows) & (i[None, :] < columns), other=0.0)
    at = (head * keys + i[:, None]) * columns + i[None, :]
    inside = (i[:, None] < keys) & (i[None, :] < columns)
    k, v = tl.load(K + at, mask=inside, other=0.0), tl.load(V + at, mask=inside, other=0.0)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(i[None, :] < keys + beyond, scores, float("-inf"))
    largest = tl.max(scores, 1)
    weights = tl.exp(scores - largest[:, None])
    total = tl.sum(weights, 1)
    out = tl.dot(weights, v, input_precision="ieee") / total[:, None]
    tl.store(O + (head * rows + i[:, None]) * columns + i[None, :], out,
             mask=(i[:, None] < rows) & (i[None, :] < columns))
    tl.store(LSE + head * rows + i, largest + tl.log(total), mask=i < rows)


def attention(q, k, v, *, scale=1.0, beyond=0):
    """Computes attention of numpy's (batch, seqlen, heads, head_dim) with sizes of up to 16."""
    q, k, v = (np.ascontiguousarray(array.swapaxes(1, 2)) for array in (q, k, v))
    batch, heads, rows, columns = q.shape
    if max(rows, columns, k.shape[2]) > 16 or k.shape[1] != heads or v.shape != k.shape:
        raise NotImplementedError("a tile holds 16, and K and V are alike")
    out, lse = np.empty_like(q), np.empty(q.shape[:3], np.float32)
    array = attest.EmulatedGpu.array
    one_tile[(batch * heads,)](array(q), array(k), array(v), array(out), array(lse), scale, rows, k.shape[2],
                               columns, beyond, TILE=16)
    return out.swapaxes(1, 2), lse


def attention_beyond(q, k, v, *, scale=1.0):
    return attention(q, k, v, scale=scale, beyond=1)


class OnArrays(unittest.TestCase):
    def test_addition(self):
        x, z = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
        with attest.emulated_gpu() as gpu:
            add[(2,)](gpu.array(x), gpu.array(x), gpu.array(z), 300, TILE=256)
        np.testing.assert_array_equal(z, 2 * x)
        self.assertEqual(gpu.launches[0].read, {"x, y": 600, "z": 0})
        with self.assertRaisesRegex(TypeError, "arrays of numpy, not a list"):
            gpu.array([1.0])

    def test_a_function_is_judged_and_counted(self):
        words = {"like": "numpy", "device": "emulated:sm_80", "dtypes": ["f32"], "claims": ["lse", "any_scale", "cross_lengths"]}
        attest.replay(attention, "b=2,hq=3,hkv=3,sq=13,sk=9,d=8", **words)
        with self.assertRaisesRegex(AssertionError, "outside the proved bound: O"):
            attest.replay(attention_beyond, "b=1,hq=1,hkv=1,sq=13,sk=9,d=8", **words)
        counted = attest.count(attention, "hq=3,hkv=3,sq=13,sk=9,d=8", like="numpy", best=False)
        (launch,) = counted["launches"]
        self.assertEqual(launch["read"], {"Q": 312, "K": 216, "V": 216, "O": 0, "LSE": 0})
        self.assertEqual(counted["moved"]["words"], counted["lower_bound"]["words"])

    def test_nothing_needs_torch(self):
        self.assertNotIn("torch", sys.modules)


if __name__ == "__main__":
    unittest.main()
