"""Certifies functions with paged k and v and judges their results; refuses the same with one mistake."""

import functools
import inspect
import unittest

import numpy as np
from other_arrays_test import needs
from plain.attention import arrays
from plain.gradients import FORWARD, Gradients
from plain.pages import MISTAKES, attention, shown

import attest

PROBLEM = "b=2,hq=4,hkv=2,sq=5,sk=9,d=8,mask=lengths_9_6+causal_br,paged_kv=3_1"
OPTIONS = {"problems": [PROBLEM], "cases": 8, "shapes": "none", "dtypes": ["f32"]}


class OfNumpy(Gradients):
    def test_right_ones(self):
        for fn in shown, attention:
            kernel = self.certified(fn, ("forward",), **OPTIONS, **FORWARD)
            self.assertIn("paged_kv", kernel["description"]["features"])

    def test_mistakes_are_refused(self):
        for wrong in MISTAKES:
            with self.subTest(wrong.__name__):
                words = {"law": "reference_forward", "isolate": False, "dtypes": ["f32"]}
                with self.assertRaises(AssertionError):
                    attest.replay(functools.wraps(shown)(wrong), PROBLEM, **words)
                attest.replay(shown, PROBLEM, **words)

    def test_a_function_that_names_no_table_gets_no_pages(self):
        seen = set()

        def fn(q, k, v, scale=1.0, **words):
            seen.update(words)
            return attention(q, k, v, scale=scale)

        kernel = self.certified(fn, ("forward",), problems=[], claims=["gqa"], **FORWARD)
        self.assertNotIn("paged_kv", kernel["description"]["features"])
        self.assertNotIn("block_table", seen)

    def test_lengths_come_with_every_table(self):
        given = []

        def fn(q, k, v, *, causal=False, scale=1.0, key_lengths=None, block_table=None):
            given.append((key_lengths is None, block_table is None, k.ndim))
            return shown(q, k, v, causal=causal, scale=scale, key_lengths=key_lengths, block_table=block_table)

        self.certified(fn, ("forward",), **{**OPTIONS, "problems": ["b=2,sq=3,sk=5,d=8,paged_kv=2_1"]}, **FORWARD)
        self.assertIn((True, True, 4), given)
        self.assertIn((False, False, 4), given)
        self.assertNotIn((True, False, 4), given)


def torch_kvcache(q, k_cache, v_cache, cache_seqlens=None, softmax_scale=None, causal=False, window_size=(-1, -1),
                  softcap=0.0, alibi_slopes=None, block_table=None):
    import torch
    if window_size != (-1, -1) or softcap or alibi_slopes is not None:
        raise NotImplementedError
    out, lse = shown(*(x.numpy() for x in (q, k_cache, v_cache)), causal=causal, scale=softmax_scale,
                     key_lengths=None if cache_seqlens is None else cache_seqlens.numpy(),
                     block_table=None if block_table is None else block_table.numpy())
    return torch.from_numpy(out), torch.from_numpy(lse)


class OfTorch(Gradients):
    @needs("torch")
    def test_the_convention_of_a_cache(self):
        for name in "block_table", "page_table":
            def fn(*arrays, name=name, **words):
                words["block_table"] = words.pop(name)
                return torch_kvcache(*arrays, **words)

            parameters = inspect.signature(torch_kvcache).parameters.values()
            fn.__signature__ = inspect.Signature([one.replace(name=name) if one.name == "block_table" else one
                                                  for one in parameters])
            with self.subTest(name):
                kernel = self.certified(fn, ("forward",), like="flash_attn_with_kvcache", gradients=False, **OPTIONS)
                self.assertIn("paged_kv", kernel["description"]["features"])
        self.assertIs(attest._conventions.convention(None, torch_kvcache),
                      attest.CONVENTIONS["flash_attn_with_kvcache"])

    @needs("torch")
    def test_packed_queries(self):
        import torch

        def varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=1.0, causal=False,
                   window_size=(-1, -1), softcap=0.0, alibi_slopes=None, block_table=None):
            if window_size != (-1, -1) or softcap or alibi_slopes is not None:
                raise NotImplementedError
            outs, lses = [], []
            for b in range(len(cu_seqlens_q) - 1):
                rows, ends = slice(*cu_seqlens_q[b:b + 2]), cu_seqlens_k[b:b + 2]
                table = None if block_table is None else block_table[b:b + 1].numpy()
                keys = [x.numpy() if table is not None else x[slice(*ends)][None].numpy() for x in (k, v)]
                out, lse = shown(q[rows][None].numpy(), *keys, causal=causal, scale=softmax_scale, block_table=table,
                                 key_lengths=[int(ends[1] - ends[0])])
                outs.append(out[0]), lses.append(lse[0])
            return torch.from_numpy(np.concatenate(outs)), torch.from_numpy(np.concatenate(lses, 1))

        kernel = self.certified(varlen, ("forward",), like="flash_attn_varlen_func", gradients=False,
                                **{**OPTIONS, "problems": ["hq=2,d=8,mask=cu_3x5_1x9+causal_br,paged_kv=2_1"]})
        self.assertLess({"paged_kv", "packed_sequences"}, set(kernel["description"]["features"]))


def pooled(keys, lengths, size, seed=0):
    """Returns pages of so many keys in a random order, NaN where none lies, and the table that names them."""
    random = np.random.default_rng(seed)
    counts = [-(-length // size) for length in lengths]
    order, table = iter(random.permutation(sum(counts) + 1)), np.zeros((len(lengths), max(counts) + 1), np.int32)
    pool = np.full((sum(counts) + 1, size, *keys.shape[2:]), np.nan, keys.dtype)
    for b, length in enumerate(lengths):
        for page in range(counts[b]):
            table[b, page] = next(order)
            rows = keys[b, page * size:min((page + 1) * size, length)]
            pool[table[b, page], :len(rows)] = rows
    return pool, table


class Judged(unittest.TestCase):
    def test_results_over_pages(self):
        q, k, v = arrays(2, 5, 4, 8, heads_kv=2, seqlen_k=9)
        lengths, words = [9, 4], {"causal": "bottom_right"}
        right = attest.reference(q, k, v, key_lengths=lengths, **words)
        (keys, table), (values, _) = (pooled(one, lengths, 3) for one in (k, v))
        paged = {"key_lengths": lengths, "block_table": table, **words}
        np.testing.assert_array_equal(attest.reference(q, keys, values, **paged).out, right.out)
        out, lse = right.out.astype(np.float32), right.lse.astype(np.float32)
        attest.assert_close(out, q, keys, values, lse=lse, **paged)
        exchanged = table.copy()
        exchanged[0, :2] = table[0, 1::-1]  # pages that are full
        with self.assertRaisesRegex(AssertionError, "outside the proved bound"):
            attest.assert_close(out, q, keys, values, lse=lse, **{**paged, "block_table": exchanged})
        self.assertNotIn("paged_kv", attest.problem(q, keys, values, **paged))
        swapped = [one.swapaxes(1, 2) for one in (q, keys, values)]
        attest.assert_close(out.swapaxes(1, 2), *swapped, lse=lse, layout="bhsd", **paged)

    def test_packed_queries_over_pages(self):
        q, k, v = arrays(1, 8, 2, 8)
        q, lengths = q[0], [6, 2]
        (keys, table), (values, _) = (pooled(np.stack([one[0, :6], one[0, 2:]]), lengths, 4) for one in (k, v))
        packed = {"cu_seqlens_q": [0, 5, 8], "cu_seqlens_k": [0, 6, 8]}
        of_keys = [np.concatenate([one[0, :6], one[0, 2:4]]) for one in (k, v)]
        right = attest.reference(q, *of_keys, **packed)
        attest.assert_close(right.out.astype(np.float32), q, keys, values, block_table=table, **packed)

    def test_what_makes_no_sense(self):
        q, k, v = arrays(2, 5, 2, 8)
        (keys, table), (values, _) = (pooled(one, [5, 5], 4) for one in (k, v))
        words = {"block_table": table, "key_lengths": [5, 5]}
        for changed, message in (({"key_lengths": None}, "without key_lengths"),
                                 ({"key_lengths": [5, 13]}, "hold up to 12"),
                                 ({"key_lengths": [5]}, "there must be a row for each"),
                                 ({"block_table": table + 7}, "names pages"),
                                 ({"block_table": table[0]}, "must be \\(batch, pages\\)")):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                attest.reference(q, keys, values, **{**words, **changed})
        with self.assertRaisesRegex(ValueError, "gradients of k and v in pages are not judged"):
            attest.reference(q, keys, values, dout=q, **words)
        with self.assertRaisesRegex(TypeError, "did you mean 'block_table'"):
            attest.reference(q, keys, values, page_table=table)


if __name__ == "__main__":
    unittest.main()
