#!/usr/bin/env python3
"""Holds ci/on-device to its word by rehearsals: a step that fails, hangs or crashes costs no other,
records that are written stay, --resume goes on, and the committed page is that of the records."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from unittest import mock

CI = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, CI)
import device_tools as tools
from on_device import bundle, golden, page, records, rehearsal
from on_device.run import Run, outcome_of
from on_device.steps import STEPS, Step, on_cuda

NAMES = [step.name for step in STEPS]
# A program of every step.
PROGRAMS = 'attest certify|torch flash|^gpu_device_test|^compute-sanitizer|golden| rates|triton'
failures = []


def check(what, got, wanted):
    if got != wanted:
        failures.append(f'{what}: got {got}, wanted {wanted}')


def script(*words, **environment):
    return subprocess.Popen([sys.executable, os.path.join(CI, 'on-device'), *words], text=True,
                            env={**os.environ, **environment}, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def asked(*words, **environment):
    process = script(*words, **environment)
    output, _ = process.communicate()
    return process.returncode, output


class StandIn:
    """Runs in a folder of stand-ins."""

    def __init__(self, folder):
        self.folder, self.log = folder, os.path.join(folder, 'log')
        self.environment = {**rehearsal.stand_in(folder), 'STAND_IN_LOG': self.log}

    def start(self, *words, **environment):
        return script('run', '--folder', self.folder, '--results',
                      os.path.join(self.folder, 'out'), *words, **self.environment, **environment)

    def run(self, *words, **environment):
        process = self.start(*words, **environment)
        output, _ = process.communicate()
        return process.returncode, output

    def path(self):
        return records.path_of(os.path.join(self.folder, 'out'),
                               records.run_record({'device': 'stand-in'}))

    def outcomes(self):
        """{step: outcomes of its tasks} on record."""
        found = {}
        for row in records.last_run(self.path()):
            if row['kind'] == 'task':
                found.setdefault(row['step'], set()).add(row['outcome'])
        return found

    def wait_for(self, command):
        for _ in range(600):
            if os.path.exists(self.log):
                with open(self.log, encoding='utf-8') as file:
                    if command in file.read():
                        return
            time.sleep(0.05)
        failures.append(f'never asked: {command}')

    def commands(self):
        """Returns the commands since the last call."""
        with open(self.log, encoding='utf-8') as file:
            found = file.read()
        os.remove(self.log)
        return found

    def left(self):
        """Processes that it has started and that go on."""
        found = []
        for name in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{name}/environ', encoding='utf-8', errors='replace') as file:
                    if f'STAND_IN_LOG={self.log}\0' in file.read():
                        found.append(name)
            except OSError:
                pass
        return found


def test_rehearsal():
    status, output = asked('rehearse')
    check('a rehearsal passes', status, 0)
    for name in NAMES:
        check(f'{name} is rehearsed', re.search(rf'^{name} +[1-9]\d* +0 +0 +0 ', output, re.M)
              is not None, True)
    check('it tells the commands', 'attest certify gpu/flash2@device' in output, True)
    check('seconds of all steps', sum(step.seconds for step in STEPS), 540)


def test_programs_that_go_wrong(stand_in, what):
    """Every step has its outcome, whatever the one before was."""
    status, output = stand_in.run(**{f'STAND_IN_{what}': PROGRAMS})
    check(f'{what}: the exit code', status, 1)
    found = stand_in.outcomes()
    for name in NAMES:
        check(f'{what}: {name}', ('refused' if name == 'sanitizers' else 'failed') in found.get(
            name, ()), True)
    check(f'{what}: others pass', 'passed' in found['counts'] & found['times'] & found['families'] &
          found['wild'], True)


def test_programs_that_hang(stand_in):
    """Every step has its turn though each before it has hung, and the end comes in time."""
    start = time.monotonic()
    _, output = stand_in.run('--limit', '6', STAND_IN_HANGS=PROGRAMS)
    check('the limit holds', time.monotonic() - start < 6 + tools.GRACE, True)
    for name in NAMES:
        check(f'HANGS: {name}', re.search(rf'^{name}( +\d+){{3}} +[1-9]', output, re.M) is not None,
              True)
    check('processes of what hung', stand_in.left(), [])


def test_kernels_of_others(stand_in):
    """Each kernel that others wrote costs itself alone; --resume does what had no time."""
    wrong = {'STAND_IN_FAILS': 'torch flash, bf16', 'STAND_IN_CRASHES': 'JAX cuDNN',
             'STAND_IN_HANGS': 'torch cuDNN, bf16'}
    records.append(stand_in.path(), [records.run_record({'device': 'stand-in'})])
    with mock.patch.multiple(tools, root=stand_in.folder, LEAST_SECONDS=1), \
            mock.patch.dict(os.environ, {**stand_in.environment, **wrong}):
        good = Run(stand_in.path(), [], stand_in.folder, 12).perform(
            [step for step in STEPS if step.name == 'wild'])
    done = {row['task']: row['outcome']
            for row in records.last_run(stand_in.path()) if row['kind'] == 'task'}
    check('wild: what failed is told', good, False)
    check('wild: outcomes', done, {
        **{name: 'passed' for name in on_cuda.SUBJECTS if name != 'torch cuDNN, bf16'},
        'torch flash, bf16': 'failed', 'JAX cuDNN, bf16': 'failed'})
    check('wild: processes of what hung', stand_in.left(), [])
    stand_in.commands()
    stand_in.run('--step', 'wild', '--resume')
    check('wild: resumed', [line for line in stand_in.commands().splitlines() if 'certify' in line],
          ['certify.py --one on_cuda torch cuDNN, bf16 112'])
    tools.limit = tools.until = None


def test_records_of_others():
    """A finding is a failure, a device that refuses none; other words are no record."""
    finding = {'law': 'l', 'message': 'm', 'case': {'problem': 'p'}}
    for answer, wanted in (((0, json.dumps({'findings': []}), ''), ('passed', '')),
                           ((0, 'words\n' + json.dumps({'findings': [finding]}), ''),
                            ('failed', 'l: m: p')),
                           ((77, '', 'skipped: no device'), ('refused', 'skipped: no device')),
                           ((0, 'words', ''), ('failed', 'status 0')),
                           ((-11, '', ''), ('failed', 'status -11'))):
        with mock.patch.object(tools, 'answer_of', lambda command, answer=answer: answer):
            row = {'kind': 'wild', **tools.outside('on_cuda', 'x')}
            check(f'of {answer}', outcome_of([row]), wanted)


def test_kernels_in_triton():
    """Results before a crash stay, bytes are summed by kernel, and what is not there is refused."""
    made = [{'kernel': 'a'}, {'kernel': 'b'}]
    lines = ''.join(json.dumps(row) + '\n' for row in made)
    numbers = ['Kernel Name', *golden.ALL_METRICS]  # atom, ld, ldgsts, red, st
    csv = '\n'.join(','.join(f'"{word}"' for word in row) for row in (
        numbers, ['', *['byte'] * 5], ['a', '4', '1,000', '0', '8', '20'], ['a', '0', '24', '64', '0', '0'],
        ['fill', '0', '0', '0', '0', '4000']))
    bytes_of_a = {'kernel': 'a', 'moved': {'read_bytes': 1100, 'written_bytes': 32}}
    for asked, answer, wanted in (
            (golden.results, (0, lines, ''), made),
            (golden.results, (-11, lines + '{"kern', ''), [*made, {'failed': 'status -11'}]),
            (golden.results, (0, '', ''), [{'failed': 'status 0'}]),
            (golden.results, (77, '', 'skipped: no device'), [{'refused': 'skipped: no device'}]),
            (lambda: golden.profiled(made), (0, lines + csv, ''),
             [bytes_of_a, {'kernel': 'b', 'refused': 'the profiler does not show it'}]),
            (lambda: golden.profiled(made[:1]), (1, lines + '==ERROR== locked\n', ''),
             [{'kernel': 'a', 'refused': '==ERROR== locked'}]),
            (lambda: golden.profiled([{'refused': 'no device'}]), (0, '', ''),
             [{'refused': 'no kernel has results'}])):
        with mock.patch.object(tools, 'answer_of', lambda command, answer=answer: answer):
            check(f'of {answer}', asked(), wanted)


def test_stops(stand_in):
    """A step without end is ended with what it has started, and --resume does it alone again."""
    steps = ('--step', 'tests', 'sanitizers', 'counts', 'times')
    status, output = stand_in.run(*steps, '--limit', '40', STAND_IN_HANGS=r'test \[stray')
    check('no time is no failure', status, 0)
    check('steps after one that hangs', stand_in.outcomes(),
          {name: {'passed'} for name in steps[1:]})
    check('the table', re.search('^tests +1 +0 +0 +1 ', output, re.M) is not None, True)
    check('processes of what hung', stand_in.left(), [])
    stand_in.commands()
    stand_in.run(*steps, '--resume')
    check('resumed: what had no time, alone', stand_in.commands().splitlines(),
          ['attest_gpu_measure device', 'attest_gpu_measure kernels', 'gpu_device_test [stray]'])
    stand_in.run('--step', 'tests')
    check('not resumed: all', 'gpu_device_test ~[stray]' in stand_in.commands(), True)


def test_ends(stand_in, number):
    """Checks that records from before the run is ended stay, and a line cut short is left out."""
    process = stand_in.start('--step', 'tests', 'counts', STAND_IN_HANGS='golden')
    stand_in.wait_for('golden')
    process.send_signal(number)
    process.communicate()
    check(f'records after signal {number}', stand_in.outcomes().get('tests'), {'passed'})
    if number == signal.SIGTERM:
        check('processes after SIGTERM', stand_in.left(), [])
    for one in stand_in.left():  # nothing ends what its starter could not
        os.kill(int(one), signal.SIGKILL)
    with open(stand_in.path(), 'a', encoding='utf-8') as file:
        file.write('{"kind": "task", "st')
    stand_in.commands()
    status, _ = stand_in.run('--step', 'tests', 'counts', '--resume')
    check('resumed after its end', (status, 'counts' in stand_in.outcomes()), (0, True))
    check('and not from the beginning', 'gpu_device_test [' in stand_in.commands(), False)


def command(*words):
    def answers(found):
        status, output, errors = tools.answer_of(words)
        return {'made': [{} if status == 0 else {'failed': f'{status} {output}{errors}'}]}
    return answers


def mistaken(found):
    raise ValueError('a mistake of the step')


def test_own_limits(folder):
    """Holds tasks beyond their own limit, dead ones and mistakes in Python to their own failure."""
    wrong = (('hangs', command('sleep', '60')), ('dies', command('sh', '-c', 'kill -SEGV $$')),
             ('fails', command('false')), ('is not there', command('/no/such/program')),
             ('is mistaken', mistaken))
    steps = [Step('wrong', '', 1, 3, 2, lambda *_: wrong),
             Step('good', '', 1, 9, 1, lambda *_: (('true', command('true')),))]
    path = os.path.join(folder, 'results.jsonl')
    records.append(path, [records.run_record({'device': 'x'})])
    check('what failed is told', Run(path, [], folder, 60).perform(steps), False)
    outcomes = {row['task']: row['outcome'] for row in records.read(path) if row['kind'] == 'task'}
    check('outcomes', outcomes, {**{name: 'failed' for name, _ in wrong}, 'true': 'passed'})
    texts = ' '.join(row['failed'] for row in records.read(path) if 'failed' in row)
    for text in ('not done after 3 s', '-11', 'No such file', 'a mistake of the step'):
        check(f'why: {text}', text in texts, True)
    tools.limit = tools.until = None


def test_bad_options(folder):
    for words, text in (
            ((), 'required: verb'), (('wrong',), "invalid choice: 'wrong'"),
            (('run', '--wrong'), 'unrecognized arguments: --wrong'),
            (('run', '--limit', '0'), 'needs whole seconds from 1'),
            (('run', '--step', 'wrong'), "no step 'wrong'; the steps are certify, tests"),
            (('run', '--folder', folder), 'make it with ci/on-device build')):
        status, output = asked(*words)
        check(f'exit code of {words}', status, 2)
        check(f'message of {words}: {output}', text in output, True)


def test_older_system(stand_in):
    with open(os.path.join(stand_in.folder, 'manifest.json'), 'w', encoding='utf-8') as file:
        file.write('{"glibc": [99, 0]}')
    status, output = stand_in.run()
    check('an older C library', (status, 'the programs need glibc 99.0' in output), (2, True))


def test_no_device(stand_in):
    status, output = stand_in.run(STAND_IN_FAILS='device')
    check('no device', (status, 'needs a CUDA device: a stand-in that fails' in output), (2, True))


def test_page(folder):
    with open(os.path.join(tools.root, page.PLACE), encoding='utf-8') as file:
        committed = file.read()
    check('the committed page is made by ci/on-device page',
          committed == page.text(os.path.join(tools.root, 'gpu', 'results')), True)
    path = os.path.join(folder, '2026-01-02-x.jsonl')
    bytes_ = {'read_bytes': 30, 'written_bytes': 10}
    small = {'kernel': 'gpu/x', 'problem': page.steps.SMALL_PROBLEM}
    golden = {'kind': 'golden', 'kernel': 'gpu/x', 'problem': 'p', 'direction': 'forward',
              'device': bytes_, 'emulated': bytes_}
    records.append(path, [
        {'kind': 'run', 'date': '2026-01-02T03:04:05', 'device': 'X'},
        {'kind': 'certify', 'kernel': 'gpu/x', 'verdict': 'violated', 'failed': 'O differs'},
        {**golden, 'device': {'read_bytes': 1}},
        {'kind': 'run', 'date': '2026-01-03T03:04:05', 'device': 'X'},
        {'kind': 'certify', 'kernel': 'gpu/x', 'verdict': 'certified'},
        {'kind': 'wild', 'subject': 'torch y', 'verdict': 'incomplete', 'findings': []},
        {'kind': 'certify', 'kernel': 'gpu/y', 'verdict': 'violated', 'failed': 'O differs'},
        golden, {**golden, 'device': {'read_bytes': 1}},
        {'kind': 'traffic', **small, 'counted': bytes_, 'profiled': {'read_bytes': 20}},
        {'kind': 'times', **small, 'forward_seconds': 0.5, 'share_of_copy_rate': 0.25},
        {'kind': 'sdpa', 'problem': f'{page.steps.SMALL_PROBLEM},dtype=f32', 'variants': [
            {'direction': 'forward', 'seconds': 0.25}, {'direction': 'forward', 'seconds': 1},
            {'direction': 'forward', 'refused': 'outside its bound'}]}])
    text = page.text(folder)
    check('certified', '**1 of 2 kernels are certified on a device.**' in text, True)
    check('its line', [line for line in text.splitlines() if line.startswith('| `gpu/x`')],
          ['| `gpu/x` | 2026-01-03 | 1 of 2 | 40 | 0.50 | forward 500 ms | copies 25.0% | '
           'forward 2 |'])
    check('a kernel of others', '- wild, `torch y`: incomplete (2026-01-03)' in text, True)
    check('one that is not', '| `gpu/y` | violated |' in text, True)
    check('a page of other records is seen', committed == text, False)


def test_bundle(folder):
    path = os.path.join(folder, 'program')
    with open(path, 'wb') as file:
        file.write(b'\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.17\0')
    check('the C library that a program needs', bundle.glibc_of(path), [2, 34])
    names = [os.path.basename(one) for one in bundle.libraries(shutil.which('ls'))]
    check('the C library does not travel', 'libc.so.6' in names, False)
    check('libraries of the system', [bundle.OF_THE_SYSTEM.match(one) is not None for one in (
        'libc.so.6', 'libm.so.6', 'libcuda.so.1', 'ld-linux-x86-64.so.2', 'libfmt.so.9',
        'libcudart.so.13', 'libstdc++.so.6')], [True, True, True, True, False, False, False])
    place, root = os.path.join(folder, 'package'), os.path.join(folder, 'root')
    bundle.copy(shutil.which('ls'), os.path.join(root, 'build', 'cuda', 'lib', 'libattest.so'))
    bundle.copy(os.path.join(tools.root, 'python', 'attest'), os.path.join(root, 'python', 'attest'))
    with mock.patch.object(tools, 'root', root), \
            mock.patch.object(bundle, 'OF_PYTHON', re.compile(re.escape(names[0]))):
        bundle.pack_package(place)
    packed = [one for _, one in bundle.sizes(place)]
    check('the package travels', {'attest/__init__.py', 'attest/libattest.so'} <= {*packed}, True)
    check('with the libraries of its library, but for those of Python',
          sorted(one for one in packed if one.startswith('lib/')),
          sorted(f'lib/{one}' for one in names[1:]))
    check("PyTorch's libraries", [bundle.OF_PYTHON.match(one) is not None for one in (
        'libstdc++.so.6', 'libgcc_s.so.1', 'libfmt.so.9')], [True, True, False])
    for place in bundle.SCRIPTS:
        check(f'{place} can travel', os.path.exists(os.path.join(tools.root, place)), True)


test_rehearsal()
test_records_of_others()
test_kernels_in_triton()
# A program that crashes has the outcome of one that fails, and SIGKILL leaves what SIGTERM does: for time.
ONLY_IN_NIGHTLY = ((test_programs_that_go_wrong, ('CRASHES',)), (test_ends, (signal.SIGKILL,)))
for test, words in ((test_programs_that_go_wrong, ('FAILS',)), (test_programs_that_hang, ()),
                    (test_kernels_of_others, ()), (test_stops, ()), (test_ends, (signal.SIGTERM,)),
                    (test_no_device, ()), (test_older_system, ()),
                    *(ONLY_IN_NIGHTLY if 'ATTEST_NIGHTLY' in os.environ else ())):
    with tempfile.TemporaryDirectory() as folder:
        test(StandIn(folder), *words)
for test in (test_own_limits, test_bad_options, test_page, test_bundle):
    with tempfile.TemporaryDirectory() as folder:
        test(folder)
for failure in failures:
    print(failure)
print(f'{len(failures)} failures')
sys.exit(1 if failures else 0)
