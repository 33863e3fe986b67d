#!/usr/bin/env python3
"""Runs the tests that need JAX, or Triton, in an environment that pip fills.

usage: with_packages.py install NAME FOLDER
                           makes the environment, unless it is there with these requirements
       with_packages.py test NAME FOLDER BUILD
                           runs the tests on what BUILD holds; exit code 77 without environment
NAME is jax or triton. Where pip cannot install the packages of requirements/NAME.txt, the reason is printed,
and nothing is made.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pack_wheel

TESTS = pathlib.Path(__file__).resolve().parents[1]
SUITES = {
    "jax": ("other_arrays_test", "differentiated_test.OfJax", "bias_test.OfJax", "devices_test",
            "isolation_test.Isolation.test_a_function_of_a_notebook"),
    "triton": ("emulated_gpu_test", "golden_test"),
}
SKIPPED = 77
# XLA compiles each shape anew, in a fifth of the time without LLVM's optimizations.
XLA_FLAGS = ("--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
             "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1")


def requirements_of(name):
    return TESTS / "requirements" / f"{name}.txt"


def is_there(name, folder):
    """Tells whether the environment has these requirements and a Python that is still there."""
    wanted = requirements_of(name)
    marker = folder / wanted.name
    return (folder / "bin" / "python").exists() and marker.is_file() and \
        marker.read_bytes() == wanted.read_bytes()


def pip(folder, *words):
    """Runs pip there and returns "", or the last line of what it says when it fails."""
    done = subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet",
                           "--disable-pip-version-check", *words], capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def install(name, folder):
    if is_there(name, folder):
        return
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    reason = pip(folder, "--only-binary=:all:", "--retries=1", "--timeout=15", "-r",
                 requirements_of(name))
    if reason:
        shutil.rmtree(folder)
        print(f"the tests that need {name} are skipped: {reason}")
        return
    shutil.copy(requirements_of(name), folder)


def test(name, folder, build):
    if not is_there(name, folder):
        print(f"skipped: no environment with {name}; make it with {sys.argv[0]} install {name} {folder}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as scratch:
        reason = pip(folder, "--no-index", "--no-deps", "--force-reinstall",
                     pack_wheel.pack(build, scratch))
        if reason:
            sys.exit(reason)
        return subprocess.run([folder / "bin" / "python", "-B", "-m", "unittest", *SUITES[name]],
                              cwd=TESTS,
                              env={**os.environ, "XLA_FLAGS": XLA_FLAGS}).returncode


def main(words):
    paths = [pathlib.Path(word).resolve() for word in words[2:]]
    known = words[1:2] and words[1] in SUITES
    if known and words[0] == "install" and len(paths) == 1:
        install(words[1], *paths)
    elif known and words[0] == "test" and len(paths) == 2:
        sys.exit(test(words[1], *paths))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
