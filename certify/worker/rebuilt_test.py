#!/usr/bin/env python3
"""Writes libraries and attest itself again between and during campaigns, and looks at what is taken for what.

usage: rebuilt_test.py ATTEST PLUGINS EXAMPLES
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from plugins_test import ATTEST, EXAMPLES, LIMIT


class Rebuilt(unittest.TestCase):
    """Results of one build of a library or of attest are not taken for those of another."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.mine = self.path("libmine.so")
        shutil.copy(f"{EXAMPLES}/libattention.so", self.mine)
        self.words = ["certify", self.mine, "--only", "ones", "--cases", "2"]

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def build_again(self, file):
        with open(file, "ab") as end:
            end.write(b"another build")

    def run_as(self, program, code, *words):
        done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def test_resume(self):
        journal = ["--resume", self.path("journal.jsonl")]
        program = self.path("attest")
        shutil.copy(ATTEST, program)
        for _ in range(2):
            self.run_as(program, 0, *self.words, *journal)
        self.build_again(program)
        error = self.run_as(program, 2, *self.words, *journal)
        self.assertIn("holds results of another build of attest; go on with that build", error)
        self.build_again(self.mine)
        error = self.run_as(ATTEST, 2, *self.words, *journal)
        self.assertIn(f"another build of the file of '{self.mine}:example/attention'", error)

    def test_spelled_otherwise(self):
        """A journal and shards are of the library's file, not of the path that names it."""
        journal, other = self.path("journal.jsonl"), self.path("./libmine.so")
        self.run_as(ATTEST, 0, *self.words, "--resume", journal)
        made = self.checks_in(journal)
        self.run_as(ATTEST, 0, "certify", other, *self.words[2:], "--resume", journal)
        self.assertEqual(self.checks_in(journal), made)  # none ran again
        self.run_as(ATTEST, 0, "certify", other, *self.words[2:], "--shard", "1/2", "--out", self.path("1.json"))
        self.run_as(ATTEST, 0, *self.words, "--shard", "2/2", "--out", self.path("2.json"))
        self.run_as(ATTEST, 0, "certify", "--merge", self.path("1.json"), self.path("2.json"))

    def test_merge(self):
        parts = [self.path("1.json"), self.path("2.json")]
        shard = lambda k: [*self.words, "--shard", f"{k + 1}/2", "--out", parts[k]]
        self.run_as(ATTEST, 0, *shard(0))
        self.run_as(ATTEST, 0, *shard(1))
        self.run_as(ATTEST, 0, "certify", "--merge", *parts)
        self.build_again(self.mine)
        error = self.run_as(ATTEST, 2, "certify", "--merge", *parts)
        self.assertIn(f"'{parts[0]}' holds results of another build of the file", error)
        self.run_as(ATTEST, 0, *shard(1))
        error = self.run_as(ATTEST, 2, "certify", "--merge", *parts)
        self.assertIn(f"'{parts[1]}' holds results of another build of the file", error)


    def test_while_certified(self):
        journal, out = self.path("journal.jsonl"), self.path("out.json")
        words = [ATTEST, "certify", self.mine, "--only", "ones", "--cases", "2000", "--resume",
                 journal, "--out", out]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as campaign:
            while not os.path.exists(journal) or os.path.getsize(journal) == 0:
                pass  # at once: it begins with what the library held
            self.build_again(self.mine)
            text, error = campaign.communicate(timeout=LIMIT)
        self.assertEqual((campaign.returncode, text), (2, ""), error)
        self.assertIn("was written again while it was certified", error)
        self.assertFalse(os.path.exists(out))

    def test_no_certificate_of_an_earlier_run(self):
        """A campaign that began leaves its own certificate or none; what is refused before leaves the earlier one."""
        files = {"--out": self.path("c.json"), "--junit": self.path("j.xml"), "--html": self.path("r.html")}
        written = [word for pair in files.items() for word in pair]

        def earlier():
            for file in files.values():
                pathlib.Path(file).write_text("earlier")

        earlier()
        error = self.run_as(ATTEST, 2, "certify", self.path("absent.so"), *written)
        for file in files.values():
            self.assertEqual(pathlib.Path(file).read_text(), "earlier")
            self.assertIn(f"attest: '{file}' is of an earlier run, and left as it is\n", error)
        self.run_as(ATTEST, 0, *self.words, *written)
        self.assertNotIn("earlier", [pathlib.Path(file).read_text() for file in files.values()])
        earlier()
        self.words = ["certify", self.mine, "--only", "ones", "--cases", "2000", *written]
        with subprocess.Popen([ATTEST, *self.words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as campaign:
            while os.path.exists(files["--html"]):
                self.assertIsNone(campaign.poll())
            self.build_again(self.mine)
            _, error = campaign.communicate(timeout=LIMIT)
        self.assertEqual(campaign.returncode, 2, error)
        self.assertEqual([file for file in files.values() if os.path.exists(file)], [])

    def checks_in(self, journal):
        with open(journal, encoding="utf-8") as file:
            return sum('"event":"check"' in line for line in file)

    def changed_while_certified(self, change):
        """Changes the library after some checks; returns how many the journal had then and has at the end."""
        journal = self.path("journal.jsonl")
        self.words = ["certify", self.mine, "--only", "ones", "--cases", "2000", "--resume", journal]
        with subprocess.Popen([ATTEST, *self.words, "--jobs", "1"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as campaign:
            while not os.path.exists(journal) or self.checks_in(journal) < 3:
                self.assertIsNone(campaign.poll())
            campaign.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, campaign.pid, os.WSTOPPED)
            before = self.checks_in(journal)
            change()
            campaign.send_signal(signal.SIGCONT)
            text, error = campaign.communicate(timeout=LIMIT)
        self.assertLess(before, 1900)
        self.assertEqual((campaign.returncode, text), (2, ""), error)
        self.assertIn(f"'{self.mine}:example/attention' was written again while it was certified", error)
        return before, self.checks_in(journal)

    def test_replaced_while_certified(self):
        first, other = self.path("first.so"), self.path("other.so")
        shutil.copy(self.mine, first)
        shutil.copy(self.mine, other)
        self.build_again(other)
        before, after = self.changed_while_certified(lambda: os.replace(other, self.mine))
        self.assertLessEqual(after, before + 1)  # one may have been on its way to the file
        self.run_as(ATTEST, 2, *self.words)  # of another build
        os.replace(first, self.mine)
        self.run_as(ATTEST, 0, *self.words)
        self.assertGreaterEqual(self.checks_in(self.path("journal.jsonl")), 2000)

    def test_journal_of_unknown_bytes(self):
        self.build_again(self.mine)

        def change():
            # Nothing but the bytes tells that it is another.
            times = os.stat(self.mine)
            with open(self.mine, "r+b") as file:
                file.seek(-5, os.SEEK_END)
                file.write(b"BUILD")
            os.utime(self.mine, ns=(times.st_atime_ns, times.st_mtime_ns))

        self.assertEqual(self.changed_while_certified(change)[1], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
