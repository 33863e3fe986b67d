"""Holds the executor of PTX to what devices gave for the ten kernels of gpu/golden, on record in gpu/results."""

import base64
import copy
import functools
import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
from on_triton.golden_definitions import DEFINITIONS, allowed_ulps, moved_bytes

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN, RESULTS = ROOT / "gpu" / "golden", ROOT / "gpu" / "results"
TARGETS = ("sm_80", "sm_90")
NO_RECORD = "no device's record of these kernels is in gpu/results yet; `ci/on-device run --step triton` makes one"
sys.path.insert(0, str(GOLDEN))


def printed(*words):
    """Returns the records that a Python prints, by kernel; one that interprets no kernel."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-B", *words], capture_output=True, text=True,
                          env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)})
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return {row["kernel"]: row for row in map(json.loads, done.stdout.splitlines())}


@functools.lru_cache(maxsize=None)
def emulated(target):
    return printed(GOLDEN / "triton_golden.py", "emulated", target)


@functools.lru_cache(maxsize=None)
def launches():
    from golden_kernels import launches
    return launches()


def arrays(row):
    """Returns the outputs of a record; raises ValueError where their digests say otherwise."""
    found = {}
    for name, output in row["outputs"].items():
        raw = base64.b64decode(output["bits"])
        if hashlib.sha256(raw).hexdigest() != output["sha256"]:
            raise ValueError(f"the record is damaged: {name} of {row['kernel']}")
        found[name] = np.frombuffer(raw, output["dtype"]).reshape(output["shape"])
    return found


def wrong_results(recorded, made):
    """Lists what a record has otherwise: bits, or its definition's bound where both approximate."""
    name, there, here = recorded["kernel"], arrays(recorded), arrays(made)
    if recorded["approximations"] != made["approximations"]:
        return [f"{name} approximates by {recorded['approximations']}, here by {made['approximations']}"]
    if made["approximations"]:
        return DEFINITIONS[name](launches()[name].inputs, there)
    return [f"{name}: {key} has other bits" for key in here if there[key].tobytes() != here[key].tobytes()]


def records(folder):
    """Returns (where, results, bytes) of every kernel in every run on a device."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        run = {}
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if row["kind"] == "run":
                run = {}
            elif row["kind"] == "triton_results" and "outputs" in row:
                run[row["kernel"]] = [f"{path.name}: {row['kernel']}", row, {}]
                found.append(run[row["kernel"]])
            elif row["kind"] == "triton_bytes" and row.get("kernel") in run:
                run[row["kernel"]][2] = row
    return found


@unittest.skipIf(importlib.util.find_spec("triton") is None, "triton not installed")
class Golden(unittest.TestCase):
    def each_record(self, check):
        """Checks each record of what is compiled here; skips those of another PTX."""
        every = records(RESULTS)
        if not every:
            self.skipTest(NO_RECORD)
        for where, recorded, moved in every:
            with self.subTest(where):
                made = emulated(recorded["target"])[recorded["kernel"]]
                if recorded["ptx"] != made["ptx"]:
                    self.skipTest(f"recorded of another PTX, of Triton {recorded['triton']}; here is {made['triton']}")
                check(recorded, moved, made)

    def test_results_are_those_on_record(self):
        self.each_record(lambda recorded, _, made: self.assertEqual(wrong_results(recorded, made), []))

    def test_bytes_are_those_on_record(self):
        def check(_, moved, made):
            if "moved" not in moved:
                self.skipTest(f"no bytes on record: {moved.get('refused', 'not asked')}")
            self.assertEqual(moved["moved"], made["moved"])
        self.each_record(check)

    def test_kernels_compute_their_definitions(self):
        for target in TARGETS:
            self.assertEqual(list(emulated(target)), list(DEFINITIONS))
            for name, row in emulated(target).items():
                with self.subTest(name, target=target):
                    self.assertEqual(DEFINITIONS[name](launches()[name].inputs, arrays(row)), [])
                    self.assertEqual(row["moved"], moved_bytes(name, launches()[name]))
                    for opcode in row["approximations"]:
                        self.assertGreater(allowed_ulps(opcode), 0)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch not installed")
    def test_what_runs_on_a_device_gives_the_same_records(self):
        """Runs it on the emulated GPU, which answers for torch.cuda."""
        rows = printed("-c", "import attest, json, torch, triton_golden\n"
                       "with attest.emulated_gpu('sm_90'):\n"
                       "    for row in triton_golden.on_device(): print(json.dumps(row))")
        here = copy.deepcopy(emulated("sm_90"))
        for row in here.values():
            del row["moved"]
        self.assertEqual(rows, here)

    def falsified(self, row, name, place, bit):
        """Returns a record with one bit of an output's element flipped, and the digest of that."""
        other = copy.deepcopy(row)
        output = other["outputs"][name]
        found = arrays(row)[name].copy()
        as_bits = found.reshape(-1).view(f"u{found.itemsize}")
        as_bits[place] ^= as_bits.dtype.type(1 << bit)
        output["bits"] = base64.b64encode(found.tobytes()).decode()
        output["sha256"] = hashlib.sha256(found.tobytes()).hexdigest()
        return other

    def test_falsified_results_are_refused(self):
        exponent = {"float32": 23, "float16": 10}  # the lowest bit: twice or half of the number
        for kernel, row in emulated("sm_90").items():
            self.assertEqual(wrong_results(row, row), [])
            for name, output in row["outputs"].items():
                last = int(np.prod(output["shape"])) - 1
                with self.subTest(kernel, output=name):
                    bit = exponent[output["dtype"]] if row["approximations"] else 0
                    self.assertNotEqual(wrong_results(self.falsified(row, name, last, bit), row), [])
        row = emulated("sm_90")["powers"]
        self.assertEqual(wrong_results(self.falsified(row, "y", 500, 0), row), [])  # 1 ulp: a device may
        self.assertNotEqual(wrong_results(self.falsified(row, "y", 500, 2), row), [])  # 4 ulp

    def test_falsified_definitions_are_refused(self):
        """Holds definitions to outputs whose largest number is half as large, or a whole one is another."""
        for kernel, row in emulated("sm_90").items():
            for name, array in arrays(row).items():
                wrong = {key: one.copy() for key, one in arrays(row).items()}
                if array.dtype.kind == "f":
                    wrong[name].flat[np.argmax(np.where(np.isfinite(array), np.abs(array), 0))] /= 2
                else:
                    wrong[name].flat[array.size // 2] -= 1
                with self.subTest(kernel, output=name):
                    self.assertNotEqual(DEFINITIONS[kernel](launches()[kernel].inputs, wrong), [])

    def outcome(self, *rows):
        """Runs both tests of records on a file with these rows; returns (failures, reasons to skip) of each."""
        found = []
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ({"kind": "run"}, *rows)),
                                                       encoding="utf-8")
            for name in ("results", "bytes"):
                result = unittest.TestResult()
                with mock.patch.object(sys.modules[__name__], "RESULTS", pathlib.Path(folder)):
                    Golden(f"test_{name}_are_those_on_record").run(result)
                self.assertEqual(result.errors, [])
                found.append((len(result.failures), {reason for _, reason in result.skipped}))
        return found

    def test_falsified_records_fail(self):
        def results(row):
            return {"kind": "triton_results", **row}

        def moved(row, more=0):
            read, written = row["moved"].values()
            return {"kind": "triton_bytes", "kernel": row["kernel"],
                    "moved": {"read_bytes": read + more, "written_bytes": written}}

        refused = {"kind": "triton_results", "refused": "skipped: no CUDA device"}
        row, other = emulated("sm_90")["scanned"], emulated("sm_90")["totals"]
        flipped = self.falsified(row, "sums", 3, 0)
        self.assertEqual(self.outcome(), [(0, {NO_RECORD})] * 2)
        self.assertEqual(self.outcome(refused), [(0, {NO_RECORD})] * 2)
        self.assertEqual(self.outcome(results(row), results(other), moved(row), moved(other)), [(0, set())] * 2)
        self.assertEqual(self.outcome(results(flipped), results(other), moved(row), moved(other, 4)),
                         [(1, set()), (1, set())])
        self.assertEqual(self.outcome(results(flipped), {"kind": "run"}, results(row), moved(row)),
                         [(1, set()), (0, {"no bytes on record: not asked"})])
        self.assertEqual(self.outcome(results(row), {"kind": "triton_bytes", "kernel": "scanned", "refused": "locked"}),
                         [(0, set()), (0, {"no bytes on record: locked"})])
        _, (reason,) = self.outcome(results({**row, "ptx": "0"}), moved(row))[0]
        self.assertRegex(reason, r"^recorded of another PTX, of Triton 3\.")

    def test_a_damaged_record(self):
        row = copy.deepcopy(emulated("sm_90")["totals"])
        row["outputs"]["counts"]["sha256"] = "0"
        with self.assertRaisesRegex(ValueError, "the record is damaged: counts of totals"):
            wrong_results(row, row)


if __name__ == "__main__":
    unittest.main()
