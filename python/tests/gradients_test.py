"""Certifies functions with a backward pass of the user's, and refuses those with one mistake."""

import os
import unittest

from plain.gradients import BACKWARD, FORWARD, MISTAKES, SMALL, Gradients, attention, backward, shown

import attest


class OfTheUser(Gradients):
    def test_right_ones(self):
        kernel = self.certified(attention, backward=backward)
        self.assertNotIn("lse", kernel["description"]["features"])
        self.certified(shown, backward=backward, **BACKWARD)
        self.certified(attention, ("forward",), **FORWARD)

    def test_lse_is_given_where_forward_returns_it(self):
        given = []

        def noted(q, k, v, out, lse, *rest, **words):
            given.append(lse is not None)
            return backward(q, k, v, out, lse, *rest, **words)

        for claims in None, ["causal", "gqa", "cross_lengths"]:
            kernel = self.certified(shown, backward=noted, claims=claims, only="reference_backward")
            self.assertEqual("lse" in kernel["description"]["features"], claims is None)
        self.assertTrue(all(given))
        self.certified(attention, backward=noted, only="reference_backward")
        self.assertFalse(given[-1])

    def test_mistakes_are_named(self):
        for number, (wrong, words) in enumerate(MISTAKES):
            # In turn outside nightly, for time.
            for fn in (attention, shown) if "ATTEST_NIGHTLY" in os.environ else ((attention, shown)[number % 2],):
                with self.subTest(wrong.__name__, fn=fn.__name__):
                    message = self.refused(fn, words, backward=wrong, only="reference_backward")
                    self.assertIn(f"\nattest.replay({fn.__name__}, 'b=1,", message)
                    line = self.shown_again(message, **{fn.__name__: fn, wrong.__name__: wrong})
                    right = line.replace(wrong.__name__, "backward")
                    eval(right, {"attest": attest, fn.__name__: fn, "backward": backward})

    def test_functions_without_a_name(self):
        message = self.refused(lambda *arrays: shown(*arrays, scale=arrays[0].shape[-1]**-0.5), "outside",
                               backward=lambda q, k, v, *_: (q, k, v), only="reference_backward")
        self.assertRegex(message.splitlines()[-1],
                         r"^attest.replay\(fn, .*, backward=backward, isolate=False\)$")

    def test_bits_that_differ_from_call_to_call(self):
        calls = []

        def drifts(*arrays, **words):
            calls.append(1)
            dq, *others = backward(*arrays, **words)
            return dq * dq.dtype.type(1 + len(calls) % 3 * 2e-7), *others

        self.refused(attention, "the second of two equal calls differs: dQ[", backward=drifts,
                     only="repeat", problems=[])
        self.certified(attention, backward=drifts, numerics={"nondeterministic": True}, **BACKWARD)

    def test_problems_that_it_refuses(self):
        def refuses(*arrays, causal, scale):
            if causal:
                raise NotImplementedError("causal")
            return backward(*arrays, scale=scale)

        report = attest.certify(attention, **SMALL, backward=refuses, only="reference_backward")
        self.assertEqual(report.findings, [])
        self.assertRegex(str(report), r"refused \d+ times: .*NotImplementedError: causal")

    def test_outputs_of_forward_are_not_written(self):
        def writes(q, k, v, out, lse, dout, **words):
            out *= 2
            return backward(q, k, v, out / 2, lse, dout, **words)

        self.refused(attention, "input O", backward=writes, only="reference_backward")

    def test_bad_use(self):
        for returned, words in (
                (lambda q, k, v: None, "returned a NoneType; it must be three arrays (dq, dk, dv)"),
                (lambda q, k, v: (q, k), "returned 2 arrays; it must be three arrays (dq, dk, dv)"),
                (lambda q, k, v: (q, None, v), "dk is None; give an array"),
                (lambda q, k, v: (q, k[1:], v), "dk of shape (1, 6, 4, 8); it must be (2, 6, 4, 8)"),
                (lambda q, k, v: (q, k, v.astype("i4")), "dv has dtype int32"),
                (lambda q, k, v: (q.astype("f8"), k, v), "dq in f64; it must be f32")):
            with self.subTest(words):
                self.refused_at_once(TypeError, words, attention,
                                     backward=lambda q, k, v, *_, **__: returned(q, k, v))
        self.refused_at_once(TypeError, "backward is a int; give a function", attention, backward=3)
        self.refused_at_once(TypeError, "unexpected keyword argument 'causal'", attention,
                             backward=lambda q, k, v, out, lse, dout: (q, k, v))
        self.refused_at_once(ValueError, "leave one of them out", attention, backward=backward,
                             gradients=False)
        self.refused_at_once(ValueError, "arrays of numpy do not differentiate themselves; give backward=",
                             attention, gradients=True)


if __name__ == "__main__":
    unittest.main()
