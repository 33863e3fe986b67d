"""Certifies functions of torch and jax on a device that is named, where they are installed."""

import importlib.util
import os
import unittest
from unittest import mock

import attest
from attest._emulation.devices import placing

SMALL = {"cases": 2, "shapes": "none", "dtypes": ["f32"], "only": "reference_forward", "jobs": 1}
TWO_OF_JAX = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}


def needs(module):
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


def on_the_second(query, key, value, is_causal=False, scale=None):
    """Computes attention of jax, on the second device alone."""
    import jax
    for array in (query, key, value):
        if array.devices() != {jax.devices("cpu")[1]}:
            raise AssertionError(f"an array lies on {array.devices()}")
    return jax.nn.dot_product_attention(query, key, value, is_causal=is_causal, scale=scale)


def of_torch(query, key, value, is_causal=False, scale=None):
    """Computes attention of torch."""
    from torch.nn.functional import scaled_dot_product_attention
    return scaled_dot_product_attention(query, key, value, is_causal=is_causal, scale=scale)


def too_large(query, key, value, is_causal=False, scale=None):
    """Computes 1.01 of it."""
    return 1.01 * of_torch(query, key, value, is_causal, scale)


class Devices(unittest.TestCase):
    def summary(self, report):
        self.assertEqual((report.verdict, report.findings), ("law_holds", []), str(report))
        kernel = report.certificate["kernels"][0]
        self.assertEqual(kernel["ran"], "on " + kernel["description"]["summary"].rpartition(" on ")[2])
        return kernel["description"]["summary"]

    @needs("jax")
    def test_arrays_are_on_the_device(self):
        with mock.patch.dict(os.environ, TWO_OF_JAX):
            report = attest.certify(on_the_second, like="jax", device="cpu:1", **SMALL)
            self.assertIn("arrays of jax on cpu:1", self.summary(report))
            with self.assertRaisesRegex(ValueError, "an array lies on .*0"):
                attest.certify(on_the_second, like="jax", device="cpu:0", **SMALL)
            with self.assertRaisesRegex(ValueError, "no device 'cpu:2' .*it has cpu:0, cpu:1 "):
                attest.certify(on_the_second, like="jax", device="cpu:2", **SMALL)

    @needs("torch")
    def test_torch(self):
        words = {"like": "sdpa", "isolate": False, **SMALL}
        report = attest.certify(of_torch, device="cpu", **words)
        self.assertIn("arrays of torch on cpu", self.summary(report))
        line = attest.certify(too_large, device="cpu", **words).findings[0]["reproduce"]
        self.assertIn("device='cpu'", line)
        with self.assertRaises(AssertionError) as raised:
            eval(line, {"attest": attest, "too_large": too_large})
        self.assertIn("device='cpu'", str(raised.exception))

    @needs("torch")
    def test_strides_stay_and_the_host_s_are_views(self):
        import torch
        from attest._emulation.devices import _spanning
        wide = torch.zeros(2, 9, 4, 16)
        for array in (wide[:, 1:7, :, :8], wide[:1].expand(3, 9, 4, 16), wide.transpose(1, 3), wide[:, :0]):
            self.assertEqual(_spanning(array, torch.device("meta")).stride(), array.stride())
            self.assertEqual(placing("torch", "cpu")(array).data_ptr(), array.data_ptr())

    def refused(self, words, kind, device, **options):
        with self.assertRaises(kind) as raised:
            attest.certify(of_torch, **{"like": "sdpa", "device": device, "isolate": False, **SMALL, **options})
        self.assertIn(words, str(raised.exception))

    @needs("torch")
    def test_devices_that_are_not_there(self):
        self.refused("torch has no device 'meta' that holds values; it has cpu", ValueError, "meta")
        self.refused("torch has no device 'meta' that holds values; it has cpu", ValueError, "meta", isolate=True)
        self.refused("torch has no device 'cuda:99' that holds values; it has cpu", ValueError, "cuda:99")
        self.refused("torch has no device 'gpu'", ValueError, "gpu")

    @needs("jax")
    def test_devices_that_are_not_there_of_jax(self):
        for word in ("meta", "cpu:99", "cpu:x"):
            self.refused(f"jax has no device '{word}' that holds values; it has cpu:0", ValueError, word, like="jax")

    def test_arrays_of_the_host_alone(self):
        self.refused("arrays of numpy lie on the host", ValueError, "cuda", like="numpy")
        self.refused("device is 1; give a word like 'cuda' or 'cuda:1'", TypeError, 1)


if __name__ == "__main__":
    unittest.main()
