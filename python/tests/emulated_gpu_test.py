"""Runs kernels in Triton on an emulated GPU, where it is installed, those on tensors where torch is; errors everywhere."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from documentation_test import matches

import attest

TESTS = pathlib.Path(__file__).resolve().parent
PAGE = TESTS.parents[1] / "docs" / "how-to" / "triton-without-a-gpu.md"
EXAMPLE = re.compile(r"^```python\n(# (\S+)\n.*?)^```\n```text\n(.*?)^```\n", re.M | re.S)
MISSING = [one for one in ("torch", "triton") if importlib.util.find_spec(one) is None]
WITHOUT_TORCH = ["softmax.py", "add.py"]


def compiled(*words):
    """Runs Python without Triton's interpreter, which other tests of this process ask for."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(PAGE.parent / "wild"), *sys.path])
    return subprocess.run([sys.executable, "-B", *words], env=environment, capture_output=True, text=True)


class EmulatedGpu(unittest.TestCase):
    @unittest.skipIf(MISSING, f"{' and '.join(MISSING)} not installed")
    def test_kernels(self):
        for file, ran in (("emulated_kernels.py", r"Ran \d\d tests"), ("emulated_counts.py", r"Ran \d\d tests")):
            with self.subTest(file):
                done = compiled(str(TESTS / "on_triton" / file))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, ran)

    @unittest.skipIf("triton" in MISSING, "triton not installed")
    def test_kernels_on_arrays(self):
        done = compiled(str(TESTS / "on_triton" / "emulated_arrays.py"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "Ran 3 tests")

    @unittest.skipIf("triton" in MISSING, "triton not installed")
    def test_the_examples_of_the_page_print_what_it_says(self):
        examples = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
        self.assertEqual([name for _, name, _ in examples], ["softmax.py", "add.py", "judge.py", "each.py", "count.py",
                                                         "count_gradients.py"])
        with tempfile.TemporaryDirectory() as folder:
            for code, name, expected in examples:
                if "torch" in MISSING and name not in WITHOUT_TORCH:
                    continue  # the page says that they need it
                with self.subTest(name):
                    path = pathlib.Path(folder) / name
                    path.write_text(code, encoding="utf-8")
                    done = compiled(str(path))
                    self.assertTrue(matches(expected, done.stdout), done.stdout + done.stderr)


class BadUse(unittest.TestCase):
    def refused(self, error, words, target="sm_80"):
        with self.assertRaisesRegex(error, words), attest.emulated_gpu(target):
            self.fail("the context was entered")

    def test_targets(self):
        self.refused(ValueError, "no target 'sm_08'; give one of: sm_80, sm_90$", "sm_08")
        self.refused(ValueError, r"'sm_100' is not emulated yet \(tcgen05\); give one of: sm_80", "sm_100")

    def test_without_triton(self):
        with mock.patch.dict(sys.modules, triton=None):
            self.refused(ImportError, "pip install triton")

    def test_an_older_triton(self):
        with mock.patch.dict(sys.modules, triton=types.SimpleNamespace(__version__="3.4.0")):
            self.refused(ImportError, "needs Triton 3.5 or later, this is 3.4.0")

    def test_the_interpreter(self):
        knobs = types.SimpleNamespace(runtime=types.SimpleNamespace(interpret=True))
        with mock.patch.dict(sys.modules, triton=types.SimpleNamespace(__version__="3.5.1", knobs=knobs)):
            self.refused(ValueError, "TRITON_INTERPRET is set")


if __name__ == "__main__":
    unittest.main()
