#!/usr/bin/env python3
"""check_prose refuses what it should and nothing else."""
import importlib.machinery
import importlib.util
import os
import unittest

PATH = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'check_prose')
LOADER = importlib.machinery.SourceFileLoader('check_prose', PATH)
SPEC = importlib.util.spec_from_loader('check_prose', LOADER)
check_prose = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(check_prose)


class Complaints(unittest.TestCase):
    def lines(self, text, slashes=True):
        return [number for number, _ in check_prose.complaints(text, slashes)]

    def test_refused(self):
        for text in ('/// Whether it holds.', '// What a call left.', '/// Sums. Of no rows 0.',
                     '  // Rows: Those of K alone.', '/* What it is. */',
                     '// Counts words.\n// Whether they are whole is said elsewhere.'):
            self.assertEqual(len(self.lines(text)), 1, text)
        self.assertEqual(self.lines('# What it does.\nx = 1', slashes=False), [1])
        self.assertEqual(self.lines('def f():\n    """Whether x."""', slashes=False), [2])

    def test_accepted(self):
        for text in ('/// Tells whether it holds.', '// Words that lie in what is left',
                     'puts("What");', '// Returns what was left, of those that were asked.',
                     'int x = 1;  // one', '#include "x.h"'):
            self.assertEqual(self.lines(text), [], text)
        self.assertEqual(self.lines('USAGE = """What it does."""', slashes=False), [])


if __name__ == '__main__':
    unittest.main()
