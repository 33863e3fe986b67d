"""ci/bench-cpu pairs ratios by round, sees a regression and no other, says what it left out, and escapes what it writes."""
import contextlib
import copy
import glob
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.join(HERE, '..', '..')
LOADER = importlib.machinery.SourceFileLoader('bench_cpu', os.path.join(HERE, '..', 'bench-cpu'))
bench = importlib.util.module_from_spec(importlib.util.spec_from_loader('bench_cpu', LOADER))
LOADER.exec_module(bench)

RESULT = {'problem': 'hq=1,hkv=1,sq=4,sk=4,d=2', 'useful_flops': 100.0, 'peak_flops': [200.0, 200.0, 200.0],
          'read_bandwidth': [64.0, 64.0, 64.0],
          'times': {'cpu/flash2': [1.0, 2.0, 4.0], 'torch/math': [3.0, 6.0, 12.0], 'torch/<b>': [2.0, 4.0, 8.0]}}
FULL = 'b=1,hq=2,hkv=2,sq=4,sk=4,d=2,dv=2,mask=causal_tl,dtype=f32'


def ours(rows):
    return next(row for row in rows if row['name'] == 'cpu/flash2')


class Library:
    """Answers like the library of peers, without a call of any kernel; `refuses`: names of kernels."""

    def __init__(self, refuses=()):
        self.calls = []

        def run(names, problem, smaller, backward, threads, rounds, seed):
            names, problem = names.decode().split(), problem.decode()
            self.calls.append((problem, threads, backward, names, dict(bench.TIMED)))
            words = dict(word.split('=') for word in problem.split(','))
            full = f"b=1,hq={words['hq']},hkv={words['hq']},sq={words['sq']},sk={words.get('sk', words['sq'])},d={words['d']}"
            full += f",dv={words['d']},mask={words.get('mask', 'none')},dtype={words.get('dtype', 'f32')},layout=bshd,scale=1/sqrt(d)"
            times = {name: [1.0 if name.startswith('cpu/') else 2.0 + len(name) / 100] * rounds for name in names if name not in refuses}
            return json.dumps({'problem': full, 'cpu_target': 'AVX2', 'useful_flops': 1e9, 'times': times, 'peak_flops': [3e9, 2e9, 9e9],
                               'refused': {name: 'is wrong' for name in names if name in refuses}, 'read_bandwidth': [1e9 * threads]}).encode()
        self.attest_bench_run, self.attest_bench_add_peer = run, lambda *peer: 1

        def peers():
            return b'onednn/flash'
        self.attest_bench_peers = peers


# Directions, dtypes, LSE and ulp of exp as the peers of Python have them.
PEERS = {'torch/flash': (3, 14, 1, 839, None), 'torch/math': (1, 14, 0, 0, None), 'numpy/unfused': (1, 2, 0, 0, None)}


def run(*options, library=None, peers=tuple(PEERS), earlier=None, name='AMD'):
    """(exit status, printed text, record, page) of the script with such a library."""
    with tempfile.TemporaryDirectory() as out, contextlib.ExitStack() as stack:
        if earlier:
            with open(os.path.join(out, 'earlier.json'), 'w') as file:
                file.write(bench.dumped(earlier))
            options += ('--against', os.path.join(out, 'earlier.json'))
        printed = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        for place, what, new in ((bench.ctypes, 'CDLL', lambda path: library or Library()), (bench, 'processor', lambda: name),
                                 (bench, 'find_peers', lambda built_in: ({one: PEERS[one] for one in peers}, {})),
                                 (sys, 'argv', ['bench-cpu', '--out', out, '--build', out, *options])):
            stack.enter_context(mock.patch.object(place, what, new))
        stack.enter_context(mock.patch.dict(os.environ))
        status = 0
        try:
            bench.main()
        except SystemExit as end:
            status = end.code
        with open(os.path.join(out, 'cpu_bench.json')) as record, open(os.path.join(out, 'cpu_bench.html')) as page:
            return status, printed.getvalue(), json.load(record), page.read()


class RunTest(unittest.TestCase):
    """Runs of the script with a library that answers at once."""

    @classmethod
    def setUpClass(cls):
        cls.status, cls.printed, cls.record, cls.page = run()

    def against(self, earlier=None, **changed):
        return run('--only', 'forward', '--threads', '1', earlier=earlier or self.record, **changed)[:2]

    def test_rows_and_head_have_the_peak_and_the_bandwidth(self):
        for row in self.record['rows']:
            self.assertEqual((row['peak_flops_per_second'], row['read_bytes_per_second']), (3e9, 1e9 * row['threads']))
        self.assertEqual(self.record['peak_flops_per_second'], [3e9] * 3)
        self.assertEqual(self.record['read_bytes_per_second'], {'1': [1e9] * 3, '2': [2e9] * 3})
        for text in (self.printed, self.page):
            self.assertIn('Peak of fused multiply-adds of one thread 3.0 [3.0 3.0] GFLOP/s, read bandwidth 1.0 [1.0 1.0] GB/s on 1 thread, '
                          '2.0 [2.0 2.0] GB/s on 2 threads', text)
        self.assertIn('% of the bandwidth', self.page)

    def test_the_record_says_of_what_it_is(self):
        self.assertEqual(self.record['host']['commit'], bench.commit_of(bench.ROOT))
        self.assertEqual(self.record['versions'], bench.versions(Library(), 'nowhere'))

    def test_what_is_left_out_is_named_with_the_reason(self):
        self.assertEqual(self.record['missing'], {
            'eigen/unfused': 'without a mask alone; float32 alone; not for decoding', 'onednn/flash': 'forward alone; float32 alone',
            'torch/math': 'forward alone', 'numpy/unfused': 'forward alone; float32 alone; on one thread alone'})
        self.assertIn('missing: torch/math (forward alone)', self.printed)
        self.assertIn('missing: torch/math (forward alone)', self.page)
        self.assertEqual(run('--only', 'forward', '--threads', '1')[2]['missing'], {'eigen/unfused': 'without a mask alone'})

    def test_no_peer_is_left_out_unnamed(self):
        library = Library()
        run(library=library)
        for problem, threads, backward, names, _ in library.calls:
            for name in {'eigen/unfused', 'onednn/flash', *PEERS} - set(names):
                self.assertIn(name, self.record['missing'], (problem, threads, backward))

    def test_the_same_again_is_no_regression(self):
        self.assertEqual(self.status, 0)
        status, printed = self.against()
        self.assertEqual((status, 'note' in printed, 'regression' in printed), (0, False, False))

    def test_a_kernel_that_is_not_timed_any_more_is_a_regression(self):
        status, printed = self.against(library=Library(refuses=['cpu/flash2']))
        self.assertEqual(status, 1)
        self.assertEqual(printed.count('regression: '), 8)
        self.assertIn('regression: forward hq=4,sq=512,d=64, 1 thread: cpu/flash2 was not timed; the earlier record has it', printed)

    def test_problems_that_are_not_asked_for_are_no_regression(self):
        without = dict(self.record, rows=[row for row in self.record['rows'] if row['kind'] != 'forward'])
        status, printed = self.against(without, library=Library(refuses=['cpu/flash2']))
        self.assertEqual(status, 0)
        self.assertIn('note: 8 of 8 problems are not in the earlier record', printed)

    def test_a_best_peer_that_is_missing_is_noted(self):
        status, printed = self.against(peers=('torch/math', 'numpy/unfused'), library=Library())
        self.assertEqual((status, 'note: ' in printed), (0, False))
        earlier = copy.deepcopy(self.record)
        for row in earlier['rows']:
            if 'best_peer' in row:
                row['best_peer'] = 'torch/flash'
        status, printed = self.against(earlier, peers=('torch/math', 'numpy/unfused'))
        self.assertEqual(status, 0)
        self.assertIn('note: torch/flash was the best peer of the earlier record on 8 problems, and was not timed on them', printed)

    def test_another_processor_or_target_is_noted(self):
        status, printed = self.against(dict(self.record, cpu_target='AVX3'), name='Xeon')
        self.assertEqual(status, 0)
        self.assertIn('note: compared with a record of another processor: AMD, here Xeon', printed)
        self.assertIn('note: compared with a record of another target: AVX3, here AVX2', printed)

    def test_older_records_are_read(self):
        later = ('peak_flops_per_second', 'read_bytes_per_second', 'versions')
        older = {key: value for key, value in self.record.items() if key not in later}
        older['rows'] = [{key: value for key, value in row.items() if key not in later} for row in older['rows']]
        older['host'] = {'processor': 'AMD', 'threads': 2, 'load': [1, 2]}
        status, printed = self.against(older)
        self.assertEqual((status, 'note' in printed), (0, False))
        self.assertEqual(bench.table(older['rows']), bench.table(self.record['rows']))
        self.assertEqual(bench.aims(older['rows']), bench.aims(self.record['rows']))
        self.assertNotIn('Peak of fused', bench.page(older))

    def test_a_record_without_rows(self):
        status, _, record, _ = run('--only', 'decode', library=Library(refuses=['cpu/flash2', 'torch/flash', 'torch/math', 'numpy/unfused',
                                                                                'onednn/flash']))
        self.assertEqual((status, record['rows'], len(record['refused'])), (0, [], 30))


class CopyTest(unittest.TestCase):
    """Results of torch lie in its own memory."""

    def kept(self, **call):
        copied = []
        tensor = mock.Mock(side_effect=lambda call, name: types.SimpleNamespace(copy_=lambda value: copied.append((name, value))))
        bench.keep(types.SimpleNamespace(**call), tensor, {'O': 7})
        return copied

    def test_results_of_timed_calls_are_not_copied_and_others_are(self):
        with mock.patch.dict(bench.TIMED, seqlen_k=2048, backward=1):
            self.assertEqual(self.kept(seqlen_k=2048, backward=1), [])
            self.assertEqual(self.kept(seqlen_k=200, backward=1), [('O', 7)])
            self.assertEqual(self.kept(seqlen_k=2048, backward=0), [('O', 7)])  # backward calls read it

    def test_no_verified_call_is_taken_for_a_timed_one(self):
        for which in ('quick', 'full'):
            for problem, smaller, *_ in bench.configurations(which, [1]):
                self.assertLess(bench.keys_of(smaller), bench.keys_of(problem))

    def test_the_script_says_which_calls_are_timed(self):
        library = Library()
        run(library=library)
        for problem, _, backward, _, timed in library.calls:
            self.assertEqual(timed, {'seqlen_k': bench.keys_of(problem), 'backward': backward})


class CommitTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which('git'), 'git is not installed')
    def test_the_commit_of_a_clone(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(bench.commit_of(folder))
            git = ['git', '-C', folder, '-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false']
            with open(os.path.join(folder, 'file'), 'w') as file:
                file.write('1')
            for command in (['init', '-q'], ['add', 'file'], ['commit', '-q', '-m', 'one'], ['tag', '-m', 'v', 'v1']):
                subprocess.run(git + command, check=True)
            self.assertRegex(bench.commit_of(folder), '^[0-9a-f]{40}$')
            with open(os.path.join(folder, 'file'), 'w') as file:
                file.write('2')
            self.assertRegex(bench.commit_of(folder), r'^[0-9a-f]{40}\+changes$')
            os.mkdir(os.path.join(folder, 'inner'))  # unpacked within another project's clone
            self.assertIsNone(bench.commit_of(os.path.join(folder, 'inner')))

    def test_the_compiler_is_that_of_the_build(self):
        with tempfile.TemporaryDirectory() as build:
            os.makedirs(os.path.join(build, 'CMakeFiles', '3.25.1'))
            with open(os.path.join(build, 'CMakeFiles', '3.25.1', 'CMakeCXXCompiler.cmake'), 'w') as file:
                file.write('set(CMAKE_CXX_COMPILER "/usr/bin/c++")\nset(CMAKE_CXX_COMPILER_ID "GNU")\nset(CMAKE_CXX_COMPILER_VERSION "12.2.0")\n')
            self.assertEqual(bench.versions(Library(), build)['compiler'], 'GNU 12.2.0')
            self.assertNotIn('compiler', bench.versions(Library(), os.path.join(build, 'CMakeFiles')))


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
        now = bench.rows_of(dict(RESULT, problem=FULL), 'forward', 1)
        asked = [(FULL, 1, 'forward')]
        for earlier, seen in (([2.5, 3, 4], 1), ([1.5, 2.5, 3], 0), ([1, 1, 1], 0)):
            before = [dict(ours(now), speed_over_best_peer=earlier)]
            self.assertEqual(len(bench.regressions(now, before, asked)), seen, earlier)
        self.assertEqual(bench.regressions(now, [], asked), [])
        other = [dict(ours(now), speed_over_best_peer=[9, 9, 9], threads=2)]
        self.assertEqual(bench.regressions(now, other, asked), [])

    def test_libraries_that_are_not_built_in_are_missing(self):
        found, missing = bench.find_peers(['onednn/flash'])
        self.assertNotIn('oneDNN', missing)
        self.assertIn('libxsmm-dev', missing['libxsmm'])
        self.assertIn('libopenblas-dev', missing['OpenBLAS'])
        self.assertNotIn('onednn/flash', found)

    def test_the_table_has_a_row_for_each_problem(self):
        rows = bench.rows_of(dict(RESULT, problem=FULL), 'forward', 1)
        self.assertEqual(bench.table(rows)[2:], ['| hq=2,sq=4,d=2,mask=causal_tl | forward | 2.00 [2.00 2.00] torch | 25 % |'])
        twice = bench.table(rows + [dict(row, threads=2) for row in rows])
        self.assertEqual(twice[2].count('2.00 [2.00 2.00] torch'), 2)
        decode = bench.rows_of(RESULT, 'decode', 1)
        self.assertIn(' 50 % of the bandwidth |', bench.table(decode)[2])

    def test_the_documents_table_is_that_of_the_newest_record(self):
        record = sorted(glob.glob(os.path.join(ROOT, 'certify', 'bench', 'results', '*.json')))[-1]
        with open(record) as file, open(os.path.join(ROOT, 'docs', 'how-to', 'time-kernels.md')) as page:
            record, lines = json.load(file), page.read().splitlines()
        rows = record['rows']
        self.assertEqual([line for line in bench.table(rows) + bench.aims(rows) if line not in lines], [])
        before, after = (f'{load:.2f}' for load in record['host']['load'])
        self.assertIn(f'load averages of the minute before were {before} at the start and {after} at the end', '\n'.join(lines))
        changed = [dict(row, best_peer='other/flash') if 'best_peer' in row else row for row in rows]
        self.assertEqual(len([line for line in bench.table(changed) if line not in lines]), len(bench.table(rows)) - 2)

    def test_aims_count_what_is_reached_and_name_what_is_not(self):
        def row(kind, n, threads=1, name='cpu/flash2', **measures):
            return {'name': name, 'kind': kind, 'problem': f'b=1,hq=4,hkv=4,sq={n},sk={n},d=64,dv=64', 'threads': threads, **measures}
        rows = [row('forward', 2048, speed_over_best_peer=[1, 1.05, 2], share_of_peak=0.7, flops_per_second=110),
                row('forward', 2048, 2, speed_over_best_peer=[1, 1.0499, 2], share_of_peak=0.749, flops_per_second=220),
                row('backward', 512, share_of_peak=0.7), row('bf16', 512, speed_over_best_peer=[0, 1, 2]),
                row('pairs', 512, name='cpu/flash2_bf16', speed_over_best_peer=[0, 0.9, 2]), row('pairs', 512, speed_over_best_peer=[2, 2, 2]),
                row('decode', 8, share_of_peak=0.01, share_of_bandwidth=0.84),
                row('ragged', 2047, flops_per_second=101), row('ragged', 2049, flops_per_second=99), row('ragged', 2047, 3, flops_per_second=1)]
        self.assertEqual([line.split(' | ', 1)[1] for line in bench.aims(rows)[2:]], [
            '1 of 2 | hq=4,sq=2048,d=64 (2: 1.0499) |', '0 of 2 | hq=4,sq=2048,d=64 (1: 70.0 %, 2: 74.9 %) |',
            '1 of 1 | none |', '1 of 1 | none |', '0 of 1 | hq=4,sq=512,d=64 (1: 0.9000) |', '0 of 1 | hq=4,sq=8,d=64 (1: 84.0 %) |', '1 of 2 | hq=4,sq=2049,d=64 (1: 0.9000) |'])

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
