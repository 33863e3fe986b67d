#!/usr/bin/env python3
"""Campaigns of the command that are shared among threads, runs and machines, and ended early: the
certificate is that of one thread in one go, or says what is missing.

usage: campaign_test.py ATTEST
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ATTEST = sys.argv[1]
KERNEL = ["cpu/standard", "--only", "reference_forward", "--shapes", "none", "--cases", "20"]


def attest(*words, code=0):
    done = subprocess.run([ATTEST, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=250)
    if done.returncode != code:
        raise AssertionError(f"{words}: {done.returncode}, {done.stdout} {done.stderr}")
    return done


def certificate(path):
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    del found["timings"], found["sha256"]
    return found


def begun(path):
    """Checks that a journal says were begun."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8") as file:
        return sum('"event":"begin"' in line for line in file)


class Campaigns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.whole = self.path("whole.json")

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def ended(self, words, sign, at_least=10):
        """Starts a campaign and signals it once its journal has some checks."""
        journal = self.path("journal.jsonl")
        running = subprocess.Popen([ATTEST, "certify", *words, "--resume", journal],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + 120
        while begun(journal) < at_least and running.poll() is None and time.monotonic() < limit:
            time.sleep(0.01)
        running.send_signal(sign)
        self.printed, self.errors = running.communicate(timeout=120)
        return running.returncode, journal

    def test_jobs(self):
        attest("certify", *KERNEL, "--jobs", "1", "--out", self.whole)
        attest("certify", *KERNEL, "--jobs", "3", "--out", self.path("3.json"))
        self.assertEqual(certificate(self.path("3.json")), certificate(self.whole))

    def merged_halves(self, words):
        """Runs a campaign with findings as two shards; returns their files and what they merge to."""
        parts = [self.path("1.json"), self.path("2.json")]
        for index, part in enumerate(parts, 1):
            subprocess.run([ATTEST, "certify", *words, "--shard", f"{index}/2", "--out", part],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=250)
        merged = self.path("merged.json")
        attest("certify", "--merge", *parts, "--out", merged, code=1)
        return parts, merged

    def test_shards(self):
        words = ["broken/dv_halved", "cpu/standard", "--only", "reference_backward", "--cases", "8", "--shapes", "none"]
        attest("certify", *words, "--out", self.whole, code=1)
        parts, merged = self.merged_halves(words)
        self.assertEqual(certificate(merged), certificate(self.whole))
        refused = attest("certify", "--merge", parts[0], code=2)
        self.assertIn("shard 2/2 is missing", refused.stderr)
        refused = attest("certify", "cpu/standard", "--merge", *parts, code=2)
        self.assertIn("--merge and kernel together", refused.stderr)
        refused = attest("certify", "cpu/standard", "--shard", "3/2", code=2)
        self.assertIn("1 <= i <= n", refused.stderr)

    def test_own_problems(self):
        problems = self.path("problems.txt")
        with open(problems, "w", encoding="utf-8") as file:
            file.write("# served\nsq=33,sk=70,d=8  # short\nsq=2300,sk=2300,d=8,mask=causal_br\n")
        words = ["broken/key_2100_dropped", "cpu/standard", "--only", "reference_forward",
                 "--shapes", "none", "--cases", "2", "--problem", "sq=5,sk=9,d=4", "--problems", problems]
        attest("certify", *words, "--out", self.whole, code=1)
        found = certificate(self.whole)
        self.assertEqual([one.split(",mask")[0] for one in found["problems"]],
                         ["b=1,hq=1,hkv=1,sq=5,sk=9,d=4,dv=4",
                          "b=1,hq=1,hkv=1,sq=33,sk=70,d=8,dv=8",
                          "b=1,hq=1,hkv=1,sq=2300,sk=2300,d=8,dv=8"])
        self.assertEqual(len(found["kernels"][0]["findings"]), 1)
        sizes = found["kernels"][1]["coverage"]["sizes"]["causal"]
        self.assertEqual(sizes["sampled"]["seqlen_q"], 2300)
        parts, merged = self.merged_halves(words)
        self.assertEqual(certificate(merged), found)
        with open(problems, "a", encoding="utf-8") as file:
            file.write("sq=5,ds=2\n")
        refused = attest("certify", "cpu/standard", "--problems", problems, code=2)
        self.assertIn(f"{problems}:4: ", refused.stderr)
        self.assertIn("ds", refused.stderr)
        refused = attest("certify", "cpu/standard", "--problem", "sq=2,d=1", "--mask",
                         "random_50_1", code=2)
        self.assertIn("--mask", refused.stderr)
        refused = attest("certify", "cpu/standard", "--problem", "sq=2,d=1", "--only", "ones",
                         code=2)
        self.assertIn("--only ones: problems of your own", refused.stderr)

    def test_long_check(self):
        words = ["check", "--kernel", "cpu/flash2", "--problem", "sq=2500,d=2,mask=causal_br"]
        told = attest(*words).stdout
        self.assertRegex(told, r"long: \d+ of 2500 queries and \d+ of 2500 keys judged, 96 at random")
        self.assertNotIn("one_hot_probe", told)
        self.assertTrue(json.loads(attest(*words, "--json").stdout)["sampled"])
        short = json.loads(attest("check", "--kernel", "cpu/flash2", "--problem", "sq=25,d=2",
                                  "--json").stdout)
        self.assertFalse(short["sampled"])

    def test_killed_and_resumed(self):
        attest("certify", *KERNEL, "--out", self.whole)
        code, journal = self.ended(KERNEL, signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL)
        resumed = attest("certify", *KERNEL, "--resume", journal, "--out", self.path("2.json"))
        self.assertRegex(resumed.stderr, "an earlier run ended within: attest check --kernel")
        self.assertEqual(certificate(self.path("2.json")), certificate(self.whole))
        refused = attest("certify", *KERNEL, "--seed", "9", "--resume", journal, code=2)
        self.assertIn("is of another campaign", refused.stderr)

    def test_interrupted(self):
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Short checks: the campaign ends after those that run.
            words = ["cpu/standard", "--only", "ones", "--cases", "100000", "--out", self.whole]
            code, journal = self.ended(words, sign)
            self.assertEqual(code, 3)
            self.assertIn("ends after the checks that run; a second signal ends it", self.errors)
            found = certificate(self.whole)
            self.assertTrue(found["interrupted"])
            kernel = found["kernels"][0]
            self.assertEqual(kernel["verdict"], "incomplete")
            self.assertRegex(kernel["incomplete"][0], r"interrupted after \d+ of \d+ checks")
            self.assertLess(kernel["checks"]["made"], kernel["checks"]["planned"])
            self.assertLess(kernel["cases"], kernel["planned_cases"])
            self.assertIn(f"({kernel['cases']:,} of {kernel['planned_cases']:,} cases, ", self.printed)
            self.assertIn(f"({kernel['cases']:,} of {kernel['planned_cases']:,} cases, ",
                          attest("report", self.whole).stdout)
            os.remove(journal)

    def test_a_second_signal_of_another_kind(self):
        journal = self.path("second.jsonl")
        words = ["cpu/standard", "--problem", "b=2,hq=8,sq=3000,d=64", "--only", "reference_backward", "--resume", journal]
        with subprocess.Popen([ATTEST, "certify", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as running:
            limit = time.monotonic() + 120
            while begun(journal) < 1 and running.poll() is None and time.monotonic() < limit:
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            while running.poll() is None and "a second signal ends it" not in running.stderr.readline():
                pass
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=120)
        self.assertEqual(running.returncode, -signal.SIGTERM)

    def test_under_nohup(self):
        journal = self.path("journal.jsonl")
        with subprocess.Popen([ATTEST, "certify", *KERNEL, "--resume", journal], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as running:
            limit = time.monotonic() + 120
            while begun(journal) < 2 and running.poll() is None and time.monotonic() < limit:
                time.sleep(0.01)
            running.send_signal(signal.SIGHUP)
            printed, errors = running.communicate(timeout=120)
        self.assertEqual(running.returncode, 0, printed + errors)
        self.assertNotIn("ends after", errors)

    def test_a_journal_is_of_one_process(self):
        journal = self.path("journal.jsonl")
        words = ["cpu/standard", "--cases", "20000", "--resume", journal]
        with subprocess.Popen([ATTEST, "certify", *words], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as running:
            limit = time.monotonic() + 120
            while begun(journal) < 2 and time.monotonic() < limit:
                time.sleep(0.01)
            refused = attest("certify", *words, code=2)
            running.kill()
        self.assertIn("is written by another process that runs", refused.stderr)

    def test_output_comes_before_the_progress_that_follows_it(self):
        # One log for both, as CI systems have it: the first kernel's lines stand before the second ends.
        log = self.path("log.txt")
        words = ["certify", "cpu/standard", "cpu/flash2", "--only", "reference_forward", "--cases", "100000", "--jobs", "1"]
        with open(log, "w", encoding="utf-8") as file:
            with subprocess.Popen([ATTEST, *words], stdout=file, stderr=file) as running:
                limit = time.monotonic() + 120
                while " checks, " not in self.text(log) and time.monotonic() < limit:
                    time.sleep(0.05)
                running.send_signal(signal.SIGTERM)
        text = self.text(log)
        self.assertLess(text.index("progress: cpu/standard"), text.index("cpu/standard  INCOMPLETE"))
        self.assertLess(text.index("cpu/standard  INCOMPLETE"), text.index("cpu/flash2  "))

    def text(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_seeds(self):
        found = {}
        for seeds in (("1", "1"), ("1", "2"), ("2", "1")):
            journal = self.path("-".join(seeds))
            attest("certify", *KERNEL[:-1], "3", "--seed", seeds[0], "--data-seed", seeds[1],
                   "--jobs", "1", "--resume", journal)
            with open(journal, encoding="utf-8") as file:
                lines = [json.loads(line).get("line", "") for line in file]
            found[seeds] = [line.split("'")[1] for line in lines if line], lines
        problems = {seeds: one[0] for seeds, one in found.items()}
        self.assertEqual(problems["1", "1"], problems["1", "2"])
        self.assertNotEqual(problems["1", "1"], problems["2", "1"])
        self.assertNotEqual(found["1", "1"][1], found["1", "2"][1])

    def test_summary_and_all_of_it(self):
        # Every list of a summary has more than it prints: gaps, and schedules of both directions.
        words = ["certify", "cpu/flash2", "cpu/loss_gradient", "--cases", "1"]
        summary = attest(*words, code=3).stdout.splitlines()
        second = next(i for i, line in enumerate(summary) if line.startswith("cpu/loss_gradient"))
        self.assertLessEqual(second, 16)  # of an incomplete one, one line more says what to do
        self.assertRegex(summary[second - 1], "run it without --cases")
        self.assertRegex("\n".join(summary), r"… and \d+ more such lines: --verbose")
        self.assertRegex(summary[-1], r"^2 kernels: 2 INCOMPLETE; [\d,]+ cases, [\d,]+ checks passed, 0 findings$")
        whole = attest(*words[:2], *words[3:], "--verbose", code=3).stdout
        self.assertNotIn("more such lines", whole)
        self.assertRegex(whole, r"(?m)^  reference_backward +passed +\d+  vacuous")
        self.assertRegex(whole, r"(?m)^  sizes covered: d > 256 ")
        self.assertIn("times compulsory_backward", whole)

    def test_progress_elsewhere_than_on_a_terminal(self):
        code = [ATTEST, "certify", "cpu/standard", "--only", "ones", "--cases", "100000", "--jobs", "1"]
        with subprocess.Popen(code, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as running:
            # On a busy machine the first line comes before the first check ends.
            line = next(line for line in running.stderr if not re.search(r" begun, \d+ s$", line))
            running.kill()
        self.assertRegex(line, r"^progress: cpu/standard [\d,]+/[\d,]+ checks, .*/s, \d+ s left$")
        code = [ATTEST, "check", "--kernel", "cpu/flash2", "--law", "ones", "--problem",
                "sq=2,d=1,hq=8000000"]
        with subprocess.Popen(code, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as running:
            line = running.stderr.readline()
            running.kill()
        self.assertRegex(line, r"^progress: ones, 5 s$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
