#!/usr/bin/env python3
"""Runs the tests that need JAX, in an environment that pip fills.

usage: with_jax.py install FOLDER   makes the environment, unless it is there with these requirements
       with_jax.py test FOLDER BUILD
                                    runs the tests on what BUILD holds; exit code 77 without environment
Where pip cannot install the packages of jax_requirements.txt, the reason is printed, and nothing is made.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pack_wheel

TESTS = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = TESTS / "jax_requirements.txt"
NAMES = ("other_arrays_test", "differentiated_test.OfJax", "devices_test",
         "isolation_test.Isolation.test_a_function_of_a_notebook")
SKIPPED = 77
# XLA compiles each shape anew, in a fifth of the time without LLVM's optimizations.
XLA_FLAGS = ("--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
             "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1")


def is_there(folder):
    """Tells whether the environment has these requirements and a Python that is still there."""
    marker = folder / REQUIREMENTS.name
    return (folder / "bin" / "python").exists() and marker.is_file() and \
        marker.read_bytes() == REQUIREMENTS.read_bytes()


def pip(folder, *words):
    """Runs pip there and returns "", or the last line of what it says when it fails."""
    done = subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet",
                           "--disable-pip-version-check", *words], capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def install(folder):
    if is_there(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    reason = pip(folder, "--only-binary=:all:", "--retries=1", "--timeout=15", "-r", REQUIREMENTS)
    if reason:
        shutil.rmtree(folder)
        print(f"the tests that need JAX are skipped: {reason}")
        return
    shutil.copy(REQUIREMENTS, folder)


def test(folder, build):
    if not is_there(folder):
        print(f"skipped: no environment with JAX; make it with {sys.argv[0]} install {folder}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as scratch:
        reason = pip(folder, "--no-index", "--no-deps", "--force-reinstall",
                     pack_wheel.pack(build, scratch))
        if reason:
            sys.exit(reason)
        return subprocess.run([folder / "bin" / "python", "-B", "-m", "unittest", *NAMES], cwd=TESTS,
                              env={**os.environ, "XLA_FLAGS": XLA_FLAGS}).returncode


def main(words):
    paths = [pathlib.Path(word).resolve() for word in words[1:]]
    if words[:1] == ["install"] and len(paths) == 1:
        install(*paths)
    elif words[:1] == ["test"] and len(paths) == 2:
        sys.exit(test(*paths))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
