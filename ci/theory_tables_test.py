"""Tests of ci/theory-tables: tables are found in what tests print, and nothing else is written."""
import importlib.machinery
import importlib.util
import os
import re
import sys

PATH = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'theory-tables')
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader('theory_tables', PATH)
tables = importlib.util.module_from_spec(importlib.util.spec_from_loader('theory_tables', loader))
loader.exec_module(tables)
wrong = []


def check(what, got, wanted):
    if got != wanted:
        wrong.append(f'{what}: got {got!r}, wanted {wanted!r}')


PRINTED = """\
table: elements
values           type of    elements    err/Bd    err/Bp  med Bp/e rms/sigma
normal           f32  LSE        554     0.042     0.042     130.9     0.000
normal           f32  O        13104     0.054     0.055      24.0     0.015
ones             f32  O        13104     0.054     0.055      24.0     0.015 (mostly exact)
table: another
normal           f32  O        13104     0.9       0.9         1.0     0.9
"""
check('a cell', tables.cell(0.055, 24.0), '0.06 · 24')
check('a median of three digits', tables.cell(0.5, 123.4), '0.50 · 123')
check('results that are exact', tables.cell(0.5, 24.0, True), '0.50 · –')
tables.DTYPES = ('f32',)
check('rows of the table that is named', tables.tightness(PRINTED, 'elements', ['O']),
      {'normal': ['0.06 · 24'], 'ones': ['0.06 · –']})
check('the order before is kept, new rows are last',
      tables.rendered(['k', 'v'], {'new': ['1'], 'b': ['2'], 'a': ['3']}, ['a', 'b']),
      '| k | v |\n|---|---|\n| a | 3 |\n| b | 2 |\n| new | 1 |\n')
try:
    tables.rendered(['k'], {}, [])
    wrong.append('a table without rows is written')
except ValueError:
    pass

pages = {name: os.path.join(tables.ROOT, 'docs', 'theory', each[0]) for name, each in tables.TABLES.items()}
marks = {}
for folder, _, files in os.walk(os.path.join(tables.ROOT, 'docs', 'theory')):
    for file in files:
        path = os.path.join(folder, file)
        with open(path, encoding='utf-8') as page:
            marks.update({name: path for name in re.findall('<!-- table ([a-z-]+), written by ci/theory-tables -->',
                                                            page.read())})
check('marks in the documents', marks, pages)

before = {path: open(path, encoding='utf-8').read() for path in pages.values()}
try:
    tables.put('loosest', 'nothing that a test prints')
    wrong.append('a text without a table is taken')
except tables.Failure:
    pass
check('documents after a refusal', {path: open(path, encoding='utf-8').read() for path in before}, before)

for each in wrong:
    print(each)
print(f'{len(wrong)} failures')
sys.exit(1 if wrong else 0)
