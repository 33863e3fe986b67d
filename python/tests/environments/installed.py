#!/usr/bin/env python3
"""Installs a wheel into an empty virtual environment and runs every test of the package there.

usage: installed.py [--numpy] WHEEL|BUILD [PYTHON...]
A folder of a build has its wheel packed first. Tests with each PYTHON; without one, with one that is found
here, has numpy and is another than the one that runs this. With --numpy the environment gets its own numpy,
from the package index.
"""
import glob
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pack_wheel

TESTS = pathlib.Path(__file__).resolve().parents[1]
VERSION = "import sys, ensurepip; assert sys.version_info >= (3, 9); print(sys.version.split()[0])"


def answer(python, code):
    """Returns what the program prints; "" where it fails."""
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def another_python():
    """Returns an interpreter with numpy: one of another version, another installation, or this one."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    found = [path for folder in folders for path in sorted(glob.glob(f"{folder}/python3*"))
             if re.search(r"/python3(\.\d+)?$", path) and os.access(path, os.X_OK)]
    usable = {path: version for path in [*found, sys.executable]
              if (version := answer(path, VERSION + "; import numpy"))}
    if not usable:
        sys.exit("no Python with numpy and venv here; run ci/deps")
    here = sys.version.split()[0]
    return min(usable, key=lambda path: (usable[path] == here, path == sys.executable))


def check(wheel, python, own_numpy):
    print(f"== {os.path.basename(wheel)} with Python {answer(python, VERSION)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = pathlib.Path(folder) / "environment"

        def run(*words):
            subprocess.run(words, check=True, cwd=folder)

        run(python, "-m", "venv", *([] if own_numpy else ["--system-site-packages"]), environment)
        inside = str(environment / "bin" / "python")
        run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            *([] if own_numpy else ["--no-index", "--no-deps"]), wheel)
        run(inside, "-B", "-m", "unittest", "discover", "-s", TESTS, "-p", "*_test.py")
        run(environment / "bin" / "attest", "--version")


def main(words):
    own_numpy = "--numpy" in words
    subject, *pythons = [word for word in words if word != "--numpy"] or sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        wheel = pack_wheel.pack(subject, folder) if os.path.isdir(subject) else os.path.abspath(subject)
        for python in pythons or [another_python()]:
            check(str(wheel), python, own_numpy)


if __name__ == "__main__":
    main(sys.argv[1:])
