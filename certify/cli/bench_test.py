#!/usr/bin/env python3
"""attest bench on a library: it is certified in a worker and timed in the program.

usage: bench_test.py ATTEST PLUGINS EXAMPLES
"""
import json
import platform
import subprocess
import sys
import unittest

ATTEST, PLUGINS, EXAMPLES = sys.argv[1:4]


def bench(*words):
    done = subprocess.run([ATTEST, "bench", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    return done.returncode, done.stdout


class Bench(unittest.TestCase):
    def test_a_library(self):
        code, text = bench(f"{EXAMPLES}/libpacked_qkv.so", "--problem", "hq=2,sq=32,d=16",
                           "--rounds", "3", "--json")
        self.assertEqual(code, 0, text)
        [row] = json.loads(text)["times"]  # it has no backward
        self.assertEqual(row["kernel"], f"{EXAMPLES}/libpacked_qkv.so:example/packed_qkv")
        self.assertEqual(row["direction"], "forward")
        self.assertGreater(row["seconds"]["median"], 0)
        self.assertGreater(row["useful_flops"], 0)
        self.assertEqual(row["against_first"]["median"], 1)

    def test_a_library_that_crashes_is_not_timed(self):
        code, text = bench(f"{PLUGINS}/libmisbehaving.so:crash", "--problem", "sq=8,d=4")
        self.assertEqual(code, 4, text)
        self.assertIn("not timed: ", text)
        self.assertNotIn("Gflop/s", text)
        code, text = bench(f"{PLUGINS}/libmisbehaving.so:crash", "--problem", "sq=8,d=4", "--json")
        self.assertEqual(code, 4, text)
        self.assertEqual(json.loads(text)["exit_code"], 4)
        self.assertEqual(json.loads(text)["refused"]["verdict"], "crashed")
        self.assertEqual(json.loads(text)["times"], [])

    def test_right_only_while_it_is_not_timed(self):
        """It is certified in its worker, and idle in the program."""
        code, text = bench(f"{PLUGINS}/libtimed.so:idle", "--problem", "hq=2,sq=16,d=4")
        self.assertEqual(code, 1, text)
        self.assertIn("idle was not right forward while it was timed", text)
        self.assertIn("timed call ", text)
        self.assertNotIn("Gflop/s", text)
        code, text = bench(f"{PLUGINS}/libtimed.so:idle", "--problem", "hq=2,sq=16,d=4", "--json")
        self.assertEqual(code, 1, text)
        self.assertEqual(json.loads(text)["refused"]["verdict"], "violated")
        self.assertEqual(json.loads(text)["times"], [])

    @unittest.skipUnless(platform.machine() == "x86_64", "the kernel patches tables of this machine")
    def test_a_slow_clock(self):
        code, text = bench(f"{PLUGINS}/libtimed.so:slow_clock", "--problem", "hq=2,sq=64,d=16")
        self.assertEqual(code, 1, text)
        self.assertIn("by the clock that measures", text)
        self.assertNotIn("Gflop/s", text)

    def test_wrong_on_other_problems_only(self):
        """It passes the problem that is asked for; the campaign refuses it."""
        code, text = bench("broken/top_left_causal", "--problem", "sq=8,d=4")
        self.assertEqual(code, 1, text)
        self.assertIn("not timed: broken/top_left_causal is not certified", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
