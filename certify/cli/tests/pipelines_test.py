#!/usr/bin/env python3
"""Checks what a CI system asks of the command: known failures, early ends, estimates, annotations, and
certificates that are tied to their files.

usage: pipelines_test.py ATTEST LIBRARY
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ATTEST, LIBRARY = map(os.path.abspath, sys.argv[1:3])
BROKEN = ["broken/dv_halved", "--only", "reference_backward", "--cases", "4"]
GOOD = ["cpu/standard", "--only", "ones", "--cases", "4"]


class Pipelines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def attest(self, *words, code=0, **environment):
        done = subprocess.run([ATTEST, *words], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=250, check=False,
                              env={**os.environ, "NO_COLOR": "1", **environment})
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout} {done.stderr}")
        return done

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def test_no_file_is_lost(self):
        self.write("src.cu", "a kernel")
        os.symlink("ghost.html", os.path.join(self.folder, "link.html"))
        for words in (["--source", "src.cu:1", "--out", "./src.cu"], ["--html", "ghost.html", "--junit", "link.html"],
                      ["--html", "./a.html", "--out", "a.html"]):
            done = self.attest("certify", *GOOD, *words, code=2)
            self.assertIn("name the same file", done.stderr)
            self.assertNotIn("earlier run", done.stderr)
        self.assertEqual(self.read("src.cu"), "a kernel")
        with open(LIBRARY, "rb") as file:
            before = file.read()
        shutil.copy(LIBRARY, os.path.join(self.folder, "lib.so"))
        refused = self.attest("certify", *GOOD, "--out", "lib.so", code=2).stderr
        self.assertIn("it is a library or program", refused)
        self.assertNotIn("earlier run", refused)
        with open(os.path.join(self.folder, "lib.so"), "rb") as file:
            self.assertEqual(file.read(), before)

    def test_words_of_the_code(self):
        tables = []
        for isolation in ([], ["--isolate"]):
            done = self.attest("certify", "cpu/flash2", "--cases", "1", "--verbose", "--out", "words.json", *isolation, code=3)
            self.assertIn("the code as it ran on one thread: ", done.stdout)
            kernel = json.loads(self.read("words.json"))["kernels"][0]
            tables.append([(row["problem"], row["of_code"], row["ratio"]) for part in ("io", "io_backward")
                           for row in kernel[part]["table"]])
        self.assertEqual(tables[0], tables[1])
        for problem, of_code, ratio in tables[0]:
            with self.subTest(problem):
                self.assertEqual(of_code["read"] + of_code["written"], of_code["moved"])
                self.assertAlmostEqual(ratio, of_code["moved"] / of_code["lower"]["words"])
                self.assertLess(ratio, 2)  # its schedule's reach 21

    def test_known_failures(self):
        self.write("known.txt", "broken/dv_halved reference_backward  # issue 1\n"
                                "cpu/standard reference_backward\nbroken/dv_halved ones\n")
        done = self.attest("certify", *BROKEN, "cpu/standard", "--known-failures", "known.txt", "--out", "c.json",
                           "--junit", "j.xml", "--html", "r.html")
        self.assertIn("known failure: listed, does not fail the run", done.stdout)
        self.assertIn("known failure: cpu/standard reference_backward (known.txt:2) did not occur", done.stdout)
        self.assertIn("known failures: 1 of 3 occur", done.stdout)
        found = json.loads(self.read("c.json"))
        self.assertEqual([one["outcome"] for one in found["known_failures"]], ["occurs", "gone", "not_looked_for"])
        self.assertEqual(found["kernels"][0]["verdict"], "violated")
        self.assertTrue(found["kernels"][0]["findings"][0]["known"])
        self.assertEqual(found["exit_code"], 0)
        self.assertIn('failures="0"', self.read("j.xml"))
        self.assertIn("known failure: outside the proved bound", self.read("j.xml"))
        self.assertIn("Known failures alone", self.read("r.html"))
        self.assertIn("known failure: listed", self.attest("report", "c.json").stdout)
        self.write("known.txt", "broken/dv_halved reference_backward\nbroken/dv_halve ones\n")
        done = self.attest("certify", *BROKEN, "--known-failures", "known.txt")
        self.assertIn("known failure: broken/dv_halve ones (known.txt:2) names no kernel of this run", done.stdout)
        self.assertIn("known failures: 1 of 2 occur", done.stdout)
        self.write("changed.json", self.read("c.json").replace('"exit_code": 0', '"exit_code": 1'))
        for words in (["changed.json", "--html", "of_changed.html"], ["c.json", "changed.json"]):
            refused = self.attest("report", *words, code=2)
            self.assertIn("certificate 'changed.json' was changed after it was made", refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "of_changed.html")))
        unsealed = json.loads(self.read("c.json"))  # as older versions wrote it
        del unsealed["sha256"]
        self.write("unsealed.json", json.dumps(unsealed))
        self.assertIn("has no SHA-256 of its own", self.attest("report", "unsealed.json").stderr)
        self.attest("certify", *BROKEN, code=1)
        self.write("known.txt", "broken/dv_halved gradient_identity\n")
        words = ["certify", "broken/dv_halved", "--cases", "2", "--shapes", "none", "--known-failures", "known.txt"]
        done = self.attest(*words, "--markdown", "m.md", code=1)
        self.assertIn("gradient_identity (known.txt:1) occurs as part of reference_backward, which is not listed; "
                      "its line is: broken/dv_halved reference_backward\n", done.stdout)
        self.assertIn("gradient\\_identity: occurs as part of reference\\_backward, which is not listed", self.read("m.md"))
        self.write("known.txt", "broken/dv_halved gradient_identity\nbroken/dv_halved reference_backward\n")
        done = self.attest(*words, code=3)  # so few cases leave gaps
        self.assertNotIn("not listed", done.stdout)
        self.assertIn("incomplete: claimed, never exercised: ", done.stdout)
        self.write("known.txt", "broken/dv_halved reference_backwards\n")
        refused = self.attest("certify", *BROKEN, "--known-failures", "known.txt", code=2)
        self.assertIn("known.txt:1: ", refused.stderr)
        self.assertIn("reference_backward", refused.stderr)

    def test_known_failures_of_a_library(self):
        shutil.copy(LIBRARY, os.path.join(self.folder, "libmine.so"))
        self.write("known.txt", "./libmine.so ones\n")
        refused = self.attest("certify", "./libmine.so", "--cases", "2", "--known-failures", "known.txt", code=2)
        self.assertIn("known.txt:1: './libmine.so' is a file; write the kernel, as in './libmine.so:", refused.stderr)

    def test_tensors_of_an_earlier_run(self):
        """Tensors of what fails no longer go; those of other kernels, and other files, stay."""
        kept = ["broken-dv_halved.notes.safetensors", "cpu-standard.ones.safetensors", "readme.txt"]
        old = ["broken-dv_halved.ones.safetensors", "broken-dv_halved.repeat.safetensors",
               "broken-dv_halved.repeat.2.safetensors"]
        os.mkdir(os.path.join(self.folder, "failures"))
        for name in kept + old:
            self.write(os.path.join("failures", name), "earlier")
        self.attest("certify", *BROKEN, "--failures", "failures", code=1)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "failures"))),
                         sorted([*kept, "broken-dv_halved.reference_backward.safetensors"]))

    def test_failed_first(self):
        words = ["broken/dv_halved", "--cases", "2", "--jobs", "1"]
        self.attest("certify", *words, "--resume", "last.jsonl", "--out", "usual.json", code=1)
        self.attest("certify", *words, "--resume", "now.jsonl", "--failed-first", "last.jsonl", "--out",
                    "first.json", code=1)

        def checks(name):
            lines = [json.loads(line) for line in self.read(name).splitlines()]
            return [one["verdict"] for one in lines if one["event"] == "check"]

        self.assertGreater(checks("last.jsonl").index("violated"), 0)
        self.assertEqual(checks("now.jsonl").index("violated"), 0)
        self.assertEqual(*({**json.loads(self.read(name)), "timings": 0, "sha256": 0}
                           for name in ("usual.json", "first.json")))
        none = self.attest("certify", *GOOD, "--failed-first", "none.jsonl")
        self.assertIn("there is no 'none.jsonl'; checks run in their order", none.stderr)
        before = self.read("usual.json")
        damaged = self.attest("certify", *GOOD, "--failed-first", "usual.json")
        self.assertIn("'usual.json' is no journal", damaged.stderr)
        self.assertIn("; checks run in their order", damaged.stderr)
        refused = self.attest("certify", *GOOD, "--problems", "absent.txt", "--out", "first.json", "--resume",
                              "not_begun.jsonl", code=2)
        self.assertIn("'first.json' is of an earlier run, and left as it is", refused.stderr)
        self.assertEqual((self.read("usual.json"), bool(self.read("first.json"))), (before, True))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "not_begun.jsonl")))

    def test_fail_fast(self):
        words = ["broken/dv_halved", "cpu/standard", "--only", "reference_backward", "--cases", "2"]
        done = self.attest("certify", *words, "--fail-fast", "--json", code=1)
        first, second = json.loads(done.stdout)["kernels"]
        self.assertRegex(first["incomplete"][0], r"ended by --fail-fast after \d+ of \d\d+ checks")
        self.assertEqual(second["checks"]["made"], 0)
        self.write("known.txt", "broken/dv_halved reference_backward\n")
        self.attest("certify", *words, "--fail-fast", "--known-failures", "known.txt")
        # Not the laws that fail of its cause either.
        self.attest("certify", "broken/dv_halved", "--cases", "4", "--shapes", "none", "--fail-fast",
                    "--known-failures", "known.txt", code=3)

    def test_max_time(self):
        done = self.attest("certify", "cpu/standard", "--tier", "full", "--max-time", "0.3s", code=3)
        self.assertRegex(done.stdout, r"ended by --max-time after \d+ of \d+ checks")
        done = self.attest("certify", *GOOD[:-1], "0", "--markdown", "m.md", "--out", "c.json", code=3)
        self.assertIn("cpu/standard  NOTHING PROVEN (no check ran)  (0 cases,", done.stdout)
        self.assertIn("| cpu/standard | **no check ran** |", self.read("m.md"))
        self.assertIn("cpu/standard  no check ran", self.attest("report", "c.json").stdout)
        self.attest("certify", *GOOD, "--max-time", "1.5h")
        for wrong in ("", "0", "-1", "soon", "5x", "nan", "1e9d"):
            refused = self.attest("certify", *GOOD, f"--max-time={wrong}", code=2)
            self.assertIn("--max-time", refused.stderr)

    def test_environment(self):
        for wrong in ("", "foo", "0", "-2", "2x", "1.5", "4,", "99999999999"):
            refused = self.attest("certify", *GOOD, code=2, OMP_NUM_THREADS=wrong)
            self.assertIn(f"OMP_NUM_THREADS is '{wrong}', which is no number of threads", refused.stderr)
        for good in ("2", "2,1", "1 "):
            self.attest("certify", *GOOD, OMP_NUM_THREADS=good)

    def test_shared_memory_that_cannot_be_written(self):
        read_only = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro none /dev/shm && exec \"$0\" --version", ATTEST]
        if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("mounting is not allowed here")
        done = subprocess.run(read_only, capture_output=True, text=True, check=False)
        if "GNU" not in self.attest("--version").stdout:
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("nothing can be written in /dev/shm", done.stderr)
            page, = re.findall(r"docs/[\w/-]+\.md", done.stderr)
            with open(os.path.join(os.path.dirname(__file__), "../../..", page), encoding="utf-8") as text:
                self.assertIn("**A writable /dev/shm**", text.read())

    def test_estimate(self):
        done = self.attest("certify", *GOOD, "broken/dv_halved", "--estimate", "--jobs", "2")
        self.assertRegex(done.stdout, r"cpu/standard  about \S+ .*\(4 checks on 4 cases, 2 at a time; a sample took")
        self.assertRegex(done.stdout, r"2 kernels: (about|below)")
        told = json.loads(self.attest("certify", *GOOD, "--estimate", "--json", "--shard", "1/2").stdout)
        self.assertEqual((told["schema"], told["shard"]), ("attest-estimate-1", "1/2"))
        refused = self.attest("certify", *GOOD, "--estimate", "--out", "c.json", code=2)
        self.assertIn("--estimate and --out together", refused.stderr)

    def test_merge_takes_options(self):
        """Takes the options of the worker processes from the shards: nobody names them twice."""
        for part in "12":
            self.attest("certify", LIBRARY, "--only", "ones", "--cases", "4", "--timeout", "7", "--memory-limit", "2048",
                        "--shard", f"{part}/2", "--out", f"{part}.json")
        self.attest("certify", "--merge", "1.json", "2.json", "--out", "c.json")
        self.attest("certify", "--merge", "1.json", "2.json", "--timeout", "7")
        whole = json.loads(self.read("2.json"))
        del whole["sha256"]
        whole["journal"]["campaign"]["kernels"][0]["isolation"] = " --tier full"
        self.write("2.json", json.dumps(whole))
        self.attest("certify", "--merge", "1.json", "2.json", code=2)

    def test_where_it_prints(self):
        """Refuses the file that the output goes to, and keeps it."""
        for option in ("--out", "--junit", "--markdown", "--resume"):
            printed = os.path.join(self.folder, "ci.log")
            with open(printed, "wb") as log:
                done = subprocess.run([ATTEST, "certify", *GOOD, option, "/dev/stdout"], stdout=log,
                                      stderr=subprocess.PIPE, text=True, cwd=self.folder)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn("cannot write '/dev/stdout': the standard output or error goes there", done.stderr)
            self.assertNotIn("of an earlier run", done.stderr)
            self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("ci.log")], ["ci.log"])

    def test_remarks(self):
        done = self.attest("certify", *BROKEN, "--github", "--sarif", "f.sarif", "--markdown", "m.md",
                           "--source", "src/mine.cu:7", "--out", "c.json", code=1)
        line = next(line for line in done.stdout.splitlines() if line.startswith("::"))
        self.assertRegex(line, r"^::error file=src/mine.cu,line=7,title=broken/dv_halved reference_backward::outside")
        self.assertIn("%0Areproduce: attest check --kernel broken/dv_halved", line)
        log = json.loads(self.read("f.sarif"))
        place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), ("src/mine.cu", 7))
        self.assertIn("| broken/dv\\_halved | **refused** |", self.read("m.md"))
        self.attest("report", "c.json", "--sarif", "again.sarif", "--source", "src/mine.cu:7")
        self.assertEqual(self.read("again.sarif"), self.read("f.sarif"))
        for wrong in (["--github", "--json"], ["--source", ":7"], ["--sarif", "x", "--markdown", "x"]):
            self.attest("certify", *GOOD, *wrong, code=2)
        self.attest("report", "c.json", "c.json", "--github", code=2)

    def test_step_summary(self):
        """Commands of one step of GitHub Actions add to one file; any other is written anew."""
        self.write("summary.md", "of an earlier command")
        for name, law in (("summary.md", "ones"), ("./summary.md", "repeat"), ("other.md", "ones"), ("other.md", "repeat")):
            self.attest("certify", "cpu/standard", "--only", law, "--cases", "2", "--markdown", name, "--out", f"{law}.json",
                        GITHUB_STEP_SUMMARY=os.path.join(self.folder, "summary.md"))
        summary, last = self.read("summary.md"), self.read("other.md")
        self.assertTrue(summary.startswith("of an earlier command\n\n"), summary)
        self.assertEqual(summary.count("cpu/standard"), 2 * last.count("cpu/standard"), summary)
        self.assertTrue(summary.endswith("\n" + last), summary)
        self.attest("report", "ones.json", "--markdown", "summary.md", GITHUB_STEP_SUMMARY="")
        self.assertEqual(self.read("summary.md").count("cpu/standard"), last.count("cpu/standard"))

    def test_a_python_without_the_package(self):
        self.write("python", f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
        os.chmod(os.path.join(self.folder, "python"), 0o755)
        self.write("mine.py", "def f(q, k, v):\n    return q\n")
        for words in (["certify", "mine.py:f"], ["certify", "mine.py:f", "--autotune", "each"],
                      ["count", "--kernel", "mine.py:f", "--problem", "sq=4,d=4"]):
            refused = self.attest(*words, code=2, ATTEST_PYTHON=os.path.join(self.folder, "python"))
            self.assertIn("needs the Python package attest (docs/how-to/install.md)", refused.stderr)

    def test_verify(self):
        library = os.path.join(self.folder, "libmine.so")
        shutil.copy(LIBRARY, library)
        words = ["certify", "./libmine.so", "--only", "ones", "--cases", "2", "--out", "c.json"]
        printed = self.attest(*words, SOURCE_DATE_EPOCH="1700000000").stdout
        digest = subprocess.run(["sha256sum", library], stdout=subprocess.PIPE, text=True,
                                check=True).stdout.split()[0]
        self.assertIn(f"SHA-256 of the file      {digest}", printed)
        done = self.attest("verify", "c.json", library, code=3)
        self.assertIn("2023-11-14T22:13:20Z", done.stdout)
        self.assertIn(digest, done.stdout)
        self.assertIn("MATCHES, BUT NOT CERTIFIED", done.stdout)
        shutil.copy(library, os.path.join(self.folder, "kept.so"))
        with open(library, "ab") as file:
            file.write(b"another build")
        self.assertIn("DOES NOT MATCH", self.attest("verify", "c.json", library, code=1).stdout)
        told = json.loads(self.attest("verify", "c.json", "kept.so", "--json", code=3).stdout)
        self.assertEqual(told["files"][0]["kernels"], [told["kernels"][0]["kernel"]])
        self.write("edited.json", re.sub('"law_holds"', '"certified"', self.read("c.json")))
        edited = self.attest("verify", "edited.json", "kept.so", code=1)
        self.assertIn("it was changed after it was made", edited.stdout)
        self.write("indented.json", json.dumps(json.loads(self.read("c.json"))))
        self.attest("verify", "indented.json", "kept.so", code=3)
        merged = json.loads(self.read("c.json"))
        merged["host"].update(processor="A", processors=["A", "B", "C"], threads=7)
        self.write("merged.json", json.dumps(merged))
        self.assertIn("A, 7 threads; shards on B, C too\n", self.attest("verify", "merged.json", code=1).stdout)
        for wrong in (["absent.json"], ["c.json", "absent.so"], ["kept.so"], []):
            self.attest("verify", *wrong, code=2)

    def test_a_certificate_of_the_program(self):
        self.attest("certify", *GOOD, "--out", "c.json")
        self.assertIn("cpu/standard", self.attest("verify", "c.json", ATTEST, code=3).stdout)
        self.assertIn("WHOLE, BUT NOT CERTIFIED", self.attest("verify", "c.json", code=3).stdout)
        whole = json.loads(self.read("c.json"))
        del whole["sha256"]
        self.write("unsealed.json", json.dumps(whole))
        refused = self.attest("verify", "unsealed.json", ATTEST, code=2)
        self.assertIn("certificate: has no SHA-256 of its own", refused.stderr)
        self.attest("verify", "c.json", LIBRARY, code=1)

    def test_dates_that_are_none(self):
        refused = self.attest("certify", *GOOD, code=2, SOURCE_DATE_EPOCH="yesterday")
        self.assertIn("SOURCE_DATE_EPOCH: 'yesterday' is not a whole number", refused.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
