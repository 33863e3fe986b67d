"""Holds the counts of the package's command, and the command itself, against what they should say."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from plain.attention import arrays

import attest


class Command(unittest.TestCase):
    def test_count(self):
        counted = attest.count("flash2", "sq=512,d=64", fast_words=16384, best=False)
        self.assertEqual(counted["exit_code"], 0)
        self.assertGreaterEqual(counted["ratio"], 1)
        bytes_counted = attest.count("flash2", "sq=512,d=64,dtype=bf16", fast_bytes=32768)
        self.assertIsNotNone(bytes_counted["best_schedule"])

    def test_count_of_arrays(self):
        q, k, v = arrays(2, 64, 4, 16, heads_kv=2)
        line = attest.problem(q, k, v, causal=True, window=(8, 0), softcap=3)
        self.assertIn("mask=window_tl_8_0", line)
        self.assertIn("softcap=3", line)
        self.assertEqual(attest.count("flash2", line, fast_words=4096, best=False)["exit_code"], 0)

    def test_regime(self):
        rows = attest.regime(fast_bytes=49152, head_dim=128, dtypes=["f32"])["rows"]
        self.assertEqual(len(rows), 1)

    def test_messages_of_the_command(self):
        with self.assertRaisesRegex(ValueError, "unknown"):
            attest.count("flash3", "sq=512,d=64", fast_words=16384)
        with self.assertRaisesRegex(ValueError, "no fast memory given"):
            attest.count("flash2", "sq=512,d=64")
        for given in {"gradients": True}, {"backward": print}:
            with self.assertRaisesRegex(ValueError, "gradients, backward and autotune are for functions; .* like two_pass"):
                attest.count("flash2", "sq=512,d=64", fast_words=16384, **given)
        with self.assertRaisesRegex(ValueError, "unknown"):
            attest.regime(devices=["abacus"])

    def test_the_command_is_the_package_s(self):
        call = "import sys; from attest._command import main; sys.argv[1:] = ['--version']; main()"
        done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines()[0], f"attest {attest.__version__}")

    def test_a_python_without_the_package_is_bad_input(self):
        call = "import sys; from attest._command import main; main()"
        with tempfile.TemporaryDirectory() as folder:
            bare = pathlib.Path(folder, "python")
            bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
            bare.chmod(0o755)
            done = subprocess.run([sys.executable, "-c", call, "count", "--kernel", "mine.py:f", "--problem", "sq=4,d=4"],
                                  capture_output=True, text=True, env={**os.environ, "ATTEST_PYTHON": str(bare)})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("needs the Python package attest (docs/how-to/install.md)", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
