"""Shares campaigns among workers of pools, Dask and MPI: the certificate is that of one process."""

import concurrent.futures
import contextlib
import functools
import importlib.util
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from unittest import mock

from certify_test import SMALL, attention, top_left, without_last_key
from other_arrays_test import needs
from plain.gradients import FORWARD

import attest
from attest import _executors, _library

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]]))


def dies(q, k, v, *, marker, causal=False, scale=1.0):
    """Ends its process on the own problem of SMALL, unless the marker tells that it did before."""
    with contextlib.suppress(FileExistsError):
        if q.shape[1] == 5 and k.shape[1] == 9:
            if marker:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
    return attention(q, k, v, causal=causal, scale=scale)


def marks(q, k, v, *, calls=[], scale=1.0):
    """Tells by a file that a worker made so many calls."""
    calls.append(1)
    if len(calls) == 60:
        pathlib.Path("made calls").touch()
    return attention(q, k, v, scale=scale)


INTERRUPTED = """
from executors_test import *

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ProcessPoolExecutor(2) as pool:
        report = attest.certify(marks, **{**SMALL, "cases": 2000, "problems": [], "only": "ones"},
                                executor=pool, shards=4)
        kernel = report.certificate["kernels"][0]
        ended = pool.submit(campaigns_ended_here).result()
    print(report.certificate["interrupted"], kernel["checks"]["made"] > 0, ended)
"""


def certificate_of(fn, **asked):
    return "{}"


def campaigns_ended_here():
    return len(_executors._ended)


BY_MPI = """
from executors_test import *
from mpi4py.futures import MPIPoolExecutor

def own(q, k, v, *, scale=1.0):
    return attention(q, k, v, scale=scale)

if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        text = certificate(own, executor=pool, shards=3)
    assert text == certificate(own), text
    print("equal")
"""


SPAWNED = """
from multiprocessing import get_context
from executors_test import *

def own(q, k, v, *, scale=1.0):
    return attention(q, k, v, scale=scale)

if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        text = certificate(own, executor=pool, shards=2, isolate=True, only="reference_forward")
    assert text == certificate(own, isolate=True, only="reference_forward"), text
    print("equal")
"""


class Unpicklable(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


def raises(q, k, v):
    raise Unpicklable("this")


class AtOnce(concurrent.futures.Executor):
    """Runs tasks as they are given, and does at the third what a test says."""

    def __init__(self, at_third):
        self.at_third, self.given = at_third, 0

    def submit(self, fn, *args):
        self.given += 1
        if self.given == 3:
            self.at_third()
        future = Future()
        future.set_result(fn(*args))
        return future


def certificate(fn, **options):
    """Returns the certificate as text, without its times."""
    report = attest.certify(fn, **{**SMALL, **options})
    return json.dumps({**report.certificate, "timings": None, "sha256": None}, indent=1)


class Executors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "died").touch()
        self.dies_once = functools.partial(dies, marker=str(self.folder / "first death"))
        died_before = functools.partial(dies, marker=str(self.folder / "died"))
        self.whole = functools.partial(certificate, died_before)

    def script(self, text, *before, **options):
        """Starts a program of that text."""
        (self.folder / "script.py").write_text(text)
        paths = [str(pathlib.Path(__file__).parent), *filter(None, sys.path)]
        return subprocess.Popen([*before, "script.py"] if before else [sys.executable, "script.py"],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, **options)

    def test_pools(self):
        for fn, more in ((attention, FORWARD), (top_left, {"only": "reference_forward"})):
            whole = certificate(fn, **more)
            self.assertIn("mask=causal_br", whole)
            for kind in (ProcessPoolExecutor, ThreadPoolExecutor):
                with self.subTest(fn.__name__, kind=kind.__name__), kind(2) as pool:
                    self.assertEqual(certificate(fn, executor=pool, shards=3, **more), whole)

    @unittest.skipUnless("ATTEST_NIGHTLY" in os.environ, "half a minute; in ci/nightly")
    def test_a_lost_worker(self):
        with ProcessPoolExecutor(2) as pool, self.assertRaisesRegex(
                RuntimeError, "takes no more tasks .*BrokenProcessPool.*shard 3/3.* lost; give a function"):
            attest.certify(self.dies_once, **SMALL, executor=pool, shards=3)
        os.remove(self.dies_once.keywords["marker"])
        made = []

        def pool_of_two():
            made.append(ProcessPoolExecutor(2))
            return made[-1]

        self.assertEqual(certificate(self.dies_once, executor=pool_of_two, shards=3), self.whole())
        self.assertEqual(len(made), 2)
        with self.assertRaisesRegex(RuntimeError, "shard ./3 was lost 3 times.*a call may end its process"):
            attest.certify(functools.partial(dies, marker=""), **SMALL, executor=pool_of_two, shards=3)

    def test_exceptions(self):
        with ProcessPoolExecutor(1) as pool:
            with self.assertRaisesRegex(RuntimeError, "Unpicklable: this") as raised:
                attest.certify(raises, **SMALL, executor=pool)
            self.assertIn("executors_test.py", str(raised.exception.__cause__))
            with self.assertRaisesRegex(ValueError, "unknown tier 'quick'"):
                attest.certify(attention, **SMALL, tier="quick", executor=pool)

    def test_bad_use(self):
        for options, kind, words in (
                ({"executor": 2}, TypeError, "executor is a int; give one like those of concurrent.futures"),
                ({"executor": AtOnce(None), "shards": 0}, ValueError, "shards is 0; it must be a whole number"),
                ({"shards": 2}, ValueError, "shards without an executor")):
            with self.assertRaisesRegex(kind, words):
                attest.certify(attention, **SMALL, **options)

        def fail():
            raise OSError("no network")

        with self.assertRaisesRegex(RuntimeError, "no network.: shard 3/4, shard 4/4 are lost"):
            attest.certify(attention, **SMALL, executor=AtOnce(fail), shards=4)

    def test_functions_without_a_module(self):
        def local(q, k, v, *, scale=1.0):
            return attention(q, k, v, scale=scale)

        with mock.patch("importlib.util.find_spec", lambda name: None), self.assertRaisesRegex(
                ValueError, "local and its options cannot be sent.*top of a module, or install cloudpickle"):
            attest.certify(local, **SMALL, executor=AtOnce(None))
        if importlib.util.find_spec("cloudpickle"):
            with ProcessPoolExecutor(2) as pool:
                self.assertEqual(certificate(local, executor=pool, shards=2), certificate(local))

    def test_an_interrupt_leaves_what_is_known(self):
        def interrupt():
            raise KeyboardInterrupt

        for fn, shards, verdict in ((top_left, 2, "violated"), (attention, 4, "incomplete")):
            report = attest.certify(fn, **SMALL, executor=AtOnce(interrupt), shards=shards)
            self.assertEqual((report.verdict, report.certificate["interrupted"]), (verdict, True))
            self.assertIn("ended early: the certificate is partial", str(report))
            checks = report.certificate["kernels"][0]["checks"]
            self.assertTrue(0 < checks["made"] <= checks["planned"], checks)
        self.assertLess(checks["made"], checks["planned"])

    def test_what_is_known_lists_one_mistake_once(self):
        def interrupt():
            raise KeyboardInterrupt

        report = attest.certify(without_last_key, **SMALL, executor=AtOnce(interrupt), shards=3)
        self.assertTrue(report.certificate["interrupted"])
        self.assertEqual([one["law"] for one in report.findings], ["reference_forward"], str(report))
        self.assertGreater(len(report.findings[0]["also"]), 5)

    def test_ctrl_c_reaches_the_workers_of_a_pool(self):
        child = self.script(INTERRUPTED, start_new_session=True)
        while not (self.folder / "made calls").exists() and child.poll() is None:
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate()
        self.assertEqual((out, child.returncode), ("True True 1\n", 0), err)
        with mock.patch("attest._executors._ended", {"that one"}):
            for campaign, kind in (("that one", _executors._Failure), ("another", str)):
                result = _executors._task(_executors._packed(certificate_of, attention, None), {}, campaign, 0)
                self.assertIsInstance(result, kind)

    def test_progress(self):
        terminal = io.StringIO()
        terminal.isatty = lambda: True
        with mock.patch("sys.stderr", terminal):
            attest.certify(attention, **SMALL, executor=AtOnce(lambda: None), shards=2)
        self.assertRegex(terminal.getvalue(), r"\rattention: \d of 2 shards, [\d.]+/s, \d:\d\d:\d\d left ")
        self.assertNotIn("checks", terminal.getvalue())

    def test_shards_of_another_build_are_refused(self):
        package = self.folder / "attest"
        shutil.copytree(_library.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "bin"))
        bundled = _library.PACKAGE.with_name("attest.libs")  # beside the package where a wheel brought it
        if bundled.exists():
            shutil.copytree(bundled, self.folder / bundled.name)
        with open(package / "libattest.so", "ab") as library:
            library.write(b"another")
        tests = pathlib.Path(__file__).parent
        script = ("from certify_test import *; from attest import _certify; "
                  "from attest._executors import _Unseen; "
                  "print(_certify._campaign(attention, given={'dtypes': ['f32']}, "
                  "isolation={'isolate': False, 'timeout': None, 'memory_limit': None}, options='cases=2', "
                  "progress=_Unseen(), shard='1/2'))")
        text = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True,
                              cwd=self.folder, env={
            **os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), str(tests)])}).stdout
        kernel, contract = attest._certify.prepared(attention, dtypes=["f32"])
        with self.assertRaisesRegex(ValueError, "holds results of another build of attest"):
            _library.merge(kernel.struct, contract, "cases=2", [text], lambda *_: 0)

    @needs("distributed")
    def test_dask(self):
        from distributed import Client, LocalCluster
        with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster, \
                Client(cluster) as client:
            self.assertEqual(certificate(top_left, executor=client.get_executor(), shards=3),
                             certificate(top_left))
            self.assertEqual(certificate(self.dies_once, executor=client.get_executor(), shards=6), self.whole())
            self.assertTrue(os.path.exists(self.dies_once.keywords["marker"]))

    def test_a_script_in_spawned_processes(self):
        child = self.script(SPAWNED, sys.executable)
        out, err = child.communicate()
        self.assertEqual((out, child.returncode), ("equal\n", 0), err)

    @needs("mpi4py")
    @unittest.skipUnless(MPIEXEC, "no mpiexec")
    def test_mpi(self):
        child = self.script(BY_MPI, MPIEXEC, "-n", "3", sys.executable, "-m", "mpi4py.futures")
        out, err = child.communicate()
        self.assertEqual((out, child.returncode), ("equal\n", 0), err)


if __name__ == "__main__":
    unittest.main()
