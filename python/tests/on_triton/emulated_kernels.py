"""Kernels in Triton on an emulated GPU: run by emulated_gpu_test.py in a process of its own."""

import os
import tempfile
import unittest
from unittest import mock

import numpy as np
import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_kernels import (add, add_one_too_far, add_without_mask, last_sum_wins, softmax, doubled_in_place,
                            neighbours_in_place, last_program_sums, four_products, eight_bits, padded_sum,
                            tensor_flash, tensor_attention, row_attention, row_attention_beyond,
                            tensor_attention_beyond, flash, flash_attention, tuned_row_attention,
                            tuned_flash_attention, line_of)

import attest


class EmulatedKernels(unittest.TestCase):
    def refused(self, kernel, fault, line, words):
        x, y, z = torch.randn(1000), torch.randn(1000), torch.zeros(1000)
        with attest.emulated_gpu("sm_80") as gpu:
            with self.assertRaises(attest.EmulationError) as caught:
                kernel[(4,)](x, y, z, 1000, TILE=256)
        message = str(caught.exception)
        self.assertEqual(caught.exception.findings[0]["fault"], fault)
        self.assertIn(f"kernel '{kernel.__name__}' on sm_80: {fault}: ", message)
        self.assertRegex(message, words + r" \(PTX line \d+\) in block 3,0,0")
        self.assertRegex(message, rf"triton_kernels\.py:{line}: tl\.store")
        self.assertEqual(gpu.launches, [])

    def test_code_that_asks_for_cuda(self):
        def added(x, y):
            assert x.is_cuda and torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
            z = torch.empty(x.shape, device="cuda")
            first = torch.zeros(1, device=torch.device("cuda", 0)).to("cuda").cuda()
            with torch.cuda.device(x.device.index):
                add[(4,)](x, y, z, x.numel(), TILE=32)
            torch.cuda.synchronize()
            return z + first
        x, y = torch.randn(100), torch.randn(100)
        with attest.emulated_gpu("sm_90"):
            self.assertTrue(torch.equal(added(x, y), x + y))
            with self.assertRaisesRegex(RuntimeError, "no place on an emulated GPU"):
                torch.cuda.Event()
        self.assertFalse(x.is_cuda)
        with self.assertRaises(AssertionError):
            added(x, y)

    def test_vector_addition(self):
        x, y = torch.randn(1000), torch.randn(1000)
        z = torch.full((1000,), float("nan"))
        with attest.emulated_gpu("sm_80") as gpu:
            add[(4,)](x, y, z, 1000, TILE=256)
        np.testing.assert_array_equal(z.numpy(), x.numpy() + y.numpy())
        self.assertEqual(gpu.launches, [attest.Launch(
            "add", (4, 1, 1), {"x": 1000, "y": 1000, "z": 0}, {"x": 0, "y": 0, "z": 1000}, 0)])

    def test_updates_in_place(self):
        for tile in (4, 32, 64, 1024):  # threads hold copies of elements where there are fewer than 128
            with self.subTest(tile), attest.emulated_gpu("sm_80"):
                x, y = torch.randn(tile), torch.randn(1, tile)
                before, expected = x.clone(), y.softmax(1)
                doubled_in_place[(1,)](x, TILE=tile)
                softmax[(1,)](y, y, tile, TILE=tile)
                self.assertTrue(torch.equal(x, 2 * before))
                self.assertTrue(torch.allclose(y, expected))

    def test_an_update_in_place_of_other_elements(self):
        for tile in (32, 1024):
            with self.subTest(tile), attest.emulated_gpu("sm_80"):
                with self.assertRaisesRegex(attest.EmulationError, "race: lane .* nothing orders the two"):
                    neighbours_in_place[(1,)](torch.randn(tile), TILE=tile)

    def test_softmax(self):
        for columns in (1, 300, 512):
            x = torch.randn(7, columns)
            z = torch.zeros_like(x)
            with attest.emulated_gpu() as gpu:
                softmax[(7,)](x, z, columns, TILE=512)
            wide = np.exp(x.numpy().astype(np.float64))
            exact = wide / wide.sum(1, keepdims=True)
            np.testing.assert_array_max_ulp(z.numpy(), exact.astype(np.float32), 16)
            self.assertEqual((gpu.launches[0].read["x"], gpu.launches[0].written["z"]), (7 * columns,) * 2)
            self.assertGreater(gpu.launches[0].shared_bytes, 0)

    def test_flash_attention(self):
        module, tile = flash(), 64
        kinds = (("sm_80", torch.float32, "f32"), ("sm_80", torch.float16, "p_cast_to_input"),
                 ("sm_90", torch.float16, "p_cast_to_input"), ("sm_90", torch.bfloat16, "p_cast_to_input"))
        for target, dtype, numerics in kinds:
            for rows, keys, causal in ((64, 64, False), (70, 45, False), (33, 130, True)):
                q, k, v = (torch.randn(1, length, heads, 32, dtype=dtype)
                           for length, heads in ((rows, 4), (keys, 2), (keys, 2)))
                with self.subTest(target, dtype=dtype, rows=rows, keys=keys), attest.emulated_gpu(target) as gpu:
                    out, lse = module.attention(q, k, v, causal=causal, scale=32**-0.5)
                    attest.assert_close(out, q, k, v, lse=lse, numerics=numerics,
                                        causal="bottom_right" if causal else None)
                    (launch,) = gpu.launches
                    tiles = triton.cdiv(rows, tile)
                    self.assertEqual(launch.read, {
                        "Q": 4 * rows * 32, "K": tiles * 4 * keys * 32, "V": tiles * 4 * keys * 32,
                        "O": 0, "LSE": 0})
                    self.assertEqual(launch.written, {"Q": 0, "K": 0, "V": 0, "O": 4 * rows * 32,
                                                      "LSE": 4 * rows})

    def test_flash_attention_by_tensor_copies(self):
        for target in ("sm_80", "sm_90"):
            for rows, keys in ((64, 64), (70, 145), (1, 3)):
                q, k, v = (torch.randn(1, length, 2, 64, dtype=torch.float16) for length in (rows, keys, keys))
                with self.subTest(target, rows=rows), attest.emulated_gpu(target) as gpu:
                    out = tensor_attention(q, k, v)
                    attest.assert_close(out, q, k, v, numerics="p_cast_to_input")
                    (launch,) = gpu.launches
                    tiles = triton.cdiv(rows, 64)
                    self.assertEqual(launch.read, {"Q": 2 * rows * 64, "K": tiles * 2 * keys * 64,
                                                   "V": tiles * 2 * keys * 64, "O": 0})
                    self.assertEqual(launch.written["O"], 2 * rows * 64)

    def test_a_tensor_that_ends_before_its_descriptor(self):
        x = torch.randn(64, 64, dtype=torch.float16)
        short = TensorDescriptor(x, [1, 80, 64], [4096, 64, 1], [1, 64, 64])
        with attest.emulated_gpu("sm_90"), self.assertRaises(attest.EmulationError) as caught:
            tensor_flash[(2, 1)](short, short, short, short, 80, 80, 0.1, BEYOND=0, WIDE=64, TILE=64)
        self.assertRegex(str(caught.exception), r"out of bounds: lane 0 reads \d+ bytes at byte 8192 of .*has 8192")
        self.assertRegex(str(caught.exception), r"triton_kernels\.py:\d+: .*load\(")

    def test_a_wrong_flash_attention_is_refused(self):
        q, k, v = (torch.randn(1, 40, 2, 32) for _ in range(3))
        with attest.emulated_gpu():
            out, _ = flash().attention(q, k, v, causal=True, scale=32**-0.5)
        with self.assertRaises(AssertionError):
            attest.assert_close(out, q, k, v)

    def test_a_store_that_is_one_too_far(self):
        self.refused(add_one_too_far, "out of bounds", line_of("tl.store(z + i + 1"),
                     r"writes \d+ bytes at byte \d+ of 'z', which has 4000")

    def test_a_missing_mask(self):
        self.refused(add_without_mask, "out of bounds", line_of("tl.store(z + i, tl.load(x + i) "),
                     r"reads \d+ bytes at byte \d+ of 'x', which has 4000")

    def test_the_last_program_reads_what_all_have_written(self):
        x, z = torch.ones(512), torch.zeros(1)
        for order in ("acq_rel", "relaxed"):
            with self.subTest(order), attest.emulated_gpu():
                arguments = x, torch.zeros(8), torch.zeros(1, dtype=torch.int32), z
                if order == "acq_rel":
                    last_program_sums[(8,)](*arguments, PROGRAMS=8, TILE=64, ORDER=order)
                    self.assertEqual(z.item(), 512)
                else:
                    with self.assertRaisesRegex(attest.EmulationError, "race: lane .* reads .* of 'parts'"):
                        last_program_sums[(8,)](*arguments, PROGRAMS=8, TILE=64, ORDER=order)

    def test_a_race_between_blocks(self):
        with attest.emulated_gpu(), self.assertRaises(attest.EmulationError) as caught:
            last_sum_wins[(4,)](torch.randn(512), torch.zeros(1), TILE=128)
        self.assertRegex(str(caught.exception), r"race: lane \d+ writes 4 bytes .*block.*nothing orders")
        self.assertRegex(str(caught.exception), r"\n  triton_kernels\.py:\d+: tl\.store")

    def test_autotuning_takes_the_fewest_words(self):
        x, z = torch.ones(256), torch.zeros(1)
        with attest.emulated_gpu() as gpu:
            padded_sum[(1,)](x, z, 160)
        self.assertEqual(z.item(), 160)
        self.assertEqual([launch.read["x"] for launch in gpu.launches], [160])
        with attest.emulated_gpu() as gpu:  # another GPU measures anew what it has not seen
            padded_sum[(1,)](x, z, 170)
        self.assertEqual([launch.read["x"] for launch in gpu.launches], [192])
        self.assertEqual((padded_sum.cache, "do_bench" in vars(padded_sum)), ({}, False))  # nothing stays for a real one

    def test_autotuning_by_a_named_configuration(self):
        x, z = torch.ones(256), torch.zeros(1)
        for tile, read in ((128, 256), (32, 160), (128, 256)):  # what was taken before is not kept
            with self.subTest(tile), attest.emulated_gpu(autotune={"TILE": tile}) as gpu:
                padded_sum[(1,)](x, z, 160)
            self.assertEqual([launch.read["x"] for launch in gpu.launches], [read])
        for wanted, words in (({"TILE": 64}, "names none"), ({"num_warps": 1}, "names 2")):
            with attest.emulated_gpu(autotune=wanted), self.assertRaisesRegex(
                    ValueError, words + r" of the configurations of 'padded_sum'; they are: \{'TILE': 32,.*'TILE': 128"):
                padded_sum[(1,)](x, z, 160)

    def test_autotuning_by_words_and_kernels(self):
        x, z = torch.ones(256), torch.zeros(1)
        for choice, read in (("TILE=128", 256), ("padded_sum.TILE=128", 256), ({"padded_sum": {"TILE": 128}}, 256),
                             ({"another": {"TILE": 128}}, 160), ({"BLOCK_M": 128}, 160)):
            with self.subTest(choice), attest.emulated_gpu(autotune=choice) as gpu:
                padded_sum[(1,)](x, z, 160)
                self.assertEqual([launch.read["x"] for launch in gpu.launches], [read])
                self.assertEqual([one["TILE"] for one in gpu.configurations["padded_sum"]], [32, 128])
        for choice, error, text in (("TILE", ValueError, "'TILE' is no name=value; write BLOCK_M=64"),
                                    ("", ValueError, "is no name=value"), ({}, TypeError, "give what names a configuration"),
                                    (64, TypeError, "give what names a configuration"),
                                    ("each", ValueError, "one of attest.configurations")):
            with self.subTest(choice), self.assertRaisesRegex(error, text), attest.emulated_gpu(autotune=choice):
                self.fail("the context is entered")

    def test_each_configuration_is_certified(self):
        # Fewest words are moved by tiles of 4 keys, which leave all further keys out.
        choices = [{"one_row": {"TILE": 4}}, {"one_row": {"TILE": 64}}]
        self.assertEqual(attest.configurations(tuned_row_attention, like="plain"), choices)
        words = {"like": "plain", "device": "emulated:sm_80", "claims": [], "dtypes": ["f32"]}
        attest.replay(tuned_row_attention, "sq=5,sk=5,d=8", autotune=choices[1], **words)
        for choice in (choices[0], None):
            with self.subTest(choice), self.assertRaisesRegex(AssertionError, "(?s)outside the proved bound"):
                attest.replay(tuned_row_attention, "sq=5,sk=5,d=8", autotune=choice, **words)
        with self.assertRaisesRegex(AssertionError, r"autotune=\{'one_row': \{'TILE': 4\}\}"):
            attest.replay(tuned_row_attention, "sq=5,sk=5,d=8", autotune=choices[0], **words)
        report = attest.certify(tuned_row_attention, autotune="TILE=64", cases=2, jobs=1, only="reference_forward", **words)
        self.assertEqual(report.findings, [])
        self.assertIn("emulated:sm_80, autotuned to TILE=64", report.certificate["kernels"][0]["description"]["summary"])

    def test_a_configuration_that_is_pruned_is_a_gap(self):
        words = {"device": "emulated:sm_80", "dtypes": ["f16"], "numerics": "p_cast_to_input", "claims": ["lse"]}
        attest.replay(tuned_flash_attention, "sq=40,sk=40,d=16,dtype=f16", autotune="TILE=32", **words)
        with self.assertRaisesRegex(AssertionError, "(?s)refuse.*'TILE': 32.*of 'flash' is pruned for these arguments"):
            attest.replay(tuned_flash_attention, "sq=20,sk=20,d=16,dtype=f16", autotune="TILE=32", **words)

    def test_choices_that_nothing_takes(self):
        words = {"like": "plain", "dtypes": ["f32"], "claims": []}
        for fn, choice, device, text in (
                (tuned_row_attention, "BLOCK_M=4", "emulated:sm_80", "no autotuned kernel of it; they launched 'one_row' by TILE"),
                (row_attention, "TILE=4", "emulated:sm_80", "they launched none that is autotuned"),
                (tuned_row_attention, "TILE=8", "emulated:sm_80", "names none of the configurations of 'one_row'"),
                (tuned_row_attention, "TILE=4", None, "give one too, like device='emulated:sm_80'")):
            for isolate in (False, True):
                with self.subTest(choice, isolate=isolate), self.assertRaisesRegex(ValueError, text):
                    attest.replay(fn, "sq=5,sk=5,d=8", autotune=choice, device=device, isolate=isolate, **words)
        with self.assertRaisesRegex(ValueError, "row_attention launch no autotuned kernel"):
            attest.configurations(row_attention, like="plain")

    def test_products_of_eight_bits(self):
        x, z = torch.randint(-128, 128, (32, 32), dtype=torch.int8), torch.zeros(32, 32, dtype=torch.int32)
        with attest.emulated_gpu():
            eight_bits[(1,)](x, z, TILE=32)
        self.assertTrue(torch.equal(z, x.int() @ x.int()))

    def test_an_instruction_that_is_not_carried_out(self):
        x, z = torch.ones(32, dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
        with attest.emulated_gpu(), self.assertRaises(attest.EmulationError) as caught:
            four_products[(1,)](x, z, TILE=32)
        self.assertRegex(str(caught.exception), r"kernel 'four_products' is not carried out as compiled for "
                         r"sm_80: PTX line \d+, column \d+: 'dp4a\.s32\.s32' is not carried out")

    def test_a_tensor_on_another_device(self):
        x = torch.zeros(8, device="meta")
        with attest.emulated_gpu(), self.assertRaisesRegex(
                ValueError, "argument 'x' lies on meta; .* hand tensors of the CPU over"):
            add[(1,)](x, torch.zeros(8), torch.zeros(8), 8, TILE=16)

    def test_an_array_without_extent(self):
        class Bare:
            dtype = np.dtype(np.float32)

            def data_ptr(self):
                return 0
        with attest.emulated_gpu(), self.assertRaisesRegex(ValueError, "argument 'z' has .* no extent"):
            add[(1,)](torch.zeros(8), torch.zeros(8), Bare(), 8, TILE=16)

    def test_a_function_on_an_emulated_device(self):
        words = {"like": "plain", "device": "emulated:sm_80", "claims": [], "dtypes": ["f32"]}
        attest.replay(row_attention, "sq=5,sk=5,d=8", **words)
        with self.assertRaisesRegex(AssertionError, "(?s)out of bounds: .*tl.load.*device='emulated:sm_80'"):
            attest.replay(row_attention_beyond, "sq=5,sk=5,d=8", isolate=False, **words)

    def test_a_module_that_asks_for_its_gpu_when_imported(self):
        with attest.emulated_gpu():
            from asks_at_import import attention
        words = {"like": "plain", "claims": [], "dtypes": ["f32"]}
        attest.replay(attention, "sq=5,sk=5,d=8", device="emulated:sm_80", **words)
        with self.assertRaisesRegex(ValueError, "0 active drivers"):  # the host has none
            attest.replay(attention, "sq=5,sk=5,d=8", **words)

    def test_campaigns_for_hopper(self):
        words = {"device": "emulated:sm_90", "dtypes": ["f16"], "numerics": "p_cast_to_input", "only": "reference_forward",
                 "jobs": 1, "cases": 4}
        with tempfile.TemporaryDirectory() as empty, mock.patch.dict(os.environ, TRITON_CACHE_DIR=empty):
            # Calls compile: that is none of the changes which calls must not make.
            report = attest.certify(flash_attention, claims=["causal", "lse"], **words)
        self.assertEqual(report.findings, [])
        self.assertGreater(report.certificate["kernels"][0]["checks"]["passed"], 0)
        problem = "b=1,hq=2,hkv=2,sq=70,sk=145,d=64,dtype=f16"
        own = {**words, "claims": ["cross_lengths"], "like": "plain", "problems": [problem]}
        self.assertEqual(attest.certify(tensor_attention, **own).findings, [])
        self.assertEqual([one["law"] for one in attest.certify(tensor_attention_beyond, **own).findings],
                         ["reference_forward"])
        q, k, v = (torch.randn(1, length, 2, 64, dtype=torch.float16) for length in (70, 145, 145))
        with attest.emulated_gpu("sm_90") as gpu:
            tensor_attention(q, k, v)
        for instruction in ("wgmma.mma_async", "mbarrier.try_wait", "cp.async.bulk.tensor"):
            self.assertIn(instruction, gpu.launches[0].ptx)

    def test_a_block_that_needs_more_than_there_is_refuses(self):
        with self.assertRaisesRegex(AssertionError, "(?s)refuse.*out of resource: shared memory"):
            attest.replay(flash_attention, "sq=5,sk=160,d=576,dtype=f32", device="emulated:sm_80", dtypes=["f32"],
                          claims=["causal", "lse", "cross_lengths"])

    def test_an_unknown_emulated_device(self):
        with self.assertRaisesRegex(ValueError, "'sm_100' is not emulated yet"):
            attest.replay(row_attention, "sq=5,sk=5,d=8", isolate=False, device="emulated:sm_100")

    def test_the_driver_before_is_restored(self):
        driver = triton.runtime.driver
        before, backend = driver._active, triton.backends.backends["nvidia"]
        x, y = torch.zeros(8), torch.zeros(8)
        with self.assertRaises(KeyError), attest.emulated_gpu() as outer:
            with attest.emulated_gpu() as inner:
                add[(1,)](x, x, y, 8, TILE=16)
            add[(1,)](x, x, y, 8, TILE=16)
            self.assertEqual((len(outer.launches), len(inner.launches)), (1, 1))
            raise KeyError
        self.assertIs(driver._active, before)
        self.assertIs(triton.backends.backends["nvidia"], backend)

    def test_a_kernel_that_is_kept_beyond_the_context(self):
        x, y = torch.zeros(8), torch.zeros(8)
        with attest.emulated_gpu():
            compiled = add[(1,)](x, x, y, 8, TILE=16)
        with mock.patch.object(triton.runtime.driver, "_active", mock.Mock()):
            with self.assertRaisesRegex(attest.EmulationError, "was compiled within attest.emulated_gpu"):
                compiled[(1, 1, 1)](x, x, y, 8, 16)


if __name__ == "__main__":
    unittest.main()
