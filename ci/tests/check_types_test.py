#!/usr/bin/env python3
"""check_types refuses what it should and nothing else."""
import importlib.machinery
import importlib.util
import os
import unittest

PATH = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'check_types')
LOADER = importlib.machinery.SourceFileLoader('check_types', PATH)
SPEC = importlib.util.spec_from_loader('check_types', LOADER)
check_types = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(check_types)


def header(space, text):
    return f'namespace {space} {{\n\n{text}\n\n}}\n'


class Complaints(unittest.TestCase):
    def found(self, one, other):
        return list(check_types.complaints({'a.hpp': one, 'b.hpp': other}))

    def test_refused(self):
        for text in ('struct Error {', 'class Error : public Base {', 'enum class Error : int {'):
            found = self.found(header('attest', text), header('attest', 'struct Error {'))
            self.assertEqual(found, ['attest::Error is defined in a.hpp and b.hpp; rename one'])

    def test_accepted(self):
        error = header('attest', 'struct Error {')
        for other in (header('attest::io', 'struct Error {'), header('attest', 'struct Error;'),
                      header('attest', 'struct Errors {'),
                      header('attest', 'struct Other {\n  struct Error {')):
            self.assertEqual(self.found(error, other), [])


if __name__ == '__main__':
    unittest.main()
