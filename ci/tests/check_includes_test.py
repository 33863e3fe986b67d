#!/usr/bin/env python3
"""Small trees that ci/check_includes must refuse, and some that it must accept."""
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'check_includes')

# (files, the complaint)
REFUSED = [
    ({'core/a.cpp': 'std::vector<int> x;\n'}, 'core/a.cpp:1: std::vector without vector'),
    ({'core/a.hpp': '#include <vector>\n\nstd::string x;\n'}, 'core/a.hpp:3: std::string without string'),
    ({'core/a.cpp': '/* one\ntwo */\nauto x = std::max(1, 2);\n'}, 'core/a.cpp:3: std::max without algorithm'),
    ({'core/a.cpp': '#include <cstdlib>\nauto x = std::abs(1.0);\n'}, 'core/a.cpp:2: std::abs without cmath'),
    ({'core/a.cpp': '// #include <set>\nstd::set<int> x;\n'}, 'core/a.cpp:2: std::set without set'),
    ({'core/a.cpp': '/*\n#include <set>\n*/\nstd::set<int> x;\n'}, 'core/a.cpp:4: std::set without set'),
    ({'core/a.cpp': '#include "core/b.hpp"\nstd::int64_t x;\n', 'core/b.hpp': '#include <map>\n'},
     'core/a.cpp:2: std::int64_t without cstdint'),
    ({'core/a_test.cpp': '#include <cmath>\nTEST_CASE("a") {}\n'},
     'core/a_test.cpp:2: TEST_CASE without core/testing/catch.hpp'),
    ({'gpu/a.cu': 'std::optional<int> x;\n'}, 'gpu/a.cu:1: std::optional without optional'),
]
ACCEPTED = [
    {'core/a.cpp': '#include <vector>\nstd::vector<int> x;\n'},
    {'core/a.cpp': '#include "core/b.hpp"\nstd::vector<int> x;\n', 'core/b.hpp': '#include "core/c.hpp"\n',
     'core/c.hpp': '#include <vector>\n'},
    {'core/a.cpp': '// std::vector\nconst char* x = "std::map";\n'},
    {'core/a.cpp': 'bool x = c == \'"\' || s == "std::map" || n == 1\'000;\n'},
    {'core/a.cpp': '#include <map>\nauto x = std::move(y);\n'},
    {'core/a_test.cpp': '#include "core/testing/catch.hpp"\nTEST_CASE("a") {}\n',
     'core/testing/catch.hpp': '#pragma once\n'},
    {'core/a.hpp': '#include "core/b.hpp"\n', 'core/b.hpp': '#include "core/a.hpp"\n'},
    {'docs/a.cpp': 'std::vector<int> x;\n', 'build/a.cpp': 'std::vector<int> x;\n'},
]


def run(files):
    """Exit status and output of the script on a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            full = os.path.join(root, name)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, 'w', encoding='utf-8') as out:
                out.write(text)
        done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


failures = 0
for files, complaint in REFUSED:
    status, output = run(files)
    if status != 1 or output != complaint + '\n':
        failures += 1
        print(f'not refused for "{complaint}": {files}\n  status {status}: {output}')
for files in ACCEPTED:
    status, output = run(files)
    if status != 0 or output:
        failures += 1
        print(f'not accepted: {files}\n  status {status}: {output}')
print(f'{len(REFUSED)} trees to refuse, {len(ACCEPTED)} to accept, {failures} failures')
sys.exit(1 if failures else 0)
