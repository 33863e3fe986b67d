"""Certifies functions that are right, and refuses the same with one mistake."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

import attest

CROSS = "sq=5,sk=9,d=8,mask=causal_br"
SMALL = {"isolate": False, "cases": 2, "shapes": "none", "dtypes": ["f32"], "problems": [CROSS]}


def attention(q, k, v, *, causal=False, scale=1.0, shift=None):
    """Returns out and lse, in the precision of q; causal at the bottom right without `shift`."""
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
    scores = np.einsum("bihd,bjhd->bhij", q, k) * q.dtype.type(scale)
    if causal:
        queries, keys = np.indices(scores.shape[-2:])
        aligned = scores.shape[3] - scores.shape[2] if shift is None else shift
        scores = np.where(keys <= queries + aligned, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - largest)
    sums = weights.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", weights / sums, v), (largest + np.log(sums))[..., 0]


def top_left(q, k, v, *, causal=False, scale=1.0):
    return attention(q, k, v, causal=causal, scale=scale, shift=0)


def without_last_key(q, k, v, *, scale=1.0):
    last = max(k.shape[1] - 1, 1)
    return attention(q, k[:, :last], v[:, :last], scale=scale)


def wrong_scale(q, k, v):
    return attention(q, k, v, scale=1 / q.shape[-1])


def kept_by_shape(q, k, v, *, kept={}):
    shapes = (q.shape, k.shape, v.shape)
    return kept.setdefault(shapes, attention(q, k, v, scale=q.shape[-1]**-0.5))


def refusal_of(fn, **options):
    """Returns the message of a function that must be refused, and its report."""
    report = attest.certify(fn, **{**SMALL, **options})
    try:
        report.raise_if_refused()
    except AssertionError as error:
        return str(error), report
    raise AssertionError(f"{fn.__name__} is not refused:\n{report}")


class Certify(unittest.TestCase):
    def test_a_right_function(self):
        report = attest.certify(attention, **SMALL)
        report.raise_if_refused()
        kernel = report.certificate["kernels"][0]
        self.assertEqual((report.verdict, report.findings), ("incomplete", []))
        self.assertTrue(all("never" in gap or "--shapes none" in gap for gap in kernel["incomplete"]), kernel["incomplete"])
        self.assertEqual(kernel["coverage"]["refused"], [])
        described = kernel["description"]
        self.assertEqual(described["directions"], ["forward"])
        self.assertEqual(described["features"],
                         ["causal_bottom_right", "gqa", "head_dim_v", "any_scale", "any_strides", "lse",
                          "cross_lengths"])
        self.assertEqual(len(kernel["not_seen"]), 4)
        self.assertIn("not seen in process: a crash", str(report))
        law = attest.certify(attention, **SMALL, only="reference_forward")
        self.assertEqual(law.verdict, "law_holds")

    def test_mistakes_are_named(self):
        for fn, words in ((top_left, "equals the result with top-left causal alignment"),
                          (without_last_key, "reference_forward: outside the proved bound: O["),
                          (wrong_scale, "equals the result with the softmax scale applied twice"),
                          (kept_by_shape, "returned the result of an earlier call with the same shapes")):
            with self.subTest(fn.__name__):
                message, report = refusal_of(fn)
                self.assertEqual(report.verdict, "violated")
                self.assertIn(words, message)
                self.assertIn(f"\nattest.replay({fn.__name__}, 'b=1,", message)
                self.assertIn(message.split("\n", 1)[1], str(report))

    def test_the_last_line_shows_the_finding_again(self):
        message, report = refusal_of(top_left)
        line = message.splitlines()[-1]
        self.assertEqual(report.findings[0]["reproduce"], line)
        with self.assertRaises(AssertionError) as raised:
            eval(line)
        self.assertEqual(str(raised.exception), message)
        eval(line.replace("top_left", "attention"))
        with self.assertRaisesRegex(attest.NothingProved, "not claimed"):
            attest.replay(attention, "sq=3,d=4,softcap=2")

    def test_a_report_is_saved_and_shown(self):
        _, report = refusal_of(top_left)
        self.assertIn("<pre>top_left  VIOLATED", report._repr_html_())
        self.assertNotIn("'", report._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "certificate.json"
            report.save(path)
            self.assertEqual(json.loads(path.read_text()), report.certificate)

    def test_conventions(self):
        def sdpa(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
            if is_causal and attn_mask is not None:
                raise ValueError("is_causal and attn_mask together")
            turned = [array.swapaxes(1, 2) for array in (query, key, value)]
            if attn_mask is not None:
                return masked(*turned, attn_mask, scale).swapaxes(1, 2)
            return top_left(*turned, causal=is_causal, scale=scale)[0].swapaxes(1, 2)

        def masked(q, k, v, mask, scale):
            scores = np.einsum("bihd,bjhd->bhij", q, k) * q.dtype.type(scale)
            weights = np.exp(scores - scores.max(-1, keepdims=True)) * mask
            return np.einsum("bhij,bjhd->bihd", weights / weights.sum(-1, keepdims=True), v)

        like = dataclasses.replace(attest.CONVENTIONS["sdpa"], arrays="numpy")
        options = {**SMALL, "like": like, "claims": ["boolean_mask", "causal", "cross_lengths"],
                   "problems": ["sq=5,sk=9,d=8,mask=causal_tl", "sq=5,sk=9,d=8,mask=causal_tl+random_90_2"]}
        report = attest.certify(sdpa, **options, only="reference_forward")
        self.assertEqual((report.verdict, report.findings), ("law_holds", []), str(report))
        self.assertIn("causal_top_left", report.certificate["kernels"][0]["description"]["features"])

    def test_arrays_are_asked(self):
        def single(q, k, v):
            if q.dtype != np.float32 or q.shape[2] != k.shape[2]:
                raise NotImplementedError("single precision, no groups")
            return wrong_scale(q, k, v)[0]

        message, report = refusal_of(single, dtypes=None)
        described = report.certificate["kernels"][0]["description"]
        self.assertEqual(described["dtypes"], ["f32"])
        self.assertEqual(described["features"], ["head_dim_v", "any_strides", "cross_lengths"])
        self.assertEqual(described["limits"]["only"], ["only_bottom_right", "only_one_scale"])

    def test_a_causal_mask_alone_is_no_window(self):
        def without_windows(q, k, v, *, causal=False, window=(-1, -1), scale=1.0):
            if window != (-1, -1):
                raise NotImplementedError("no windows")
            return attention(q, k, v, causal=causal, scale=scale)

        def by_window(q, k, v, *, window, scale=1.0):
            if window[0] >= 0 or window[1] > 0:
                raise NotImplementedError("causal alone")
            return attention(q, k, v, causal=window[1] == 0, scale=scale)

        report = attest.certify(without_windows, **SMALL, only="reference_forward")
        features = report.certificate["kernels"][0]["description"]["features"]
        self.assertEqual((report.findings, "causal_bottom_right" in features, "window" in features),
                         ([], True, False), str(report))
        report = attest.certify(by_window, **SMALL, claims=["causal", "cross_lengths"], only="reference_forward")
        self.assertEqual((report.verdict, report.findings), ("law_holds", []), str(report))

    def test_limits(self):
        asked = []

        def in_tiles(q, k, v, *, causal=False, scale=1.0):
            if q.shape[1] % 16 or k.shape[1] % 16 or q.shape[3] not in (32, 64) or q.shape[0] > 2 or q.shape[2] > 4:
                raise NotImplementedError("whole tiles alone")
            asked.append(q.shape)
            return attention(q, k, v, causal=causal, scale=scale)

        words = ["seqlen_q%16", "seqlen_q<=128", "seqlen_k%16", "seqlen_k<=128", "head_dim=32|64", "batch<=2", "num_heads_q<=4"]
        for claims in (None, ["lse", "causal", "gqa", "head_dim_v", "cross_lengths"]):
            asked.clear()
            report = attest.certify(in_tiles, isolate=False, cases=20, dtypes=["f32"], claims=claims, limits=words,
                                    only="reference_forward")
            self.assertEqual((report.findings, report.certificate["kernels"][0]["coverage"]["refused"]), ([], []))
            claimed = report.certificate["kernels"][0]["description"]
            self.assertLessEqual({"lse", "causal_bottom_right", "gqa", "head_dim_v", "cross_lengths"}, set(claimed["features"]))
            self.assertEqual(claimed["limits"]["head_dims"], [32, 64])
            self.assertGreater(len({shape[1] for shape in asked}), 3)
        with self.assertRaisesRegex(NotImplementedError, "whole tiles"):
            attest.certify(in_tiles, isolate=False, cases=2, dtypes=["f32"], only="reference_forward")
        report = attest.certify(in_tiles, isolate=False, cases=20, dtypes=["f32"], limits=[*words, "batch<=3"],
                                only="reference_forward")
        self.assertRegex(report.certificate["kernels"][0]["coverage"]["refused"][0]["message"], "whole tiles")
        one = attest.certify(in_tiles, isolate=False, cases=2, dtypes=["f32"], only="reference_forward",
                             limits=["seqlen_q=16", "seqlen_k=16", "head_dim=32", "batch<=1", "num_heads_q<=1"])
        self.assertEqual(set(one.certificate["kernels"][0]["description"]["features"])
                         & {"gqa", "head_dim_v", "cross_lengths"}, set())

    def test_limits_that_make_no_sense(self):
        for word, text in (("seqlen%2", "'seqlen%2' is none; write seqlen_q, seqlen_k, head_dim"), ("seqlen_q", "is none"),
                           ("batch>=2", "batch has a largest value alone, as in 'batch<=2'"), ("seqlen_q%0", "not from 1 to"),
                           ("seqlen_q=1|2", "several numbers; head_dim= alone"), ("head_dim=1|2|3|4|5|6|7|8|9", "more than 8"),
                           ("seqlen_k<=99999999999", "not from 1 to 2147483647")):
            with self.subTest(word), self.assertRaisesRegex(ValueError, text):
                attest.certify(attention, isolate=False, limits=[word])
        with self.assertRaisesRegex(TypeError, r"limits is 'batch<=2'; give a list of words, like \['batch<=2'\]"):
            attest.certify(attention, isolate=False, limits="batch<=2")
        with self.assertRaisesRegex(ValueError, "limits leave no seqlen_q: it is from 10 to 15 in multiples of 8"):
            attest.certify(attention, isolate=False, limits=["seqlen_q>=10", "seqlen_q<=15", "seqlen_q%8"])

    def test_exceptions(self):
        def refuses(q, k, v):
            if q.shape[1] > 6:
                raise NotImplementedError("long")
            return attention(q, k, v, scale=q.shape[-1]**-0.5)

        def fails(q, k, v):
            if q.shape[1] > 6:
                raise KeyError("long")
            return attention(q, k, v, scale=q.shape[-1]**-0.5)

        refused = attest.certify(refuses, **SMALL)
        self.assertEqual(refused.findings, [])
        self.assertRegex(str(refused), r"refused \d+ times: .*NotImplementedError: long")
        message, _ = refusal_of(fails)
        self.assertRegex(message, r"failed: (?s:.*)certify_test.py.*in fails\n.*\n(?s:.*)KeyError: 'long'")
        self.assertNotIn("_function.py", message)

    def test_inputs_are_not_written(self):
        def writes(q, k, v):
            q *= q.dtype.type(q.shape[-1]**-0.5)
            return attention(q, k, v)

        message, _ = refusal_of(writes)
        self.assertIn("input Q", message)

    def test_bad_use(self):
        def returns(result):
            return lambda q, k, v: result(q, k, v)

        for result, words in ((lambda q, k, v: None, "out is None; give an array"),
                              (lambda q, k, v: q[:1], r"out of shape \(1, 6, 4, 8\); it must be"),
                              (lambda q, k, v: q.astype(int), "out has dtype int64"),
                              (lambda q, k, v: (q, q), "lse of shape")):
            with self.assertRaisesRegex(TypeError, f"lambda returned .*{words}"):
                attest.certify(returns(result), isolate=False)
        with self.assertRaisesRegex(TypeError, "returned out in f64; it must be f32"):
            attest.certify(lambda q, k, v: q.astype(np.float64), **SMALL)
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            attest.certify(lambda q, k, v: 1 / 0, isolate=False)
        for options, kind, words in (
                ({"timeout": 3}, ValueError, "timeout and memory_limit are of a fresh interpreter"),
                ({"like": "spda"}, ValueError, "like is 'spda'; it must be one of plain, "),
                ({"tier": "quick"}, ValueError, "unknown tier 'quick'"),
                ({"cases": -1}, ValueError, "cases=-1 must be a whole number"),
                ({"numerics": "exact"}, ValueError, "unknown preset 'exact'"),
                ({"dtypes": ["float32"]}, ValueError, "'float32' must be one of f64"),
                ({"dtypes": "f32"}, TypeError, "dtypes is 'f32'; give a list of words, like ['f32']"),
                ({"dtypes": []}, ValueError, "dtypes is empty; give one at least"),
                ({"claims": ["grouped"]}, ValueError, "'grouped' must be one of causal"),
                ({"dtypes": ["float8_e4m3fn"]}, ValueError, "'float8_e4m3fn': this version does not have fp8"),
                ({"claims": ["dropout"]}, ValueError, "claims: 'dropout': this version does not have dropout"),
                ({"kv_dtype": "bf16"}, TypeError,
                 "unexpected keyword 'kv_dtype': this version does not have k and v of another dtype than q"),
                ({"tolerance": 1}, TypeError, "unexpected keyword argument 'tolerance'"),
                ({"claims": ["softcap"]}, ValueError,
                 "'softcap' is asked for by softcap, which attention does not take"),
                ({"claims": "gqa"}, TypeError, "claims is 'gqa'; give a list of words"),
                ({"problems": CROSS}, TypeError, "give a list of problems"),
                ({"problems": ["b=64,sq=1048576,sk=1048576,hq=64,d=256"]}, ValueError,
                 "GiB; make sq smaller"),
                ({"only": "reference"}, ValueError, "unknown law 'reference'")):
            with self.assertRaisesRegex(kind, re.escape(words)):
                attest.certify(attention, **{**SMALL, **options})
        with self.assertRaisesRegex(TypeError, "fn is a int; give a function"):
            attest.certify(3, isolate=False)
        with self.assertRaisesRegex(TypeError, "keyword 'dropout_p': this version does not have dropout"):
            attest.replay(attention, CROSS, dropout_p=0.1)
        with self.assertRaisesRegex(ValueError, "arrays is 'cupy'; it must be numpy, torch, jax or None"):
            dataclasses.replace(attest.CONVENTIONS["plain"], arrays="cupy")
        with mock.patch.dict(sys.modules, {"torch": None}), self.assertRaisesRegex(
                ValueError, r"called with arrays of torch \(.*torch.*\); install it, or give a convention"):
            attest.certify(attention, like="sdpa", isolate=False)

    def test_strides_that_a_function_does_not_take(self):
        def dense(q, k, v):
            if not q.flags.c_contiguous:
                raise RuntimeError("q must be contiguous")
            return attention(q, k, v, scale=q.shape[-1]**-0.5)

        message, _ = refusal_of(dense, problems=["sq=5,d=8,layout=bhsd"])
        self.assertRegex(message, r"certify_test.py.*in dense\n(?s:.*)RuntimeError: q must be contiguous")

    def test_an_interrupt_leaves_a_partial_certificate(self):
        calls, threads = [], threading.active_count()
        # A shell starts what is in its background with SIGINT ignored.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

        def interrupted(q, k, v):
            calls.append(1)
            if len(calls) == 20:
                os.kill(os.getpid(), signal.SIGINT)
            return attention(q, k, v, scale=q.shape[-1]**-0.5)

        report = attest.certify(interrupted, **{**SMALL, "cases": 1000, "jobs": 1})
        self.assertTrue(report.certificate["interrupted"])
        self.assertEqual((report.verdict, report.findings), ("incomplete", []))
        self.assertIn("ended early: the certificate is partial", str(report))
        self.assertEqual(threading.active_count(), threads)


if __name__ == "__main__":
    unittest.main()
