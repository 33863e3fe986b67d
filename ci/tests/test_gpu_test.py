#!/usr/bin/env python3
"""Holds ci/test-gpu and ci/device_tools.py to what they make of answers, good, bad and refused."""
import importlib.machinery
import importlib.util
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), os.pardir, 'test-gpu')
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(SCRIPT))
LOADER = importlib.machinery.SourceFileLoader('test_gpu', SCRIPT)
test_gpu = importlib.util.module_from_spec(importlib.util.spec_from_loader('test_gpu', LOADER))
LOADER.exec_module(test_gpu)
tools, failure = test_gpu.tools, test_gpu.records.failure

JUNIT = """<testsuite tests="4"><testcase name="a" status="run"/><testcase name="b" status="fail"/>
<testcase name="gpu_device" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase name="c" status="run"/></testsuite>"""
PROFILE = '''==PROF== Connected to process 7
"ID","Kernel Name","lts__t_sectors_srcunit_tex_op_read.sum","lts__t_sectors_srcunit_tex_op_write.sum"
"","","sector","sector"
"0","flash2_forward","1,000","10"
"1","two_pass_keys","500","20"
'''
failures = []


def check(what, got, wanted):
    if got != wanted:
        failures.append(f'{what}: got {got}, wanted {wanted}')


for name, wanted in (('gpu', True), ('gpu_device', True), ('simt_hooks', True),
                     ('example_on_device', True), ('certify_on_device_flash2', True),
                     ('certify_on_device_loss_small', True), ('certify', False), ('worker', False),
                     ('a_gpu', False)):
    check(f'--gpu-only and {name}', re.search(test_gpu.GPU_TESTS, name) is not None, wanted)
# Tests of what --gpu-only does not build would fail.
for target in ('attest', 'example_device_attention', 'gpu_device_test'):
    check(f'--gpu-only builds {target}', target in test_gpu.GPU_TARGETS, True)
check('tests', test_gpu.counts_of(JUNIT), {'passed': 2, 'failed': ['b'], 'skipped': ['gpu_device']})
check('clean', tools.sanitizer_verdict(0, '== ERROR SUMMARY: 0 errors')['verdict'], 'passed')
check('errors', tools.sanitizer_verdict(0, '== ERROR SUMMARY: 2 errors')['verdict'], 'failed')
check('hazards', tools.sanitizer_verdict(0, 'RACECHECK SUMMARY: 1 hazard')['verdict'], 'failed')
check('a failed program', tools.sanitizer_verdict(1, 'ERROR SUMMARY: 0 errors')['verdict'],
      'failed')
check('no summary', tools.sanitizer_verdict(0, 'Device not supported'),
      {'verdict': 'refused', 'output': 'Device not supported'})
check('profile', tools.profiled_bytes(PROFILE),
      {'read_bytes': 1500 * 32, 'written_bytes': 30 * 32})
check('no permission', tools.profiled_bytes('==ERROR== ERR_NVGPUCTRPERM'), None)
check('one metric', tools.profiled_bytes(PROFILE.replace('op_write', 'op_else')), None)
check('a race', failure({'kind': 'sanitizers', 'verdict': 'failed', 'output': 'race'}), 'race')
check('a tool that refuses', failure({'kind': 'sanitizers', 'verdict': 'refused'}), None)
COUNT = {'kind': 'golden', 'kernel': 'gpu/x', 'problem': 'sq=1', 'direction': 'forward',
         'emulated': {'read_bytes': 8, 'written_bytes': 4}}
check('equal counts', failure({**COUNT, 'device': COUNT['emulated']}), None)
for other in ({'read_bytes': 12, 'written_bytes': 4}, None):
    check(f'counts {other}', failure({**COUNT, 'device': other}),
          'counts of gpu/x on sq=1 (forward)')
check('a measurement', failure({'kind': 'rates', 'failed': 'cudaErrorX'}), 'cudaErrorX')
ANSWERS = {'time': {'forward_seconds': [1, 1, 1], 'backward_seconds': [2, 3, 9],
                    'forward_operations': 6, 'backward_operations': 10},
           'count': {'read_bytes': 30, 'written_bytes': 10}}
RATES = {'copy_bytes_per_second': 20, 'float_operations_per_second': 8,
         'matrix_operations_per_second': 16}
tools.measure = lambda verb, kernel, problem: dict(ANSWERS[verb])
tools.counted = lambda kernel, problem: dict(ANSWERS['count'])
times = tools.times_of('gpu/x', 'x')
check('median and quartiles', [times['backward_seconds'], times['backward_seconds_quartiles']],
      [3, [2.5, 6]])
shares = tools.timed('gpu/x', 'x', RATES)
check('shares', [shares[f'share_of_{kind}_rate'] for kind in ('copy', 'float', 'matrix')],
      [0.5, 0.5, 0.25])
check('no rates', 'share_of_copy_rate' in tools.timed('gpu/x', 'x', {'failed': 'cudaErrorX'}), False)
DENSE = {f'{direction}_{what}': value for direction in ('forward', 'backward')
         for what, value in (('seconds', [4, 4]), ('operations', 80))}
HALF = {**DENSE, 'forward_seconds': [2.5, 2.5], 'forward_operations': 40}
tools.measure = lambda verb, kernel, problem: dict(DENSE if 'mask' not in problem else HALF)
dense, half = tools.density()[:2]
check('density', [half[f'forward_{what}'] for what in ('density', 'speedup', 'share_of_ideal')],
      [0.5, 1.6, 0.8])
check('a row for each density', len(tools.density()), 1 + len(tools.PERCENTS))
tools.measure = lambda verb, kernel, problem: (
    dict(DENSE) if 'mask' not in problem else {'failed': 'cudaErrorX'})
check('a density that failed', [row.get('failed') for row in tools.density()],
      [None] + len(tools.PERCENTS) * ['cudaErrorX'])
tools.measure = lambda verb, kernel, problem: dict(ANSWERS[verb])
ANSWERS['time'] = {'loss_gradient_seconds': [2, 2]}
loss = tools.timed('gpu/loss', 'x', RATES)
check('no operations', [loss['share_of_copy_rate'], 'share_of_float_rate' in loss], [1, False])
ANSWERS['time'] = {'failed': 'cudaErrorX'}
check('no times', tools.timed('gpu/x', 'x', RATES),
      {**ANSWERS['time'], 'counted': ANSWERS['count']})
tools.counted = lambda kernel, problem: {'failed': 'cudaErrorY'}
ANSWERS['time'] = {'forward_seconds': [2, 2]}
check('no counts', failure({'kind': 'times', **tools.timed('gpu/x', 'x', RATES)}), 'cudaErrorY')
tools.counted = lambda kernel, problem: dict(ANSWERS['count'])
FAMILY = {'family': 'square_tiled', 'direction': 'forward', 'kernel': 'gpu/y', 'problem': 'x',
          'schedule': 'square_tiled:b=4', 'fast_bytes': 800}
answer_of = tools.answer_of
tools.answer_of = lambda command: (2, '', 'why')
check('no words', tools.words_of(FAMILY), {'failed': 'why'})
tools.answer_of = lambda command: (0, '{"closed_form": {"moved": {"words": 7}}}', '')
ANSWERS['time'] = {'forward_seconds': [2, 2]}
asked = []
tools.measure = lambda verb, *words: ({'families': [dict(FAMILY)]} if verb == 'families'
                                      else dict(ANSWERS[verb]))
tools.profiled = lambda *words: asked.append(words) or {'profiled': {'read_bytes': 5}}
check('families', tools.families('square_tiled'),
      [{**FAMILY, 'words': 7, 'seconds': 2, 'seconds_quartiles': [2, 2],
        'profiled': {'read_bytes': 5}}])
check('another family', tools.families('flash2'), [])
check('launches of a family', asked,
      [(tools.run_of('gpu/y', 'x'), 'square_tiled_(scores|values)')])
check('launches are those of the family alone',
      [re.search(tools.LAUNCHES[name], 'square_tiled_bwd_p') is not None
       for name in ('square_tiled', 'square_tiled_bwd')], [False, True])
ANSWERS['time'] = {'failed': 'cudaErrorX'}
check('a family without times', tools.families('square_tiled')[0]['failed'], 'cudaErrorX')
tools.answer_of = answer_of
tools.measure = lambda verb, *words: {'failed': 'cudaErrorX'}
check('no families', tools.families('flash2'), [{'failed': 'cudaErrorX'}])
asked.clear()
VARIANTS = [{'variant': name, 'direction': direction, 'fast_bytes': size, 'seconds': seconds}
            for name, direction, size, seconds in (
                ('small', 'forward', 10, 4), ('slow', 'forward', 20, 5), ('large', 'forward', 30, 1),
                ('other', 'backward', 10, 1))]
ROWS = [{'kernel': 'gpu/y', 'direction': 'forward', 'fast_bytes': cap} for cap in (9, 25, 20, 30)]
BESIDE = tools.at_equal_caps(ROWS, [*VARIANTS, {'variant': 'refused', 'direction': 'forward'}])
check('equal caps', [(row['fast_bytes'], row['triton']['variant']) for row in BESIDE],
      [(25, 'small'), (20, 'small'), (30, 'large')])
check('a variant is profiled once', [words[0][-1] for words in asked], ['small', 'large'])
check('what of it', asked[0][1], 'forward_kernel')


def answering(status, text):
    tools.peer_script = lambda name: [sys.executable, '-c', f'import sys; print({text!r}); '
                                      f'print("why", file=sys.stderr); sys.exit({status})']
    return tools.peer('a script', 'a problem')


check('a peer without Triton', answering(77, ''), [{'refused': 'why'}])
check('a broken peer', answering(1, 'not JSON'), [{'failed': 'why', 'variants': []}])
check('a peer that says nothing', answering(0, '')[0]['failed'], 'why')
check('a good peer', answering(0, '{"variants": [{}]}'), [{'variants': [{}]}])
tools.limit = 1
with tempfile.TemporaryDirectory() as folder:
    started = os.path.join(folder, 'started')
    tools.peer_script = lambda name: ['sh', '-c', 'sleep 60 & echo $! >"$0"; wait', started]
    check('a peer without end', tools.peer('a script', 'a problem')[0]['failed'],
          'not done after 1 s')
    with open(started, encoding='utf-8') as file:
        left = int(file.read())
    for _ in range(100):  # until whoever inherits it has noticed its end
        try:
            with open(f'/proc/{left}/stat', encoding='utf-8') as file:
                if file.read().rpartition(')')[2].split()[0] == 'Z':
                    break
        except OSError:
            break
        time.sleep(0.05)
    else:
        failures.append('what a stopped command started goes on')
tools.limit = None
check('a wrong peer', answering(1, '{"variants": [{"failed": "tile"}]}')[0]['failed'], 'tile')
check('a tool that is not here', tools.answer_of(['/no/such/tool'])[0], 127)
stopping = threading.Timer(0.5, tools.stop_all)
stopping.start()
check('a command that is stopped', tools.answer_of(['sleep', '60'])[0], -signal.SIGKILL)
check('none begins after that', tools.answer_of(['true']), (tools.LIMIT_STATUS, '', 'stopped'))
stopping.join()
tools.stopped = False
CERTIFICATE = {'tier': 'smoke', 'kernels': [{
    'kernel': 'gpu/x@device', 'ran': 'on a CUDA device', 'verdict': 'violated',
    'checks': {'made': 1}, 'worst': {'O': {'error_over_bound': 2}}, 'incomplete': [],
    'findings': [{'message': 'O differs', 'reproduce': 'attest check'}]}]}


def campaign(status, certificate):
    """certified() of a program that writes this certificate, or none, beside an older one."""
    def answer(command):
        path = command[command.index('--out') + 1]
        if certificate is not None:
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(certificate, file)
        return status, '', 'why'
    tools.answer_of = answer
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'x-device.json'), 'w', encoding='utf-8') as file:
            json.dump(CERTIFICATE, file)
        return tools.certified('gpu/x@device', folder)


check('a violation', campaign(1, CERTIFICATE),
      {'kernel': 'gpu/x', 'verdict': 'violated', 'ran': 'on a CUDA device', 'tier': 'smoke',
       'checks': {'made': 1}, 'error_over_bound': {'O': 2}, 'failed': 'O differs: attest check'})
KERNEL = {**CERTIFICATE['kernels'][0], 'findings': []}
check('a certificate', 'failed' in campaign(0, {'tier': 'smoke', 'kernels': [KERNEL]}), False)
check('an incomplete one', campaign(3, {'tier': 'smoke', 'kernels': [
    {**KERNEL, 'incomplete': ['never exercised: causal_tl']}]})['failed'],
      'never exercised: causal_tl')
check('none', campaign(2, None), {'kernel': 'gpu/x', 'failed': 'why'})
for status, wanted in ((0, {'test': 'x', 'output': 'said'}),
                       (77, {'test': 'x', 'refused': 'said\nwhy'}),
                       (1, {'test': 'x', 'output': 'said', 'failed': 'status 1: said\nwhy'})):
    tools.answer_of = lambda command, status=status: (status, 'said\n', 'why')
    check(f'a test that ends with {status}', tools.tested('x', 'tag'), wanted)
tools.answer_of = lambda command: (tools.LIMIT_STATUS, 'first', ', not done after 1 s')
check('a sanitizer without end', tools.sanitize('racecheck'),
      {'tool': 'racecheck', 'verdict': 'refused', 'output': 'first, not done after 1 s'})
for text in failures:
    print(text)
print(f'{len(failures)} failures')
sys.exit(1 if failures else 0)
