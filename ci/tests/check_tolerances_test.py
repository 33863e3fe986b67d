#!/usr/bin/env python3
"""Lines that ci/check_tolerances must refuse, and lines it must leave alone."""
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'check_tolerances')
REFUSED = [
    'REQUIRE(error < 1e-3);',
    'REQUIRE(error <= 2.5e-7 * scale);',
    'REQUIRE(error <= scale * 1e-6f);',
    'REQUIRE(1e-3 > error);',
    'if (std::abs(a - b) >= 1.E-12) {',
    'CHECK(x == Approx(y).margin(1e-5));',
    'CHECK(x == Approx(y).epsilon(0.001));',
    'REQUIRE(error < 0.0001);',
    'REQUIRE(a.isApprox(b, 1e-9));',
    'const double tolerance = 1e-8;',
    'constexpr float tol{1e-4};',
    'constexpr double kTolerance = 1e-3;',
    'const double kTolOfSum = 1e-3;',
    'CHECK(err < 0.01);',
    'CHECK(err < 0.05 * 2);',
    'CHECK(err < 1.0 / 1000);',
    'REQUIRE(std::abs(got - exact) <= 0x1p-10);',
    'REQUIRE(std::abs(got - exact) <=\n        1e-3);',
    'REQUIRE(0x1p-10 > error);',
    'const bool near = std::abs(got - exact) <\n    1e-3 * scale;',
]
ACCEPTED = [
    'REQUIRE(error <= 4 * unit_roundoff(dtype));',
    '// measured: below 1e-3, so error < 1e-3 would pass',
    'fail("error < 1e-3");',
    'const double scale = 1e-3;',
    'std::vector<double> values{1e-30, 1e30};',
    'out << 1e-3 << separator;',
    'const double x = n > 0 ? 1e-30 : 0.0;',
    'for (double x = 1e-3; x < limit; x *= 2) {',
    'q.fill(static_cast<float>(1e-3));',
    'if (draw < 0.05) return edge();',
    'CHECK(sum == 1.0f + 0x1p-20f);',
    'const double flushed = std::abs(x) < 0x1p-126f ? 0.0f : x;',
    'CHECK(toll(1) < 7);',
]


def status(line):
    with tempfile.TemporaryDirectory() as root:
        with open(os.path.join(root, 'a_test.cpp'), 'w', encoding='utf-8') as out:
            out.write(line + '\n')
        return subprocess.run([sys.executable, SCRIPT, root], stdout=subprocess.DEVNULL).returncode


wrong = [f'not refused: {line}' for line in REFUSED if status(line) != 1]
wrong += [f'not accepted: {line}' for line in ACCEPTED if status(line) != 0]
print('\n'.join(wrong + [f'{len(REFUSED)} to refuse, {len(ACCEPTED)} to accept, {len(wrong)} wrong']))
sys.exit(1 if wrong else 0)
