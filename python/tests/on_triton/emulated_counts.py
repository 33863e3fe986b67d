"""Words of kernels in Triton beside their bounds: run by emulated_gpu_test.py in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

import torch
from triton_kernels import (flash, flash_backward, flash_of_large_tiles, given_gradients, gradients_by_torch,
                            gradients_of_another_scale, gradients_that_read_twice, plain_attention, row_attention,
                            tuned_flash_attention)

import attest
from attest import _command, _count

TREE = pathlib.Path(__file__).resolve().parents[3]
WILD = TREE / "docs" / "how-to" / "wild"
RECORDS = TREE / "certify" / "reproduce" / "records" / "triton_words.jsonl"
F16 = {"numerics": "p_cast_to_input", "best": False}


def totals(launches, kind):
    """Returns the words of a pass by tensor; none where none moved."""
    sums = {}
    for launch in launches:
        for tensor, words in launch[kind].items():
            sums[tensor] = sums.get(tensor, 0) + words
    return {tensor: words for tensor, words in sums.items() if words}


def backward_words(heads, heads_kv, rows, keys, columns, columns_v, tile):
    """Returns what triton_flash_backward.py reads and writes by tensor, in closed form."""
    of_queries, of_keys, group = -(-rows // tile), -(-keys // tile), heads // heads_kv
    queries = heads * rows * (1 + of_keys)  # they stay once, and pass by all tiles of keys
    passed = heads_kv * keys * (1 + of_queries * group)
    return ({"Q": queries * columns, "dO": queries * columns_v, "LSE": queries, "DELTA": heads * rows * of_keys,
             "O": heads * rows * columns_v, "K": passed * columns, "V": passed * columns_v},
            {"dQ": heads * rows * columns, "DELTA": heads * rows, "dK": heads_kv * keys * columns,
             "dV": heads_kv * keys * columns_v})


class Counts(unittest.TestCase):
    def test_a_count_beside_the_bound(self):
        line = "hq=2,hkv=1,sq=100,sk=130,d=32,dtype=f16,mask=causal_br"
        counted = attest.count(flash().attention, line, numerics="p_cast_to_input", best=False)
        (launch,) = counted["launches"]
        self.assertEqual(launch["read"], {"Q": 6400, "K": 4 * 130 * 32, "V": 4 * 130 * 32, "O": 0, "LSE": 0})
        self.assertEqual(counted["moved"], {"words": 2 * 6400 + 8 * 130 * 32 + 200,
                                            "bytes": 2 * (2 * 6400 + 8 * 130 * 32) + 4 * 200})
        self.assertEqual((launch["registers_by"], launch["local_bytes"]), ("ptxas", 0))
        self.assertEqual(counted["fast_bytes"], launch["shared_bytes"] + launch["registers"] * 128 * 4)
        beside = attest.count("flash2", line, fast_bytes=counted["fast_bytes"], best=False)
        self.assertEqual(counted["lower_bound"], beside["lower_of_every"])
        self.assertEqual(counted["ratio"], counted["moved"]["bytes"] / counted["lower_bound"]["bytes"])
        with mock.patch("attest._count._ptxas", lambda: None):
            _count._allotted.cache_clear()
            most = attest.count(flash().attention, line, numerics="p_cast_to_input", best=False)
            _count._allotted.cache_clear()
        self.assertEqual((most["registers_by"], most["launches"][0]["registers"]), ("target", 255))

    def test_words_on_record(self):
        # docs/how-to/wild/triton_words.py wrote them.
        lines = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
        of_tile = {line["direction"]: line for line in lines if (line["head_dim"], line["tile"]) == (64, 64)}
        recorded = of_tile["forward"]
        q, k, v, dout = (torch.zeros(1, recorded["seqlen"], 1, 64, dtype=torch.float16) for _ in range(4))
        with attest.emulated_gpu(recorded["target"]) as gpu:
            out, lse = flash().attention(q, k, v, tile=64)
            flash_backward().gradients(q, k, v, out, lse, dout, tile=64)
        for here, there in zip(gpu.launches, of_tile["forward"]["launches"] + of_tile["backward"]["launches"]):
            for field in "kernel", "read", "written", "moved_bytes", "shared_bytes", "threads":
                self.assertEqual(getattr(here, field), there[field])
        for line in lines:
            if line["direction"] == "backward":
                sizes = line["seqlen"], line["seqlen"], line["head_dim"], line["head_dim"], line["tile"]
                self.assertEqual(tuple(totals(line["launches"], kind) for kind in ("read", "written")),
                                 backward_words(1, 1, *sizes))

    def test_what_a_thread_spills_is_fast_memory(self):
        counted = attest.count(flash_of_large_tiles(flash()), "sq=512,d=128,dtype=f16", best=False,
                               numerics="p_cast_to_input")
        (launch,) = counted["launches"]
        self.assertGreater(launch["local_bytes"], 0)
        self.assertEqual(counted["fast_bytes"], launch["shared_bytes"]
                         + 128 * (launch["registers"] * 4 + launch["local_bytes"]))

    def test_gradients_beside_the_bound(self):
        line = "hq=4,hkv=2,sq=100,sk=130,d=40,dv=24,dtype=f16,mask=causal_br"
        counted = attest.count(flash_backward().attention, line, gradients=True, **F16)
        alone = attest.count(flash().attention, line, **F16)
        self.assertEqual([counted[key] for key in ("launches", "moved", "lower_bound", "problem")],
                         [alone[key] for key in ("launches", "moved", "lower_bound", "problem")])
        self.assertIsNone(alone["backward"])
        backward = counted["backward"]
        self.assertEqual([one["kernel"] for one in backward["launches"]], ["query_gradients", "key_gradients"])
        read, written = (totals(backward["launches"], kind) for kind in ("read", "written"))
        self.assertEqual((read, written), backward_words(4, 2, 100, 130, 40, 24, tile=32))
        words = sum(read.values()) + sum(written.values())
        of_rows = sum(of.get(tensor, 0) for of in (read, written) for tensor in ("LSE", "DELTA"))
        self.assertEqual(backward["moved"], {"words": words, "bytes": 2 * words + 2 * of_rows})
        self.assertEqual(backward["fast_bytes"], max(one["shared_bytes"] + one["registers"] * one["threads"] * 4
                                                     for one in backward["launches"]))
        beside = attest.count("two_pass", line, fast_bytes=backward["fast_bytes"], best=False)
        self.assertEqual(backward["lower_bound"], beside["lower_of_every"])
        self.assertEqual(backward["ratio"], backward["moved"]["bytes"] / backward["lower_bound"]["bytes"])

    def test_gradients_move_the_words_of_their_schedule(self):
        line = "sq=90,sk=70,d=32,dtype=f16"
        backward = attest.count(flash_backward().attention, line, numerics="p_cast_to_input", gradients=True)["backward"]
        schedule = attest.count("two_pass:bq=32,bk=32,cq=32,ck=32", line, fast_words=1 << 20, best=False)
        self.assertEqual(backward["moved"], schedule["counted"]["moved"])
        beside = attest.count("two_pass", line, fast_bytes=backward["fast_bytes"])
        self.assertEqual(backward["best_schedule"], beside["best_schedule"])

    def test_gradients_of_a_function_given(self):
        line = "sq=90,sk=70,d=32,dtype=f16"
        by_autograd = attest.count(flash_backward().attention, line, gradients=True, **F16)
        given = attest.count(flash().attention, line, backward=given_gradients, **F16)
        for key in "launches", "backward":
            self.assertEqual(given[key], by_autograd[key])
        twice = attest.count(flash().attention, line, backward=gradients_that_read_twice, **F16)["backward"]
        exact = backward_words(1, 1, 90, 70, 32, 32, tile=32)
        self.assertEqual(tuple(totals(given["backward"]["launches"], kind) for kind in ("read", "written")), exact)
        self.assertNotEqual(tuple(totals(twice["launches"], kind) for kind in ("read", "written")), exact)
        self.assertGreater(twice["ratio"], given["backward"]["ratio"])

    def test_a_count_of_each_configuration(self):
        line, read = "sq=40,sk=40,d=16,dtype=f16", {}
        for choice in attest.configurations(tuned_flash_attention):
            counted = attest.count(tuned_flash_attention, line, autotune=choice, **F16)
            self.assertEqual(counted["autotune"], choice)
            read[choice["flash"]["TILE"]] = counted["launches"][0]["read"]["K"]
        self.assertEqual(read, {16: 3 * 40 * 16, 32: 2 * 40 * 16})
        fewest = attest.count(tuned_flash_attention, line, **F16)
        self.assertEqual((fewest["autotune"], fewest["launches"][0]["read"]["K"]), (None, 2 * 40 * 16))
        with self.assertRaisesRegex(ValueError, "launched no autotuned kernel of it"):
            attest.count(flash().attention, line, autotune="TILE=16", **F16)
        with self.assertRaisesRegex(ValueError, "gradients, backward and autotune are for functions"):
            attest.count("flash2", line, autotune="TILE=16")

    def test_gradients_that_are_not_counted(self):
        line = "sq=20,d=16,dtype=f16"
        for error, words, fn, given in (
                (AssertionError, "(?s)is not counted, for it is refused.*dQ.*backward=gradients_of_another_scale",
                 flash().attention, {"backward": gradients_of_another_scale}),
                (ValueError, "the backward pass of attention launched no kernel in Triton",
                 flash().attention, {"backward": gradients_by_torch}),
                (TypeError, "returned out without grad_fn.*give backward=", flash().attention, {"gradients": True}),
                (ValueError, "gradients=True, but arrays of numpy", flash().attention, {"gradients": True, "like": "numpy"}),
                (ValueError, "gradients=False, and backward= is given", flash().attention,
                 {"gradients": False, "backward": given_gradients}),
                (TypeError, "backward is a int; give a function", flash().attention, {"backward": 3})):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                attest.count(fn, line, **F16, **given)

    def test_what_is_not_counted(self):
        with self.assertRaisesRegex(AssertionError, "(?s)is not counted, for it is refused.*attest.replay"):
            attest.count(flash().attention, "sq=100,sk=130,d=32,dtype=f16", best=False)
        with self.assertRaisesRegex(ValueError, "returns no lse"):
            attest.count(row_attention, "sq=4,d=8")
        with self.assertRaisesRegex(ValueError, "launched no kernel in Triton"):
            attest.count(plain_attention, "sq=4,d=8")
        with self.assertRaisesRegex(ValueError, "fast_words and fast_bytes are for schedules"):
            attest.count(row_attention, "sq=4,d=8", fast_bytes=100)

    def test_configurations_by_the_command(self):
        environment = {**os.environ, "TRITON_INTERPRET": "0", "ATTEST_PYTHON": sys.executable,
                       "PYTHONPATH": os.pathsep.join(sys.path)}
        tuned = f"{TREE}/python/tests/on_triton/triton_kernels.py:tuned_flash_attention"
        row = f"{TREE}/python/tests/on_triton/triton_kernels.py:tuned_row_attention"
        on = ["--device", "emulated:sm_80", "--dtypes"]
        certify = ["certify", row, "--like", "plain", *on, "f32", "--cases", "2", "--only", "reference_forward"]
        check = ["check", "--like", "plain", *on, "f32", "--problem", "sq=5,sk=5,d=8", "--kernel"]
        count = ["count", "--no-best", "--kernel", tuned, "--problem", "sq=40,d=16,dtype=f16", "--numerics", "p_cast_to_input"]
        for words, code, text in (
                ([*certify, "--autotune", "each"], 1,
                 r"(?s)tuned_row_attention\[one_row\.TILE=4\]  REFUSED.*tuned_row_attention\[one_row\.TILE=64\]  INCOMPLETE"),
                ([*check, row, "--autotune", "TILE=64"], 0, "PASSED"),
                ([*check, row + "[one_row.TILE=4]"], 1, "REFUSED"),
                ([*check, row, "--autotune", "each"], 2, r"has 2 kernels; choose one: .*\[one_row\.TILE=4\], "),
                ([*check, row + "[one_row.TILE=4]", "--autotune", "TILE=64"], 2, "names a configuration, too; give one"),
                ([*check, row, "--autotune", "TILE"], 2, "'TILE' is no name=value"),
                ([*check, f"{WILD}/triton_flash.py:attention", "--autotune", "each"], 2,
                 "--autotune each: .*launch no autotuned kernel"),
                ([*count, "--autotune", "TILE=16"], 0, r"(?s)autotuned to TILE=16.*  K +1,920 words read"),
                ([*count[:3], tuned + "[flash.TILE=16]", *count[4:]], 0, r"(?s)autotuned to flash\.TILE=16.*  K +1,920 words read"),
                ([*count, "--autotune", "each"], 0, r"(?s)flash\.TILE=16.*  K +1,920 words.*flash\.TILE=32.*  K +1,280 words")):
            with self.subTest(words):
                done = subprocess.run([_command._PROGRAM, *words], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertRegex(done.stdout + done.stderr, text)

    def test_a_count_by_the_command(self):
        words = [_command._PROGRAM, "count", "--no-best"]
        environment = {**os.environ, "TRITON_INTERPRET": "0", "ATTEST_PYTHON": sys.executable,
                       "PYTHONPATH": os.pathsep.join(sys.path)}
        given = {"--kernel": f"{WILD}/triton_flash.py:attention", "--problem": "sq=64,d=16,dtype=f16",
                 "--numerics": "p_cast_to_input"}
        both = {"--kernel": f"{WILD}/triton_flash_backward.py:attention", "--direction": "backward"}
        for more, code, text in (
                (given, 0, r"(?s)launch of flash, grid 1x1x1\n  Q +1,024 words read.*moved / lower bound: 1\.015"),
                ({**given, **both}, 0, r"(?s)launch of flash.*\nbackward pass\n\nlaunch of query_gradients.*"
                 r"launch of key_gradients.*\n  dK +0 words read +1,024 written"),
                ({**given, "--numerics": "f32"}, 1, "is not counted, for it is refused"),
                ({**given, "--claims": "causal"}, 2, "--claims is not for"),
                ({**given, "--direction": "loss_gradient"}, 2, "--direction loss_gradient are for kernels in C"),
                ({**given, "--problem": "sq=8,d=8,mask=random_50_1"}, 3, "not claimed: boolean mask")):
            with self.subTest(more):
                options = [word for pair in more.items() for word in pair]
                done = subprocess.run([*words, *options], env=environment, capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertRegex(done.stdout + done.stderr, text)


if __name__ == "__main__":
    unittest.main()
