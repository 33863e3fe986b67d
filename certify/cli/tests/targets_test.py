#!/usr/bin/env python3
"""Kernels of cpu/ are certified in every target that this machine runs, and a name that is none is refused.

usage: targets_test.py ATTEST [TEST ...]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ATTEST = sys.argv[1]
# Outside ci/nightly the two of flash2 and few cases of each law, for time.
NIGHTLY = "ATTEST_NIGHTLY" in os.environ
KERNELS = ("cpu/flash2", "cpu/flash2_bf16", "cpu/standard", "cpu/loss_gradient", "sparse/block_flash2", "sparse/csr_gather") if NIGHTLY else ("cpu/flash2", "cpu/flash2_bf16")
CASES = "60" if NIGHTLY else "2"


def attest(target, *words):
    return subprocess.run([ATTEST, *words], capture_output=True, text=True, timeout=1500,
                          env={**os.environ, "ATTEST_CPU_TARGET": target})


def targets():
    """The targets that the refusal of a wrong one lists."""
    return re.search("there are (.*)\n", attest("none", "list").stderr)[1].split(", ")


class Targets(unittest.TestCase):
    def test_each_passes_a_campaign_and_is_named(self):
        for target in targets():
            for kernel in KERNELS:
                with self.subTest(target=target, kernel=kernel):
                    done = attest(target, "certify", kernel, "--cases", CASES, "--json")
                    said = json.loads(done.stdout)
                    # So few cases leave pairs of claims that never met, which is exit status 3; nothing is wrong.
                    self.assertIn(done.returncode, (0, 3), done.stderr)
                    self.assertEqual([kernel["findings"] for kernel in said["kernels"]], [[]])
                    self.assertEqual(said["host"]["cpu_target"], target)

    def test_results_of_two_targets_are_not_joined(self):
        names = targets()
        if len(names) < 2:
            self.skipTest("there is one target here")
        first, other = names[:2]
        words = ["certify", "cpu/standard", "--only", "ones", "--cases", "4"]
        with tempfile.TemporaryDirectory() as folder:
            parts = [f"{folder}/{k}.json" for k in (1, 2)]

            def run(code, target, *more):
                done = attest(target, *more)
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                return done.stderr

            run(0, first, *words, "--shard", "1/2", "--out", parts[0])
            run(0, other, *words, "--shard", "2/2", "--out", parts[1])
            self.assertIn(f"'{parts[0]}' ran with host.cpu_target {first}, '{parts[1]}' with {other}: ",
                          run(2, first, "certify", "--merge", *parts))
            run(0, first, *words, "--shard", "2/2", "--out", parts[1])
            self.assertIn(f"holds results of host.cpu_target {first}, and this machine has {other}: ",
                          run(2, other, "certify", "--merge", *parts))
            run(0, first, "certify", "--merge", *parts)
            run(0, first, *words, "--resume", f"{folder}/journal.jsonl")
            self.assertIn("or with the same ATTEST_CPU_TARGET",
                          run(2, other, *words, "--resume", f"{folder}/journal.jsonl"))
            run(0, first, *words, "--resume", f"{folder}/journal.jsonl")

    def test_no_other_name_is_taken(self):
        for name in ("avx2", "AVX", "none", "AVX2,SSE4"):
            done = attest(name, "list")
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stdout, "")
            self.assertRegex(done.stderr, f"^attest: ATTEST_CPU_TARGET is '{name}', which is no target of this "
                                          f"program and processor; there are [A-Z0-9_, ]+\n$")

    def test_without_a_name_the_best_runs(self):
        done = attest("", "certify", "cpu/standard", "--cases", "1", "--json")
        self.assertEqual(json.loads(done.stdout)["host"]["cpu_target"], targets()[0])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
