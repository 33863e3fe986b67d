#!/usr/bin/env python3
"""Docstrings that ci/check_docstrings must refuse, each for its own reason, and some to accept."""
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'check_docstrings')
TEST = ('TEST_CASE("sums are exact", "[sum]") {}\n'
        'TEST_CASE("a long name that "\n          "goes on") {}\n// "only a comment"\n')
REFUSED = [
    ('/// Adds.  [core/b_test]', 'core/b_test: no such test file'),
    ('/// Adds.  [a_test]', 'a_test: no such test file'),
    ('/// Adds.  [core/a_test "sums are wrong"]', 'no test case has "sums are wrong"'),
    ('/// Adds.  [core/a_test "only a comment"]', 'no test case has "only a comment"'),
    ('/// Adds.  [core/a_test "sums are exact", "more"]', 'no test case has "more"'),
    ('/// Adds.  [core/a_test\n/// "sums are\n/// wrong"]', 'no test case has "sums are wrong"'),
    ('/// Adds.  [core/a_test sums are exact]', 'not [room/x_test "name"]'),
    ('/// Adds.  [core/a_test ""]', 'no test case has ""'),
    ('/// Adds.  [core/a_test "sums", core/b_test]', 'core/b_test: no such test file'),
    ('// Adds.  [core/b_test]', 'core/b_test: no such test file'),
]
ACCEPTED = [
    '/// Adds.  [core/a_test]',
    '/// Adds.  [core/a_test "exact"]',
    '/// Adds.  [core/a_test "sums are exact"]',
    '/// Adds.  [core/a_test\n/// "sums are\n/// exact"]',
    '/// Adds.  [core/a_test "that goes on", "sums"]',
    '/// Adds.  [core/a_test "sums", core/a_test]',
    '/// Adds [a, b) to test.',
    'int core[b_test];',
]


def run(line):
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, 'core'))
        for name, text in (('a_test.cpp', TEST), ('a.hpp', line + '\nint a();\n')):
            with open(os.path.join(root, 'core', name), 'w', encoding='utf-8') as out:
                out.write(text)
        done = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


wrong = []
for line, reason in REFUSED:
    status, output = run(line)
    if status != 1 or reason not in output or output.count('\n') != 1:
        wrong.append(f'not refused for {reason!r}: {line!r}: {status} {output!r}')
for line in ACCEPTED:
    status, output = run(line)
    if status != 0 or output:
        wrong.append(f'not accepted: {line!r}: {status} {output!r}')
print('\n'.join(wrong + [f'{len(REFUSED)} to refuse, {len(ACCEPTED)} to accept, {len(wrong)} wrong']))
sys.exit(1 if wrong else 0)
