#!/usr/bin/env python3
"""installed_pages leaves no dead link in what it writes, and refuses the dead links of sources and of installed pages."""
import contextlib
import os
import subprocess
import sys
import tempfile
import unittest

CI = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir)
SCRIPT = os.path.join(CI, 'installed_pages.py')
sys.path.insert(0, CI)
import installed_pages  # noqa: E402

# (what a page of docs/ says, what the installed one says), of a tree with the files below
REWRITTEN = [
    ('[b](b.md), [first](../README.md#x) and [out](https://example.org/a)',) * 2,
    ('[fields](../certify/schemas/a.json), [schemas](../certify/schemas)',) * 2,
    ('[#](#x) of ![plot](b.md)',) * 2,
    ('`add[.cc](.u32)` and `` `[x](y) ``',) * 2,
    ('```\n[x](y)\n```\n',) * 2,
    ('- one\n  ~~~\n  [x](y)\n  ~~~\n',) * 2,
    ('see [a.hpp](../core/a.hpp).', 'see `core/a.hpp`.'),
    ('see [`a.hpp`](../core/a.hpp#L3).', 'see `core/a.hpp`.'),
    ('[core/](../core) [a](../core/a.hpp)', '`core` `core/a.hpp`'),
    ('[attest_kernel.h](../core/abi/attest_kernel.h)', '`include/attest_kernel.h`'),
    ('as [the class\nbehind it](../core/a.hpp) says', 'as the class\nbehind it (`core/a.hpp`) says'),
    ('it was ([decision](decisions/1.md)) so', 'it was (decision, `docs/decisions/1.md`) so'),
    ('one ` of [two](../core/a.hpp)\n\nother `', 'one ` of two (`core/a.hpp`)\n\nother `'),
    ('`f` [`g`](b.md) [`h`](../core/a.hpp) `i`', '`f` [`g`](b.md) `h` (`core/a.hpp`) `i`'),
]
DEAD = ['[x](c.md)', '[x](../core/b.hpp)', 'a\n\n```\ncode\n```\n[`x`](no/folder) b', '[x](/docs/b.md)', '[x](../../a.md)',
        '![x](x.png)']
FILES = {'README.md': '# x\n', 'CHANGELOG.md': '', 'core/a.hpp': '', 'core/abi/attest_kernel.h': '',
         'docs/b.md': '', 'docs/decisions/1.md': '[x](no)', 'docs/how-to/run.sh': '#!/bin/sh\n',
         'docs/how-to/__pycache__/a.pyc': '', 'docs/how-to/extend/c.md': '', 'certify/schemas/a.json': '{}',
         'ci/consumer/c/CMakeLists.txt': '', 'CONTRIBUTING.md': ''}
WRITTEN = ['CHANGELOG.md', 'README.md', 'certify/schemas/a.json', 'ci/consumer/c/CMakeLists.txt', 'docs/a.md', 'docs/b.md',
           'docs/how-to/run.sh']


def put(root, files):
    for name, text in files.items():
        full = os.path.join(root, name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w', encoding='utf-8') as out:
            out.write(text)


@contextlib.contextmanager
def tree(page):
    """Gives the folder of a tree whose docs/a.md is the page, and the folder of its installed pages."""
    with tempfile.TemporaryDirectory() as root:
        source = os.path.join(root, 'source')
        put(source, {**FILES, 'docs/a.md': page})
        os.chmod(os.path.join(source, 'docs/how-to/run.sh'), 0o700)
        yield source, os.path.join(root, 'pages')


def run(*words):
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def files(root):
    return sorted(path for path in installed_pages.tree(root) if os.path.isfile(os.path.join(root, path)))


class Pages(unittest.TestCase):
    def test_written(self):
        for page, wanted in REWRITTEN:
            with tree(page) as (source, out):
                self.assertEqual(run('--source', source, out), (0, ''), page)
                self.assertEqual(installed_pages.read(out, 'docs/a.md'), wanted)
                self.assertEqual(files(out), WRITTEN)
                self.assertEqual(run('--check', out), (0, ''), page)

    def test_dead_in_sources(self):
        for page in DEAD:
            with tree(page) as (source, out):
                status, said = run('--source', source, out)
                self.assertEqual(status, 1, page)
                self.assertIn(f'docs/a.md:{page.count(chr(10)) + 1}: no ', said)
                self.assertFalse(os.path.exists(out), page)

    def test_dead_when_installed(self):
        for page in DEAD + ['[a.hpp](../core/a.hpp)']:
            with tree('') as (source, out):
                self.assertEqual(run('--source', source, out), (0, ''))
                put(out, {'docs/a.md': page})
                status, said = run('--check', out)
                self.assertEqual(status, 1, page)
                self.assertIn(f'docs/a.md:{page.count(chr(10)) + 1}: no ', said)

    def test_again(self):
        with tree('') as (source, out):
            run('--source', source, out)
            before = os.stat(os.path.join(out, 'docs/b.md')).st_mtime_ns
            put(out, {'docs/old/gone.md': '[x](y)', 'docs/a.md': 'other'})
            self.assertEqual(run('--source', source, out), (0, ''))
            self.assertEqual(files(out), WRITTEN)
            self.assertFalse(os.path.exists(os.path.join(out, 'docs/old')))
            self.assertEqual(installed_pages.read(out, 'docs/a.md'), '')
            self.assertEqual(os.stat(os.path.join(out, 'docs/b.md')).st_mtime_ns, before)

    def test_permissions(self):
        with tree('') as (source, out):
            os.chmod(os.path.join(source, 'docs/b.md'), 0o600)
            run('--source', source, out)
            modes = {path: os.stat(os.path.join(out, path)).st_mode & 0o777 for path in installed_pages.tree(out)}
            self.assertEqual({path for path, mode in modes.items() if mode == 0o755},
                             {'docs/how-to/run.sh'} | set(modes) - set(WRITTEN))
            self.assertEqual({path for path, mode in modes.items() if mode == 0o644},
                             set(WRITTEN) - {'docs/how-to/run.sh'})

    def test_this_tree(self):
        with tempfile.TemporaryDirectory() as out:
            self.assertEqual(run('--source', os.path.dirname(os.path.realpath(CI)), out), (0, ''))
            self.assertEqual(run('--check', out), (0, ''))
            self.assertIn('docs/how-to/install.md', files(out))

    def test_no_tree(self):
        status, said = run('--check', os.devnull)
        self.assertEqual(status, 2)
        self.assertIn('no README.md is there', said)


if __name__ == '__main__':
    unittest.main()
