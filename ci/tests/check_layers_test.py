#!/usr/bin/env python3
"""Small trees that ci/check_layers must refuse, each for its own reason, and some it must accept."""
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'check_layers')

# (file, its include line, part of the complaint)
REFUSED = [
    ('core/a.hpp', '#include "reference/b.hpp"', 'core/ may include only core'),
    ('io/a.hpp', '#include "cpu/b.hpp"', 'io/ may include only core, io'),
    ('fixtures/a.hpp', '#include "cpu/b.hpp"', 'fixtures/ may include only'),
    ('reference/a.cpp', '#include "cpu/b.hpp"', 'reference/ may include only'),
    ('reference/a.cpp', '#include "io/b.hpp"', 'reference/ may include only'),
    ('reference/a.cpp', '#include <fmt/core.h>', 'reference/ includes only'),
    ('reference/a.cpp', '#include <boost/math/special_functions.hpp>', 'reference/ includes only'),
    ('reference/a.cpp', '#include <rapidcheck.h>', 'reference/ includes only'),
    ('cpu/a.cpp', '#include "reference/b.hpp"', 'cpu/ may include only'),
    ('cpu/a.cpp', '#include <Eigen/Dense>', 'no suspect uses Eigen'),
    ('cpu/kernels/a.cpp', '  #  include <Eigen/Core>', 'no suspect uses Eigen'),
    ('cpu/a.cpp', '#include "schedules/engine/b.hpp"', 'cpu/ may include only'),
    ('cpu/a.cpp', '#include "schedules/register.hpp"', 'cpu/ may include only'),
    ('schedules/a.cpp', '#include <Eigen/Dense>', 'no suspect uses Eigen'),
    ('sparse/a.cpp', '#include "schedules/lists/b.hpp"', 'sparse/ may include only'),
    ('fixtures/defects/a.cpp', '#include <unsupported/Eigen/FFT>', 'no suspect uses Eigen'),
    ('gpu/a.cu', '#include "proptest/b.hpp"', 'gpu/ may include only'),
    ('gpu/a.cpp', '#include "cpu/register.hpp"', 'gpu/ may include only'),
    ('gpu/a.cpp', '#include "sparse/register.hpp"', 'gpu/ may include only'),
    ('gpu/a.cpp', '#include "schedules/register.hpp"', 'gpu/ may include only'),
    ('gpu/a_test.cpp', '#include "schedules/lists/b.hpp"', 'gpu/ may include only'),
    ('gpu/a_test.cpp', '#include "cpu/register.hpp"', 'gpu/ may include only'),
    ('proptest/a.cpp', '#include "cpu/kernels/b.hpp"', 'only cpu/register.hpp'),
    ('proptest/a.cpp', '#include "sparse/inputs/b.hpp"', 'through core/registry.hpp'),
    ('proptest/a_test.cpp', '#include "sparse/bounds/b.hpp"', 'through core/registry.hpp'),
    ('proptest/a.cpp', '#include "fixtures/defects/b.hpp"', 'through core/registry.hpp'),
    ('proptest/a.cpp', '#include "certify/b.hpp"', 'proptest/ may include only'),
    ('certify/a.cpp', '#include <gpu/kernels/b.hpp>', 'only gpu/register.hpp'),
    ('python/api/a.cpp', '#include "io/b.hpp"', 'python/ may include only'),
    ('python/api/a.cpp', '#include "gpu/simt/b.hpp"', 'only gpu/ptx/'),
    ('proptest/a.cpp', '#include "python/api/b.hpp"', 'proptest/ may include only'),
    ('certify/cli/a.cpp', '#include "../b.hpp"', 'without ..'),
    ('core/a.cpp', '#include "b.hpp"', 'no such file from the root'),
    ('core/a.cpp', '#include ATTEST_HEADER', 'names a macro'),
    ('core/a.cpp', 'ATTEST_VECTOR_CLONES\nvoid f() {}', 'outside an unnamed namespace'),
    ('core/a.cpp', 'namespace {\n}  // namespace\nATTEST_VECTOR_CLONES\nvoid f() {}', 'outside an unnamed namespace'),
    ('utils/a.cpp', '#include <vector>', 'unknown room'),
    ('a.cpp', '#include <vector>', 'unknown room'),
]
ACCEPTED = [
    ('core/a.cpp', '#include <vector>'),
    ('core/a_test.cpp', '#include <Eigen/Core>'),
    ('reference/a.cpp', '#include <Eigen/Dense>'),
    ('reference/a.cpp', '#include <boost/multiprecision/mpfr.hpp>'),
    ('reference/a.cpp', '#include <cmath>'),
    ('reference/a_test.cpp', '#include <rapidcheck.h>'),
    ('cpu/a.cpp', '#include "io/b.hpp"'),
    ('schedules/a.cpp', '#include "cpu/kernels/b.hpp"'),
    ('sparse/a.cpp', '#include "cpu/kernels/b.hpp"'),
    ('sparse/a_test.cpp', '#include "cpu/testing/b.hpp"'),
    ('gpu/a_test.cpp', '#include "schedules/register.hpp"'),
    ('gpu/testing/a.cpp', '#include "schedules/register.hpp"'),
    ('python/api/a.cpp', '#include "gpu/ptx/b.hpp"'),
    ('proptest/a.cpp', '#include "cpu/register.hpp"'),
    ('proptest/a.cpp', '#include "reference/b.hpp"'),
    ('certify/a.cpp', '#include "fixtures/models.hpp"'),
    ('python/api/a.cpp', '#include "proptest/b.hpp"'),
    ('python/api/a.cpp', '#include "certify/b.hpp"'),
    ('proptest/a_test.cpp', '#include "fixtures/defects/b.hpp"'),
    ('proptest/a_test.cpp', '#include "sparse/inputs/b.hpp"'),
    ('certify/a.cpp', '#include "sparse/inputs/input_kernels.hpp"'),
    ('certify/worker/a.cpp', '#include "gpu/runtime/emulated_device.hpp"'),
    ('proptest/testing/a.hpp', '#include "fixtures/emulated/b.hpp"'),
    ('certify/cli/a.cpp', '#include "proptest/b.hpp"'),
    ('core/a.cpp', 'namespace {\nATTEST_VECTOR_CLONES\nvoid f() {}\n}  // namespace'),
    ('docs/example.cpp', '#include <cpu/kernels/b.hpp>'),
]


def run(path, line):
    """Exit status and output of the script on a tree with one offending or innocent file."""
    with tempfile.TemporaryDirectory() as root:
        files = {path: line + '\n'}
        if '"' in line and '..' not in line:
            target = line.split('"')[1]
            if '/' in target:
                files.setdefault(target, '#pragma once\n')
        for name, text in files.items():
            full = os.path.join(root, name)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, 'w', encoding='utf-8') as out:
                out.write(text)
        done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


failures = 0
for path, line, reason in REFUSED:
    status, output = run(path, line)
    if status != 1 or reason not in output or output.count('\n') != 1:
        failures += 1
        print(f'not refused for "{reason}": {path}: {line}\n  status {status}: {output}')
for path, line in ACCEPTED:
    status, output = run(path, line)
    if status != 0 or output:
        failures += 1
        print(f'not accepted: {path}: {line}\n  status {status}: {output}')
print(f'{len(REFUSED)} trees to refuse, {len(ACCEPTED)} to accept, {failures} failures')
sys.exit(1 if failures else 0)
