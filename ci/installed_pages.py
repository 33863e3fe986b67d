#!/usr/bin/env python3
"""Writes the pages that an installation has, or checks the links of such pages.

A link from an installed page to a file of the sources that is not installed becomes text that names the
file's path. Pages for those who change Attest itself are left out. Nothing is written when a link leads
to no file of the sources.
"""
import argparse
import os
import posixpath
import re
import sys

SKIPPED = {'__pycache__', 'build', 'out'}
INSTALLED = ('README.md', 'CHANGELOG.md', 'docs', 'certify/schemas', 'ci/consumer/c')
LEFT_OUT = ('docs/decisions', 'docs/how-to/extend', 'docs/how-to/run-the-checks.md')
# Where an installation has a file of the sources that is not among the pages.
ELSEWHERE = {'core/abi/attest_kernel.h': 'include/attest_kernel.h',
             'python/api/attest_api.h': 'include/attest_api.h'}

# A block of code, a span of code or a link, whichever begins first.
PIECES = re.compile(r'^(?P<indent> *)(?P<fence>```+|~~~+).*?(?:^ *(?P=fence)[`~]*[ \t]*$|\Z)'
                    r'|(?<!`)(?P<tick>`+)(?!`)(?:[^\n]|\n(?!\n))*?(?<!`)(?P=tick)(?!`)'
                    r'|\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)', re.M | re.S)
OUTSIDE = re.compile(r'[a-z][a-z0-9+.-]*:|#', re.I)


def within(path, folders):
    """Tells whether a path is one of the folders or lies in one."""
    return any(path == folder or path.startswith(folder + '/') for folder in folders)


def tree(root):
    """Returns the paths of all files under a folder, and of its folders, relative to it."""
    found = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.startswith('.')]
        found.update(os.path.relpath(os.path.join(folder, name), root) for name in folders + files)
    return found


def links(page, text):
    """Yields (match, path from the root) of every relative link of a page."""
    for piece in PIECES.finditer(text):
        if piece['target'] and not OUTSIDE.match(piece['target']):
            target = piece['target'].partition('#')[0]
            yield piece, posixpath.normpath(posixpath.join(posixpath.dirname(page), target))


def dead_links(page, text, paths):
    """Yields a line for every link of a page that leads to none of the paths."""
    for link, path in links(page, text):
        if path not in paths:
            yield f'{page}:{text.count(chr(10), 0, link.start()) + 1}: no {path} for {link[0]}'


def named(link, path):
    """Returns the text that stands in the place of a link to a path that is not installed."""
    code = f'`{ELSEWHERE.get(path, path)}`'
    words = link['text'].strip('`').rstrip('/')
    stem = posixpath.splitext(path)[0]
    if within(path, [words]) or any(f'/{name}'.endswith(f'/{words}') for name in (path, stem)):
        return code
    around = link.string[link.start() - 1:link.start()] + link.string[link.end():link.end() + 1]
    return f"{link['text']}, {code}" if around == '()' else f"{link['text']} ({code})"


def rewritten(page, text, installed):
    """Returns the page with links to installed paths alone."""
    parts, end = [], 0
    for link, path in links(page, text):
        if path not in installed:
            parts += [text[end:link.start()], named(link, path)]
            end = link.end()
    return ''.join(parts) + text[end:]


def is_page(path):
    return path.endswith('.md')


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as page:
        return page.read()


def complaints(root, paths):
    """Returns the dead links of the pages among the paths, each of which lies under the root."""
    known = tree(root)
    return [line for path in sorted(filter(is_page, paths)) for line in dead_links(path, read(root, path), known)]


def put(path, content, executable):
    """Writes a file unless it is there with this content, so that a later installation finds it up to date."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, 'rb') as old:
            same = old.read() == content
    except FileNotFoundError:
        same = False
    if not same:
        with open(path, 'wb') as out:
            out.write(content)
    os.chmod(path, 0o755 if executable else 0o644)


def write(source, out, installed):
    """Makes the folder `out` hold the installed files, links rewritten, and no others."""
    os.umask(0o022)
    files = {path for path in installed if os.path.isfile(os.path.join(source, path))}
    for path in sorted(files):
        full = os.path.join(source, path)
        with open(full, 'rb') as file:
            content = file.read()
        if is_page(path):
            content = rewritten(path, content.decode(), installed).encode()
        put(os.path.join(out, path), content, os.access(full, os.X_OK))
    for folder, _, names in os.walk(out, topdown=False):
        for name in names:
            if os.path.relpath(os.path.join(folder, name), out) not in files:
                os.remove(os.path.join(folder, name))
        if not os.listdir(folder):
            os.rmdir(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', help='the folder to write, or that of the installed pages')
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument('--source', help='write the pages of this tree')
    how.add_argument('--check', action='store_true', help='check the links of the pages in the folder')
    arguments = parser.parse_args()
    root = arguments.folder if arguments.check else arguments.source
    if not os.path.isfile(os.path.join(root, 'README.md')):
        parser.error(f'{root}: no README.md is there')
    paths = tree(root)
    if not arguments.check:
        paths = {path for path in paths if within(path, INSTALLED) and not within(path, LEFT_OUT)}
    dead = complaints(root, paths)
    if dead:
        print('\n'.join(dead), file=sys.stderr)
        return 1
    if not arguments.check:
        write(root, arguments.folder, paths)
    return 0


if __name__ == '__main__':
    sys.exit(main())
