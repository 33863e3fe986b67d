#!/usr/bin/env python3
"""attest bench on a library: it is certified in a worker and timed in another process.

usage: bench_test.py ATTEST PLUGINS [TEST ...]
"""
import contextlib
import glob
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ATTEST, PLUGINS = sys.argv[1:3]
# A sanitizer tells of a signal itself, and ends the process with a status.
with open(ATTEST, "rb") as program:
    SIGNAL = ("SEGV" if re.search(rb"__[at]san_init", program.read())
              else "signal 11 (Segmentation fault) in timed call 2")


def bench(*words):
    done = subprocess.run([ATTEST, "bench", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)
    return done.returncode, done.stdout


def timer_of(program):
    """Returns the process that times, once there is one; None where the program ends without it."""
    while program.poll() is None:
        for path in glob.glob(f"/proc/{program.pid}/task/*/children"):
            with contextlib.suppress(OSError), open(path) as children:  # one may end meanwhile
                for child in children.read().split():
                    with open(f"/proc/{child}/cmdline") as words:
                        if words.read().split("\0")[1:2] == ["timer"]:
                            return child
        time.sleep(0.05)
    return None


class Bench(unittest.TestCase):
    """Times kernels that bench certifies itself, or takes one certificate's word for."""

    @classmethod
    def setUpClass(cls):
        """Certifies the kernels that several tests time."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.certificate = f"{folder.name}/certificate.json"
        subprocess.run([ATTEST, "certify", *(f"{PLUGINS}/libtimed.so:{name}" for name in ("dies", "prints", "hangs")),
                        "--out", cls.certificate], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=300, check=True)

    def test_a_library_with_a_certificate(self):
        problem = ("--problem", "hq=2,sq=32,d=16", "--rounds", "3")
        with tempfile.TemporaryDirectory() as folder:
            library, made = f"{folder}/libtimed.so", self.certificate
            shutil.copy(f"{PLUGINS}/libtimed.so", library)
            kernel = f"{library}:prints"
            code, text = bench(kernel, "--certificate", made, *problem, "--json")
            self.assertEqual(code, 0, text)
            told = json.loads(text)
            [row] = told["times"]  # it has no backward
            self.assertEqual(row["kernel"], kernel)
            self.assertEqual(row["direction"], "forward")
            self.assertGreater(row["seconds"]["median"], 0)
            self.assertGreater(row["useful_flops"], 0)
            self.assertEqual(row["against_first"]["median"], 1)
            self.assertEqual(told["certificates"], [{"kernel": kernel, "file": made}])
            # Another binary of the same name.
            with open(library, "ab") as file:
                file.write(b"x")
            done = subprocess.run([ATTEST, "bench", kernel, "--certificate", made, *problem],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=300, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("is of another file, SHA-256 ", done.stderr)
            self.assertNotIn("Gflop/s", done.stdout)
            # A certificate of none of the kernels.
            done = subprocess.run([ATTEST, "bench", "cpu/flash2", "--certificate", made, *problem],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=300, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("names none of these kernels", done.stderr)

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
        """It is certified in its worker, and idle where it is timed."""
        code, text = bench(f"{PLUGINS}/libtimed.so:idle", "--problem", "hq=2,sq=16,d=4")
        self.assertEqual(code, 1, text)
        self.assertIn("idle was not right forward while it was timed", text)
        self.assertIn("timed call ", text)
        self.assertNotIn("Gflop/s", text)

    @unittest.skipUnless(platform.machine() == "x86_64", "the kernel patches tables of this machine")
    def test_a_slow_clock(self):
        code, text = bench(f"{PLUGINS}/libtimed.so:slow_clock", "--problem", "hq=2,sq=64,d=16")
        self.assertEqual(code, 1, text)
        self.assertIn("by the clock that measures", text)
        self.assertNotIn("Gflop/s", text)

    @unittest.skipUnless(platform.machine() == "x86_64", "the kernel patches tables of this machine")
    def test_two_slow_clocks(self):
        """They agree, and the kernel is faster than the machine."""
        code, text = bench(f"{PLUGINS}/libtimed.so:slow_clocks", "--problem", "hq=2,sq=64,d=16")
        self.assertEqual(code, 1, text)
        self.assertIn("faster than this machine can multiply", text)
        self.assertNotIn("of peak", text)

    def test_a_kernel_that_dies_and_one_that_hangs(self):
        """One that only prints has its times, and its words are in no report."""
        code, text = bench(*(f"{PLUGINS}/libtimed.so:{name}" for name in ("dies", "prints", "hangs")),
                           "--problem", "hq=2,sq=16,d=4", "--timeout", "2", "--certificate", self.certificate)
        self.assertEqual(code, 4, text)
        self.assertIn("dies died in forward while it was timed", text)
        self.assertIn(SIGNAL, text)
        self.assertIn("hangs hung in forward while it was timed", text)
        self.assertIn("no return within 2 s in timed call 2", text)
        [row] = [line for line in text.splitlines() if line.startswith("forward")]
        self.assertIn("libtimed.so:prints", row)
        self.assertIn("1.000 [1.000 1.000]", row)

    def test_what_a_kernel_prints_is_in_no_report(self):
        code, text = bench(f"{PLUGINS}/libtimed.so:prints", f"{PLUGINS}/libtimed.so:dies",
                           "--problem", "hq=2,sq=16,d=4", "--json", "--certificate", self.certificate)
        self.assertEqual(code, 4, text)
        report = json.loads(text)
        self.assertEqual([row["kernel"] for row in report["times"]],
                         [f"{PLUGINS}/libtimed.so:prints"])
        self.assertEqual(report["refused"]["kernel"], f"{PLUGINS}/libtimed.so:dies")
        self.assertEqual(report["refused"]["verdict"], "crashed")

    def test_an_interrupt_ends_all(self):
        with subprocess.Popen(
                [ATTEST, "bench", f"{PLUGINS}/libtimed.so:hangs", "--problem", "hq=2,sq=16,d=4",
                 "--timeout", "60", "--certificate", self.certificate], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                text=True) as program:
            timer = timer_of(program)
            self.assertIsNotNone(timer)
            program.send_signal(signal.SIGINT)
            self.assertIn("interrupted", program.communicate(timeout=100)[1])
        self.assertEqual(program.returncode, 3)
        self.assertFalse(os.path.exists(f"/proc/{timer}"))

    def test_wrong_on_other_problems_only(self):
        """It passes the problem that is asked for; the campaign refuses it."""
        built_in = ["broken/top_left_causal"] if "ATTEST_NIGHTLY" in os.environ else []
        for kernel in (f"{PLUGINS}/libtimed.so:wrong_beyond_40", *built_in):
            with self.subTest(kernel):
                code, text = bench(kernel, "--problem", "sq=8,d=4")
                self.assertEqual(code, 1, text)
                self.assertIn(f"not timed: {kernel} is not certified", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
