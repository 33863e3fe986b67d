#!/usr/bin/env python3
"""Runs the commands of docs/how-to/ci as its CI systems would, on a small campaign.

usage: ci_files_test.py ATTEST FOLDER
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ATTEST, FILES = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
KERNEL, OPTIONS = "broken/dv_halved", "--only reference_backward --cases 20"


class CiFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "ci").mkdir()
        shutil.copy(FILES / "known-failures.txt", self.folder / "ci")

    def run_step(self, step, code=0, **environment):
        done = subprocess.run(["bash", "-e", "-c", step], cwd=self.folder, capture_output=True, text=True, timeout=200,
                              env={**os.environ, "PATH": f"{ATTEST.parent}{os.pathsep}{os.environ['PATH']}",
                                   "LIBRARY": KERNEL, "OPTIONS": OPTIONS, **environment}, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def certified(self, shard_step, verdict_step, environments, **more):
        """Runs the shards twice, with their journals kept, and merges; then once with the finding listed."""
        for _ in range(2):
            for environment in environments:
                kept = self.folder / f"journal-{sorted(environment.items())}"
                if kept.exists():
                    shutil.copy(kept, self.folder / "last.jsonl")
                self.run_step(shard_step, **environment)
                (self.folder / "last.jsonl").rename(kept)
        self.run_step(verdict_step, code=1, **more)
        found = json.loads((self.folder / "certificate.json").read_text())
        self.assertEqual(found["exit_code"], 1)
        for name in ("report.html", "junit.xml", "findings.sarif"):
            self.assertTrue((self.folder / name).stat().st_size > 0, name)
        with open(self.folder / "ci" / "known-failures.txt", "a", encoding="utf-8") as file:
            file.write(f"{KERNEL} reference_backward\n")
        return self.run_step(verdict_step, **more)

    def test_github(self):
        jobs = yaml.safe_load((FILES / "github.yml").read_text())
        shards = jobs["jobs"]["shard"]["strategy"]["matrix"]["shard"]
        self.assertEqual(shards, list(range(1, int(jobs["env"]["SHARDS"]) + 1)))
        steps = {step["name"]: step["run"] for job in jobs["jobs"].values() for step in job["steps"] if "name" in step}
        said = self.certified(steps["certify"], steps["merge"],
                              [{"SHARD": str(shard), "SHARDS": str(len(shards))} for shard in shards],
                              GITHUB_STEP_SUMMARY="summary.md", SOURCE=jobs["env"]["SOURCE"])
        self.assertIn("::notice file=src/attention.cu,title=broken/dv_halved", said)
        summary = (self.folder / "summary.md").read_text()
        self.assertIn("**Known failure**", summary)
        self.assertEqual(summary.count("| broken/dv\\_halved |"), 2, summary)  # each merge adds its own
        refused = self.run_step(steps["certify"], code=2, LIBRARY="./ci/known-failures.txt", SHARD="1", SHARDS="4")
        self.assertIn("is not a shared library", refused)

    def test_gitlab(self):
        jobs = yaml.safe_load((FILES / "gitlab.yml").read_text())
        stages = [job["stage"] for job in jobs.values() if isinstance(job, dict) and "stage" in job]
        self.assertEqual(stages, jobs["stages"])
        count = jobs["shard"]["parallel"]
        said = self.certified(jobs["shard"]["script"][0], jobs["verdict"]["script"][0],
                              [{"CI_NODE_INDEX": str(k + 1), "CI_NODE_TOTAL": str(count)} for k in range(count)])
        self.assertIn("known failures: 1 of 1 occur", said)

    def seed_of(self, shard_step, options, **environment):
        self.run_step(shard_step, OPTIONS=f"{options} {OPTIONS}", **environment)
        self.assertNotIn("$", options)
        return json.loads((self.folder / "shard-1.json").read_text())["data_seed"]

    def test_values_of_each_night(self):
        """A schedule draws other values at each run, in all of its shards; a pull request the same ones."""
        for path in (FILES / "github.yml", FILES.parent / "clusters" / "github_matrix.yml"):
            jobs = yaml.safe_load(path.read_text())
            step, = (step["run"] for step in jobs["jobs"]["shard"]["steps"] if step.get("name") == "certify")
            for event, seed in (("schedule", 17), ("pull_request", 1)):
                options = re.sub(r"\$\{\{ github.event_name == 'schedule' && (\S+) \|\| (\S+) \}\}",
                                 lambda found: found[1 if event == "schedule" else 2].strip("'"), jobs["env"]["OPTIONS"])
                options = options.replace("github.run_number", "17")
                self.assertEqual(self.seed_of(step, options, SHARD="1", SHARDS="4"), seed, path)
        jobs = yaml.safe_load((FILES / "gitlab.yml").read_text())
        night, always = jobs["workflow"]["rules"]
        self.assertNotIn("variables", always)
        for options, seed in ((night["variables"]["OPTIONS"].replace("$CI_PIPELINE_IID", "17"), 17),
                              (jobs["variables"]["OPTIONS"], 1)):
            self.assertEqual(self.seed_of(jobs["shard"]["script"][0], options, CI_NODE_INDEX="1", CI_NODE_TOTAL="4"), seed)

    def test_one_job(self):
        page = (FILES.parent / "put-into-your-ci.md").read_text()
        block = re.search(r"```sh\n(.*?)```", page, re.DOTALL).group(1)
        self.assertEqual(block.count("./libmine.so"), 1)
        last, now = self.folder / "last.jsonl", self.folder / "now.jsonl"

        def run(seed, code):
            self.run_step(block.replace("./libmine.so", f"{KERNEL} {OPTIONS} --seed {seed}"), code=code)
            self.assertEqual((last.exists(), now.exists()), (code == 1, code == 3))
            return (last if code == 1 else now).read_text().splitlines()

        whole = run(seed=1, code=1)
        last.rename(now)
        now.write_text("\n".join(whole[:3]) + "\n")  # of a job that was cancelled
        self.assertEqual(run(seed=1, code=1)[:3], whole[:3])
        last.rename(now)  # of another campaign, as of another build
        self.assertNotEqual(run(seed=2, code=1)[0], whole[0])
        last.unlink()
        block = block.replace("--max-time 20m", "--max-time 0.01")
        run(seed=1, code=3)

    def test_other_installations(self):
        page = (FILES.parent / "put-into-your-ci.md").read_text()
        block = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[1]
        prefix = self.folder / "attest-0.2.0-linux-x86_64"
        for program in (prefix / "bin" / "attest", self.folder / "sudo"):
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text('#!/bin/sh\necho "$0 $*"\n')
            program.chmod(0o755)
        subprocess.run(["tar", "-czf", f"ci/{prefix.name}.tar.gz", prefix.name], cwd=self.folder, check=True)
        (self.folder / "ci" / "attest_0.2.0_amd64.deb").touch()
        said = self.run_step(f"PATH=$PWD:$PATH\n{block}\nattest --version", GITHUB_PATH="path.txt")
        self.assertIn("apt-get install -y ./ci/attest_0.2.0_amd64.deb", said)
        self.assertIn(f"{self.folder}/.attest/bin/attest --version", said)
        self.assertEqual((self.folder / "path.txt").read_text(), f"{self.folder}/.attest/bin\n")
        for path in (FILES / "github.yml", FILES.parent / "clusters" / "github_matrix.yml"):
            steps = yaml.safe_load(path.read_text())["jobs"]["build"]["steps"]
            kept = next(step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")).splitlines()
            found = {file.name for pattern in kept for file in self.folder.glob(pattern)}
            self.assertLessEqual({f"{prefix.name}.tar.gz", "attest_0.2.0_amd64.deb"}, found)

    def test_every_option_exists(self):
        words = subprocess.run([ATTEST, "certify", "--help"], capture_output=True, text=True, check=True).stdout
        for path in (*FILES.iterdir(), FILES.parent / "put-into-your-ci.md"):
            for command in re.findall(r"attest certify(?:[^\n`]|\\\n)*", path.read_text()):
                for option in re.findall(r"--[a-z-]+", command):
                    self.assertIn(option, words, path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
