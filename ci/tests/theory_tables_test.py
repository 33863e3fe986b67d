"""Tests of ci/theory-tables: tables are found in what tests print, and nothing else is written."""
import importlib.machinery
import importlib.util
import os
import re
import sys

PATH = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'theory-tables')
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
check('fast memory in squares of d', [tables.of_square(words, 64) for words in (64, 4096, 6144, 32768)],
      ['d²/64', 'd²', '3d²/2', '8d²'])
check('words of the best schedules', tables.schedules_table("""\
forward   N =   4096, d =   64, M =   1024: flash2:bq=7 300 / theorem_a 200 = 1.500
forward   N =   4096, d =   64, M =   1024: flash2:bq=7 is another line
"""), (['pass', 'best schedule', 'words', 'bound', 'words over it'],
       {'forward, N = 4096, M = d²/4': ['`flash2:bq=7`', '300', '`theorem_a`', '1.500']}))
GROUPED = """\
csr_gather:bq=32         nm_2_4_1                   natural       300 grouped       200 words, 1.500
csr_two_pass:bq=32,bk=32 nm_2_4_1                   natural       300 grouped       300 words, 1.000
"""
check('words of grouped orders', tables.grouped_table(GROUPED),
      (['pattern', '`csr_gather:bq=32`', '`csr_two_pass:bq=32,bk=32`'], {'`nm_2_4_1`': ['1.500', '1.000']}))
try:
    tables.grouped_table(GROUPED + 'csr_gather:bq=32 butterfly_16 natural 3 grouped 3 words, 1.000\n')
    wrong.append('a pattern that one schedule lacks is written')
except KeyError:
    pass
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
