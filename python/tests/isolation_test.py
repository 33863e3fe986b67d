"""Certifies functions in interpreters of their own: harm is a finding, and the campaign goes on."""

import contextlib
import importlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
from unittest import mock

import faulty_functions
import imported_once
import with_a_thread
from plain import gradients as plain_gradients

import attest
from attest import _place

SMALL = {"cases": 2, "shapes": "none", "dtypes": ["f32"], "only": "reference_forward", "jobs": 1}
TESTS = pathlib.Path(__file__).resolve().parent


def cloudpickle_is_there():
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        return False
    return True


class Isolation(unittest.TestCase):
    def test_a_right_function(self):
        report = attest.certify(faulty_functions.right, **SMALL)
        self.assertEqual((report.verdict, report.findings), ("law_holds", []), str(report))
        self.assertNotIn("not_seen", report.certificate["kernels"][0])
        apart = attest.certify(faulty_functions.right, **SMALL, isolate=False)
        self.assertIsNotNone(report.certificate["kernels"][0]["library_sha256"])
        self.assertIsNone(apart.certificate["kernels"][0]["library_sha256"])
        self.assertEqual(apart.certificate["kernels"][0]["worst"], report.certificate["kernels"][0]["worst"])

    def test_no_check(self):
        report = attest.certify(faulty_functions.right, **{**SMALL, "cases": 0})
        self.assertEqual(report.verdict, "unsupported")
        self.assertIn("NO CHECK RAN\n", str(report))

    def test_an_import_that_prints(self):
        """It is the module's own affair, and no call's."""
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(sys, "path", [folder, *sys.path]), \
                contextlib.redirect_stdout(io.StringIO()):
            pathlib.Path(folder, "talking.py").write_text(textwrap.dedent("""\
                from plain.attention import attention
                print("imported")
                def right(q, k, v):
                    return attention(q, k, v)
                """))
            report = attest.certify(importlib.import_module("talking").right, **SMALL)
        self.assertEqual((report.verdict, report.findings), ("law_holds", []), str(report))

    def test_gradients(self):
        words = {**SMALL, "backward": plain_gradients.backward, "only": "reference_backward"}
        report = attest.certify(plain_gradients.attention, **words)
        self.assertEqual((report.verdict, report.findings), ("law_holds", []), str(report))
        self.assertIn("dK", report.certificate["kernels"][0]["worst"])
        report = attest.certify(plain_gradients.attention,
                                **{**words, "backward": plain_gradients.dq_without_scale})
        line = report.findings[0]["reproduce"]
        with self.assertRaisesRegex(AssertionError, "dQ lacks the softmax scale"):
            eval(line, {"attest": attest, **vars(plain_gradients)})
        with self.assertRaisesRegex(ValueError, "returned 2 arrays; it must be three arrays"):
            attest.certify(plain_gradients.attention, **{**words, "backward": faulty_functions.two_gradients})

    def test_every_harm_is_a_finding(self):
        harms = (
                ("crashes", "crash: segmentation fault at 0x8 in forward", {}),
                ("ends_the_process", "exit: the process was ended with status 3 in forward", {}),
                ("exits", "SystemExit: enough", {}),
                ("hangs", "hang: forward did not return within 1 s", {"timeout": 1}),
                ("allocates", "MemoryError", {"memory_limit": 2048}),
                ("prints", "printed: 6 bytes, beginning with 'hello' in forward", {}),
                ("writes_into_v", "input_written: V was written in forward", {}),
                ("reads_beyond_v", "out_of_bounds: V: read ", {}),
                ("changes_the_environment", "environment: variables were changed: ATTEST_TEST", {}),
                ("starts_a_process", "fork: a process was started in forward", {}))
        # Outside nightly those that Python has a say in, for time; libraries do each of them in ci/test.
        for name, words, limits in harms if "ATTEST_NIGHTLY" in os.environ else harms[:3]:
            with self.subTest(name):
                fn = getattr(faulty_functions, name)
                with self.assertRaises(AssertionError) as raised:
                    attest.replay(fn, "sq=7,sk=9,d=8", dtypes=["f32"], claims=["cross_lengths"], **limits)
                self.assertIn(words, str(raised.exception))

    def test_a_campaign_goes_on_after_a_crash(self):
        report = attest.certify(faulty_functions.crashes, **{**SMALL, "cases": 4})
        self.assertEqual(report.verdict, "crashed")
        self.assertGreater(report.certificate["kernels"][0]["cases"], 2)
        with self.assertRaises(AssertionError) as raised:
            report.raise_if_refused()
        message = str(raised.exception)
        with self.assertRaises(AssertionError) as again:
            eval(message.splitlines()[-1], {"attest": attest, **vars(faulty_functions)})
        self.assertEqual(str(again.exception), message)

    def test_one_import_for_every_process(self):
        with tempfile.TemporaryDirectory() as folder:
            imports = pathlib.Path(folder) / "imports"
            with mock.patch.dict(os.environ, {"ATTEST_IMPORTS": str(imports)}):
                report = attest.certify(imported_once.wrong_in_the_long_run, **{**SMALL, "cases": 100})
                self.assertEqual(report.verdict, "law_holds", str(report))
                self.assertGreater(report.certificate["kernels"][0]["checks"]["made"], 99)
                self.assertEqual(len(imports.read_text().split()), 2)  # the claims are asked in one of its own
        report = attest.certify(imported_once.wrong_from_the_12th_call_on, **{**SMALL, "cases": 40})
        self.assertIn("state: check 11 of this case in one process fails", report.findings[0]["message"])
        self.shown_again(report, "repeat=11, ")
        report = attest.certify(imported_once.keeps_the_first_number_of_keys, **{**SMALL, "cases": 100})
        self.assertIn("state: fails after another check in one process", report.findings[0]["message"])
        self.shown_again(report, "after=['b=1,")

    def shown_again(self, report, words):
        """The line of a finding of state shows it, needs what it says its process did before, and says that again."""
        line = report.findings[0]["reproduce"]
        self.assertIn(words, line)
        with self.assertRaises(AssertionError) as raised:
            eval(line, {"attest": attest, **vars(imported_once)})
        self.assertIn(words, str(raised.exception).splitlines()[-1])
        without = re.sub(r"repeat=\d+, |after=\[.*?\], ", "", line)
        self.assertNotEqual(without, line)
        eval(without, {"attest": attest, **vars(imported_once)})

    def test_a_thread_of_an_import(self):
        report = attest.certify(with_a_thread.by_its_thread, **SMALL)
        self.assertEqual((report.verdict, report.findings), ("law_holds", []), str(report))

    def test_variables_name_functions_and_conventions(self):
        report = attest.certify(faulty_functions.held, like=faulty_functions.NUMPY, **SMALL)
        line = report.findings[0]["reproduce"]
        self.assertRegex(line, r"^attest\.replay\(held, .* like=NUMPY, ")
        with self.assertRaisesRegex(AssertionError, "crash: segmentation fault"):
            eval(line, {"attest": attest, **vars(faulty_functions)})

    def test_files_of_functions(self):
        own = str(TESTS / "faulty_functions.py")
        inside = {"faulty_functions.inside": types.ModuleType("inside")}  # has no file of its own
        with mock.patch.dict(sys.modules, inside):
            for word, file in (("faulty_functions:right", own), (f"{own}:right", own), ("sys:exit", ""),
                               ("faulty_functions.inside:f", own), ("pickled:function", "")):
                self.assertEqual(_place.file_of(word), file, word)

    def test_a_function_of_a_notebook(self):
        def inside(q, k, v):
            return faulty_functions.right(q, k, v)

        if cloudpickle_is_there():
            self.assertEqual(attest.certify(inside, **SMALL).verdict, "law_holds")
        with self.assertRaisesRegex(ValueError, "define it at the top of a module, install cloudpickle"):
            sys.modules["cloudpickle"], held = None, sys.modules.get("cloudpickle")
            try:
                attest.certify(inside, **SMALL)
            finally:
                del sys.modules["cloudpickle"]
                if held is not None:
                    sys.modules["cloudpickle"] = held

    def script(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "script.py"
            path.write_text(textwrap.dedent("""
                import attest
                from faulty_functions import right
                def mine(q, k, v):
                    return right(q, k, v)
                """) + text)
            return subprocess.run([sys.executable, "-B", path], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})

    def test_a_script(self):
        call = f"attest.certify(mine, **{SMALL})"
        guarded = self.script(f"if __name__ == '__main__':\n  print({call}.verdict)\n")
        self.assertEqual(guarded.stdout, "law_holds\n", guarded.stderr)
        unguarded = self.script(call + "\n")
        self.assertIn("put the call under `if __name__ ==", unguarded.stderr)
        self.assertIn("ValueError", unguarded.stderr)

    def test_bad_use(self):
        for options, words in (({"timeout": 0}, "timeout=0 must be a whole number from 1"),
                               ({"device": "cuda", "like": "numpy"}, "^device='cuda', but arrays of numpy"),
                               ({"memory_limit": -1}, "memory_limit=-1 must be a whole number"),
                               ({"like": "spda"}, "like is 'spda'; it must be one of plain, ")):
            with self.assertRaisesRegex(ValueError, words):
                attest.certify(faulty_functions.right, **SMALL, **options)
        with self.assertRaisesRegex(ValueError, "faulty_functions.py(?s:.*)ZeroDivisionError: division"):
            attest.certify(faulty_functions.divides_by_zero, **SMALL)


class Command(unittest.TestCase):
    def run_command(self, *words, **environment):
        program = pathlib.Path(attest.__file__).parent / "bin" / "attest"
        return subprocess.run([program, *words], capture_output=True, text=True, cwd=TESTS,
                              env={**os.environ, "ATTEST_PYTHON": sys.executable, **environment})

    def test_functions_by_name(self):
        campaign = ("--cases", "2", "--dtypes", "f32", "--only", "reference_forward", "--jobs", "1")
        right = self.run_command("certify", "faulty_functions:right", *campaign)
        self.assertEqual(right.returncode, 0, right.stdout + right.stderr)
        self.assertIn("faulty_functions:right  LAW HOLDS", right.stdout)
        case = ("--problem", "sq=3,sk=5,d=4", "--law", "reference_forward")
        checked = self.run_command("check", "--kernel", "faulty_functions.py:right", *case)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        held = self.run_command("check", "--kernel", "faulty_functions:held", "--like",
                                "faulty_functions:NUMPY", *case)
        self.assertEqual(held.returncode, 0, held.stdout + held.stderr)
        crashed = self.run_command("certify", "faulty_functions:crashes", *campaign)
        self.assertEqual(crashed.returncode, 4, crashed.stdout + crashed.stderr)
        line = crashed.stdout.split("reproduce: attest ")[1].splitlines()[0]
        self.assertIn("--kernel faulty_functions:crashes", line)
        self.assertIn("--dtypes f32", line)

    def test_a_journal_is_of_one_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file, journal, out = (pathlib.Path(folder) / name for name in ("mine.py", "journal.jsonl", "out.json"))
            words = ("certify", f"{file}:right", "--cases", "1", "--dtypes", "f32", "--only", "ones", "--jobs", "1",
                     "--resume", journal, "--out", out)
            file.write_text("from faulty_functions import right\n")
            first, again = (self.run_command(*words) for _ in range(2))
            self.assertEqual((first.returncode, again.returncode), (0, 0), first.stderr + again.stderr)
            content = json.loads(out.read_text())["kernels"][0]["library_sha256"]
            self.assertIn(f"SHA-256 of the file      {content}", again.stdout)
            file.write_text("from faulty_functions import right  # is another\n")
            other = self.run_command(*words)
            self.assertEqual(other.returncode, 2, other.stdout)
            self.assertIn("another build of the file of", other.stderr)
            shown = self.run_command("report", out)
            self.assertIn(f"SHA-256 of the file      {content}", shown.stdout)
            code = file.read_text()
            over = self.run_command("certify", "mine:right", "--dtypes", "f32", "--out", file,
                                    PYTHONPATH=os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]))
            self.assertEqual(over.returncode, 2, over.stdout)
            self.assertIn("name the same file", over.stderr)
            self.assertEqual(file.read_text(), code)
        nowhere = self.run_command("certify", "time:sleep", "--resume", "journal.jsonl")
        self.assertEqual(nowhere.returncode, 2, nowhere.stdout)
        self.assertFalse((TESTS / "journal.jsonl").exists())

    def test_a_file_that_is_written_again(self):
        with tempfile.TemporaryDirectory() as folder:
            file, journal = (pathlib.Path(folder) / name for name in ("mine.py", "journal.jsonl"))
            file.write_text(textwrap.dedent("""
                import os, time
                import faulty_functions
                def right(q, k, v):
                    os.utime(__file__, ns=(time.time_ns(), time.time_ns()))
                    return faulty_functions.right(q, k, v)
                """))
            ended = self.run_command("certify", f"{file}:right", "--cases", "3", "--dtypes", "f32", "--only", "ones",
                                     "--jobs", "1", "--resume", journal)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended.stderr)
            self.assertIn("was written again while it was certified", ended.stderr)
            self.assertNotIn('"event":"check"', journal.read_text())

    def test_gradients(self):
        options = ("--dtypes", "f32", "--law", "reference_backward", "--problem", plain_gradients.GROUPED)
        for name, code in (("backward", 0), ("dq_without_scale", 1)):
            done = self.run_command("check", "--kernel", "plain.gradients:attention", "--backward",
                                    f"plain/gradients.py:{name}", *options)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_bad_words(self):
        case = ("--problem", "sq=3,d=4")
        for word, more, words in (
                ("nowhere:right", (), "ModuleNotFoundError: No module named 'nowhere'"),
                ("nowhere.py:right", (), "there is no file nowhere.py"),
                ("faulty_functions:wrong", (), "faulty_functions has no function 'wrong'"),
                ("faulty_functions:LONG", (), "fn is a int; give a function"),
                ("faulty_functions:right", ("--like", "spda"), "like is 'spda'; it must be one of"),
                ("faulty_functions:right", ("--device", "cuda"), "arrays of numpy lie on the host"),
                ("faulty_functions:right", ("--numerics", "exact"), "unknown preset 'exact'"),
                ("cpu/flash2", ("--like", "sdpa"), "'cpu/flash2' is no function in Python")):
            with self.subTest(word + " ".join(more)):
                done = self.run_command("check", "--kernel", word, *case, *more)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(words, done.stderr)
        absent = self.run_command("check", "--kernel", "a:b", *case, ATTEST_PYTHON="/nowhere/python")
        self.assertIn("ATTEST_PYTHON: '/nowhere/python' is no program", absent.stderr)


if __name__ == "__main__":
    unittest.main()
