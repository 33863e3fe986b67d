"""ci/bench-cpu pairs ratios by round, sees a regression and no other, and escapes what it writes."""
import glob
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.join(HERE, '..', '..')
LOADER = importlib.machinery.SourceFileLoader('bench_cpu', os.path.join(HERE, '..', 'bench-cpu'))
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader('bench_cpu', LOADER))
LOADER.exec_module(bench)

RESULT = {'problem': 'hq=1,hkv=1,sq=4,sk=4,d=2', 'useful_flops': 100.0, 'peak_flops': [200.0, 200.0, 200.0],
          'read_bandwidth': [64.0, 64.0, 64.0],
          'times': {'cpu/flash2': [1.0, 2.0, 4.0], 'torch/math': [3.0, 6.0, 12.0], 'torch/<b>': [2.0, 4.0, 8.0]}}


def ours(rows):
    return next(row for row in rows if row['name'] == 'cpu/flash2')


class BenchTest(unittest.TestCase):
    def test_ratios_are_paired_with_the_best_peer(self):
        row = ours(bench.rows_of(RESULT, 'forward', 1))
        self.assertEqual(row['best_peer'], 'torch/<b>')
        self.assertEqual(row['speed_over_best_peer'], [2, 2, 2])
        self.assertEqual((row['flops_per_second'], row['share_of_peak']), (50, 0.25))

    def test_a_decode_row_has_its_share_of_the_bandwidth(self):
        row = ours(bench.rows_of(RESULT, 'decode', 1))
        self.assertEqual(row['share_of_bandwidth'], 4 * 2 * 4 * 2 / 2.0 / 64)

    def test_without_times_or_peers(self):
        self.assertEqual(bench.rows_of({'times': {}}, 'forward', 1), [])
        alone = dict(RESULT, times={'cpu/flash2': [1.0]})
        self.assertNotIn('speed_over_best_peer', ours(bench.rows_of(alone, 'forward', 1)))

    def test_a_regression_is_seen_and_noise_is_not(self):
        now = bench.rows_of(RESULT, 'forward', 1)
        for earlier, seen in (([2.5, 3, 4], 1), ([1.5, 2.5, 3], 0), ([1, 1, 1], 0)):
            before = [dict(ours(now), speed_over_best_peer=earlier)]
            self.assertEqual(len(bench.regressions(now, before)), seen, earlier)
        self.assertEqual(bench.regressions(now, []), [])
        other = [dict(ours(now), speed_over_best_peer=[9, 9, 9], threads=2)]
        self.assertEqual(bench.regressions(now, other), [])

    def test_libraries_that_are_not_built_in_are_missing(self):
        found, missing = bench.find_peers(['onednn/flash'])
        self.assertNotIn('oneDNN', missing)
        self.assertIn('libxsmm-dev', missing['libxsmm'])
        self.assertIn('libopenblas-dev', missing['OpenBLAS'])
        self.assertNotIn('onednn/flash', found)

    def test_the_table_has_a_row_for_each_problem(self):
        rows = bench.rows_of(dict(RESULT, problem='b=1,hq=2,hkv=2,sq=4,sk=4,d=2,dv=2,mask=causal_tl,dtype=f32'), 'forward', 1)
        self.assertEqual(bench.table(rows)[2:], ['| hq=2,sq=4,d=2,mask=causal_tl | forward | 2.00 [2.00 2.00] torch | 25 % |'])
        twice = bench.table(rows + [dict(row, threads=2) for row in rows])
        self.assertEqual(twice[2].count('2.00 [2.00 2.00] torch'), 2)
        decode = bench.rows_of(RESULT, 'decode', 1)
        self.assertIn(' 50 % of the bandwidth |', bench.table(decode)[2])

    def test_the_documents_table_is_that_of_the_newest_record(self):
        record = sorted(glob.glob(os.path.join(ROOT, 'certify', 'bench', 'results', '*.json')))[-1]
        with open(record) as file, open(os.path.join(ROOT, 'docs', 'how-to', 'time-kernels.md')) as page:
            rows, lines = json.load(file)['rows'], page.read().splitlines()
        self.assertEqual([line for line in bench.table(rows) if line not in lines], [])
        changed = [dict(row, best_peer='other/flash') if 'best_peer' in row else row for row in rows]
        self.assertEqual(len([line for line in bench.table(changed) if line not in lines]), len(bench.table(rows)) - 2)

    def test_a_record_is_read_as_it_was_written(self):
        record = {'schema': 'attest-cpu-bench-1', 'rows': bench.rows_of(RESULT, 'forward', 1)}
        text = bench.dumped(record)
        self.assertEqual(json.loads(text), record)
        self.assertEqual(len([line for line in text.splitlines() if '"problem"' in line]), len(record['rows']))

    def test_examples_name_files_that_exist(self):
        named = re.findall(r'certify/bench/results/\S+', bench.__doc__)
        self.assertNotEqual(named, [])
        for path in named:
            self.assertTrue(os.path.isfile(os.path.join(ROOT, path)), path)

    def test_the_page_escapes(self):
        rows = bench.rows_of(RESULT, 'forward', 1)
        page = bench.page({'rows': rows, 'rounds': 3, 'cpu_target': 'AVX2', 'missing': {'numpy': '<none>'}, 'refused': ['a < b'],
                           'host': {'processor': 'A & B', 'threads': 2, 'load': [0.5, 1.5]}})
        for text in ('A &amp; B', '&lt;none&gt;', 'a &lt; b', 'torch/&lt;b&gt;', '2.00 [2.00 2.00]', '<svg'):
            self.assertIn(text, page)
        self.assertNotIn('<b>', page)
        for of_reports in ('--ground:', '<main>', 'th.sorts', "'use strict'"):
            self.assertIn(of_reports, page)


if __name__ == '__main__':
    unittest.main()
