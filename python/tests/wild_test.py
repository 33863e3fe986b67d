"""Holds the records of docs/how-to/wild to what their libraries compute here, where they are installed."""

import contextlib
import importlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

import numpy as np
from plain.attention import arrays, attention

import attest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "wild"
sys.path.insert(0, str(FOLDER))
import certify  # noqa: E402
import on_cuda  # noqa: E402
import wide  # noqa: E402

with contextlib.suppress(ImportError):
    importlib.import_module("jax_attention")  # its flags of XLA hold from before a process first uses JAX

EXACT = re.compile(r"O\[batch=0, seqlen_q=(\d+), .*?head_dim_v=(\d+)\] is (\S+), exact (\S+?)(?:,|$)")


def subject(row):
    """Returns fn and options of a record's subject; skips without its library, or with another."""
    try:
        options = dict(importlib.import_module(row["module"]).SUBJECTS[row["subject"]])
    except ImportError as error:
        raise unittest.SkipTest(str(error)) from None
    library, version = row["library"].split()
    here = certify.importlib.metadata.version(library)
    if here != version:
        raise unittest.SkipTest(f"recorded with {row['library']}, this is {here}")
    return options.pop("fn"), options


def numbers(array):
    """Returns (seqlen or head_dim) numbers of Python, of the one head of an array."""
    return array.reshape(max(array.shape[1:3]), array.shape[3]).tolist()


def shown(number):
    """Returns the number as findings have it."""
    return format(float(number), ".9g")


def in_256_bits(calls, told):
    """Returns the exact element, of the call that returned the refused one."""
    query, column = int(told[1]), int(told[2])
    for (q, k, v, out), words in calls:
        if q.shape[0] * q.shape[1] * q.shape[2] == max(q.shape[1:3]) > query:
            if shown(numbers(out)[query][column]).lstrip("-") == shown(told[3]).lstrip("-"):
                causal = any(words.get(one) for one in ("causal", "is_causal"))
                seen = query + 1 if causal else None
                return shown(wide.row(numbers(q)[query], numbers(k)[:seen], numbers(v)[:seen],
                                      words.get("scale") or q.shape[3]**-0.5)[column])
    raise AssertionError(f"no call returned {told[3]}")


class Wild(unittest.TestCase):
    def test_every_record_has_its_subject(self):
        for module in certify.MODULES:
            with self.subTest(module):
                recorded = {name for name, row in certify.known().items() if row["module"] == module}
                try:
                    self.assertLessEqual(recorded, set(importlib.import_module(module).SUBJECTS))
                except ImportError as error:
                    self.skipTest(str(error))

    def test_findings_are_seen_again_and_256_bits_say_who_is_right(self):
        for name, row in certify.known().items():
            for finding in row["findings"]:
                with self.subTest(name, law=finding["law"]):
                    fn, options = subject(row)
                    calls = certify.witness(fn, options, finding["case"])
                    told = EXACT.search(finding["message"])
                    if finding["law"] == "reference_forward" and told:
                        self.assertEqual(in_256_bits(calls, told), shown(told[4]))
                        self.assertNotEqual(shown(told[3]), shown(told[4]))

    def test_what_is_certified_passes(self):
        for name, row in certify.known().items():
            if row["verdict"] != "certified":
                continue
            with self.subTest(name):
                fn, options = subject(row)
                alone = row["module"] == "triton_flash"  # which must be there before Triton is loaded
                few = {**options, "isolate": alone, "jobs": 1, "only": "reference_forward", "cases": 3}
                self.assertEqual(attest.certify(fn, **few).findings, [])

    def test_the_page_has_the_table_of_the_records(self):
        self.assertEqual(certify.PAGE.read_text(encoding="utf-8"), certify.page())

    def test_the_wide_row_is_the_reference(self):
        q, k, v = arrays(1, 1, 1, 8, seqlen_k=5)
        exact = attest.reference(q, k, v).out[0, 0, 0]
        row = wide.row(numbers(q)[0], numbers(k), numbers(v), 8**-0.5)
        np.testing.assert_array_max_ulp(np.array([float(x) for x in row]), exact, 64)

    def on_the_host(self, name, **options):
        """Returns the findings of a subject of devices on the host; skips without its library."""
        words = {**on_cuda.SUBJECTS[name], "device": "cpu", "cases": 2, "isolate": False, "jobs": 1, **options}
        try:
            importlib.import_module(words.pop("library"))
        except ImportError as error:
            self.skipTest(str(error))
        return attest.certify(**words).findings

    def test_subjects_of_devices_on_the_host(self):
        for name in ("torch flash, bf16", "torch flash, f16", "JAX XLA, bf16"):
            with self.subTest(name):
                self.assertEqual(self.on_the_host(name, only="reference_forward"), [])
        self.assertEqual(self.on_the_host("torch flash, bf16", only="reference_backward"), [])
        self.assertNotEqual(self.on_the_host("torch flash, bf16", only="reference_forward", numerics="f32"), [])
        for name in ("torch cuDNN, bf16", "torch efficient, f16", "JAX cuDNN, bf16"):
            with self.subTest(name), self.assertRaises(NotImplementedError):
                self.on_the_host(name)

    def test_a_subject_without_its_device_is_skipped(self):
        done = subprocess.run([sys.executable, FOLDER / "certify.py", "--one", "on_cuda", "torch flash, bf16",
                               "60"], capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(done.returncode, certify.SKIPPED, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "No module named 'torch'|torch has no device 'cuda'")

    def test_a_record_is_partial_where_time_ends_the_campaign(self):
        def ends(number):
            calls = iter(range(1000))

            def fn(q, k, v):
                if next(calls) == number:
                    os.kill(os.getpid(), signal.SIGALRM)
                    time.sleep(2)  # until the first thread has seen it
                return attention(q, k, v)
            return {"fn": fn, "library": "numpy", "dtypes": ["f32"], "cases": 9, "only": "reference_forward"}

        module = mock.Mock(SUBJECTS={"in the campaign": ends(5), "before it": ends(0), "never": ends(1000)})
        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        self.addCleanup(signal.alarm, 0)
        with mock.patch.dict(sys.modules, others=module):
            for name, partial in (("in the campaign", True), ("never", False)):
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    certify.one("others", name, "600")
                self.assertEqual(json.loads(printed.getvalue())["partial"], partial, name)
            with self.assertRaisesRegex(SystemExit, "its first calls were not done after 600 s"):
                certify.one("others", "before it", "600")

    def test_gradients_of_torch(self):
        try:
            import torch_gradients as gradients
        except ImportError as error:
            self.skipTest(str(error))
        for name, (backend, dtype, numerics) in gradients.CHECKS.items():
            with self.subTest(name):
                self.assertEqual(gradients.refused(backend, dtype, numerics), 0)
                first = gradients.SHAPES[:1]
                self.assertEqual(gradients.refused(backend, dtype, numerics, first, factor=1.1), 1)
        backend, dtype, _ = gradients.CHECKS["flash, bf16"]
        self.assertEqual(gradients.refused(backend, dtype, "f32", gradients.SHAPES[:1]), 1)


if __name__ == "__main__":
    unittest.main()
