"""Runs the files of docs/how-to/clusters, with stand-ins for the schedulers."""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from executors_test import MPIEXEC
from other_arrays_test import needs

import attest
from attest import _library

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to"
FILES = DOCS / "clusters"
KERNEL = ["cpu/standard", "--only", "ones", "--cases", "40"]

SBATCH = '''
"""Stands in for sbatch: runs every task of the job at once, and prints its number."""
import os, re, subprocess, sys
words = sys.argv[1:]
options = [word for word in words if word.startswith("--")][:words.index(next(w for w in words if w.endswith(".sh")))]
script, *arguments = words[len(options):]
said = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\\S+)$", open(script).read(), re.M))
said.update(re.findall(r"--([a-z-]+)=(\\S+)", " ".join(options)))
first, _, last = said.get("array", "1-1").partition("-")
for task in range(int(first), int(last or first) + 1):
    array = {"SLURM_ARRAY_TASK_ID": str(task)}
    subprocess.run([script, *arguments], stdout=sys.stderr, env={
        **os.environ, "SLURM_CPUS_PER_TASK": said["cpus-per-task"], **(array if "array" in said else {})})
print(len(said))
'''

CLUSTER = '''
"""Stands in for dask_jobqueue: the jobs are processes of this machine."""
from distributed import LocalCluster
class SLURMCluster(LocalCluster):
    def __init__(self, cores, processes, memory, walltime):
        super().__init__(n_workers=2, threads_per_worker=cores, dashboard_address=None)
    def adapt(self, minimum, maximum):
        pass
'''


@functools.lru_cache(maxsize=None)
def of_my_kernel():
    """Returns the certificate of my_kernels.attention with two cases, without its times."""
    with mock.patch("sys.path", [str(FILES), *sys.path]):
        from my_kernels import attention
        report = attest.certify(attention, cases=2)
    assert report.verdict == "incomplete", report
    return {**report.certificate, "timings": None, "sha256": None}


class Clusters(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        paths = [str(FILES), str(self.folder), *filter(None, sys.path)]
        self.environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": os.pathsep.join([str(self.folder), str(_library.PACKAGE / "bin"), os.environ["PATH"]])}

    def program(self, name, text):
        """Writes a program that the files find in place of the real one."""
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)

    def run_in_folder(self, *words, code=0, **environment):
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True,
                              timeout=200, env={**self.environment, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def certificate(self, name="certificate.json"):
        return {**json.loads((self.folder / name).read_text()), "timings": None, "sha256": None}

    def whole(self, *words):
        self.run_in_folder("attest", "certify", *words, "--out", "whole.json")
        return self.certificate("whole.json")

    def test_every_file_is_parsed(self):
        parsed = set()
        for path in FILES.iterdir():
            if path.suffix == ".sh":
                subprocess.run(["bash", "-n", path], check=True)
                self.assertTrue(os.access(path, os.X_OK), path)
            elif path.suffix == ".py":
                compile(path.read_text(), path, "exec")
            else:
                self.assertEqual(path.name, "github_matrix.yml")  # its test reads it
            self.assertIn(path.name, (DOCS / "clusters.md").read_text() + "my_kernels.py")
            parsed.add(path.suffix)
        self.assertEqual(parsed, {".sh", ".py", ".yml"})

    def test_slurm_array(self):
        self.program("sbatch", SBATCH)
        submit, merge = FILES / "slurm_submit.sh", FILES / "slurm_merge.sh"
        said = self.run_in_folder(submit, "campaign", *KERNEL, SHARDS="4")
        self.assertIn("SHARD 4/4", said)
        self.assertEqual(len(list((self.folder / "campaign" / "shards").glob("*.jsonl"))), 4)
        whole = self.whole(*KERNEL)
        self.assertEqual(self.certificate("campaign/certificate.json"), whole)
        (self.folder / "campaign" / "shards" / "3.json").unlink()
        said = self.run_in_folder(merge, "campaign", code=2, SLURM_CPUS_PER_TASK="1")
        self.assertIn("shard 3/4 is missing", said)
        self.run_in_folder("sbatch", "--array=3", FILES / "slurm_shard.sh", "4", "campaign", *KERNEL)  # as clusters.md says
        self.run_in_folder(merge, "campaign", SLURM_CPUS_PER_TASK="1")
        self.assertEqual(self.certificate("campaign/certificate.json"), whole)

    def test_slurm_merges_by_the_list(self):
        self.program("sbatch", SBATCH)
        words = [FILES / "slurm_submit.sh", "campaign", "broken/dv_halved", "--only", "reference_backward", "--cases", "8"]
        (self.folder / "known.txt").write_text("broken/dv_halved reference_backward\n")
        for known in (["--known-failures", "known.txt"], ["--known-failures=known.txt"]):
            words[1] = f"campaign{len(known)}"
            self.run_in_folder(*words, *known, SHARDS="2")
            self.assertEqual(self.certificate(f"{words[1]}/certificate.json")["exit_code"], 0)

    def test_slurm_keeps_campaigns_apart(self):
        self.program("sbatch", "print(1)")
        submit = FILES / "slurm_submit.sh"
        self.run_in_folder(submit, "campaign", *KERNEL)
        for words, shards in (([*KERNEL, "--seed", "2"], "16"), (KERNEL, "4")):
            said = self.run_in_folder(submit, "campaign", *words, code=2, SHARDS=shards)
            self.assertIn("Take another folder", said)
        (self.folder / "campaign" / "certificate.json").write_text("{}")
        self.run_in_folder(submit, "campaign", *KERNEL)  # again: what its journals have is not run again
        self.assertFalse((self.folder / "campaign" / "certificate.json").exists())
        (self.folder / "libmine.so").write_bytes(b"first build")
        self.run_in_folder(submit, "library", "./libmine.so:mine", "--tier", "smoke")
        (self.folder / "libmine.so").write_bytes(b"second build")
        (self.folder / "library" / "certificate.json").write_text("{}")
        said = self.run_in_folder(submit, "library", "./libmine.so:mine", "--tier", "smoke", code=2)
        self.assertIn("Take another folder", said)
        self.assertTrue((self.folder / "library" / "certificate.json").exists())
        self.assertIn("build the library first", self.run_in_folder(submit, "other", "./absent.so", code=2))
        self.assertIn("from 1 on", self.run_in_folder(submit, "other", *KERNEL, code=2, SHARDS="0"))
        self.assertIn("usage:", self.run_in_folder(submit, "other", code=2))
        self.assertFalse((self.folder / "other").exists())

    @needs("yaml")
    def test_github_matrix(self):
        import yaml
        workflow = yaml.safe_load((FILES / "github_matrix.yml").read_text())
        jobs = workflow["jobs"]
        steps = {step["name"]: step["run"] for job in jobs.values() for step in job["steps"] if "name" in step}
        shards = jobs["shard"]["strategy"]["matrix"]["shard"]
        self.assertEqual(shards, list(range(1, int(workflow["env"]["SHARDS"]) + 1)))
        for shard in shards:
            self.run_in_folder("bash", "-e", "-c", steps["certify"], LIBRARY=KERNEL[0], OPTIONS=" ".join(KERNEL[1:]),
                               SHARDS=str(len(shards)), SHARD=str(shard))
        self.run_in_folder("bash", "-e", "-c", steps["merge"])
        self.assertEqual(self.certificate(), self.whole(*KERNEL))
        self.assertTrue((self.folder / "junit.xml").exists())

    def check_python(self, *words):
        """Runs a file that certifies my_kernels.attention with two cases, as this process does."""
        self.run_in_folder(*words, "2")
        self.assertEqual(self.certificate(), of_my_kernel())

    def few_shards(self, name, shards):
        """Copies a file that asks for many."""
        changed, count = re.subn(r"executor=pool|shards=256", shards, (FILES / name).read_text())
        self.assertEqual(count, 1)
        (self.folder / name).write_text(changed)
        return name

    @unittest.skipUnless("ATTEST_NIGHTLY" in os.environ, "half a minute; in ci/nightly")
    def test_pool(self):
        self.check_python(sys.executable, self.few_shards("certify_by_pool.py", "executor=pool, shards=3"))

    @needs("mpi4py")
    @unittest.skipUnless(MPIEXEC, "no mpiexec")
    def test_mpi(self):
        self.program("srun", f"import os, sys; assert sys.argv[1] == 'python3'; os.execv({MPIEXEC!r}, "
                             f"[{MPIEXEC!r}, '-n', '3', {sys.executable!r}, *sys.argv[2:]])")
        (self.folder / "certify_by_mpi.py").symlink_to(FILES / "certify_by_mpi.py")
        self.check_python(FILES / "slurm_mpi.sh")

    @needs("distributed")
    def test_dask(self):
        (self.folder / "dask_jobqueue.py").write_text(CLUSTER)
        self.check_python(sys.executable, self.few_shards("certify_by_dask.py", "shards=3"))

    def test_the_page_shows_calls_that_run(self):
        calls = re.findall(r"^```py\n(.*?)^```", (DOCS / "clusters.md").read_text(), re.M | re.S)
        self.assertEqual(len(calls), 1)
        compile(calls[0], "clusters.md", "exec")


if __name__ == "__main__":
    unittest.main()
