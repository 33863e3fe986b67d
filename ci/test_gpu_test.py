#!/usr/bin/env python3
"""What ci/test-gpu makes of the answers of its tools, good, bad and refused."""
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'test-gpu')
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader('test_gpu', SCRIPT)
test_gpu = importlib.util.module_from_spec(importlib.util.spec_from_loader('test_gpu', LOADER))
LOADER.exec_module(test_gpu)

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


def results(**changes):
    base = {'date': '2026-01-02T03:04:05+00:00', 'device': 'NVIDIA X (sm_90)',
            'tests': {'passed': 3, 'failed': [], 'skipped': []},
            'sanitizers': {'memcheck': {'verdict': 'passed'}, 'racecheck': {'verdict': 'refused'}},
            'golden': {'counts': []}, 'errors': [{}],
            'rates': {}, 'times': [{}], 'families': [{}], 'triton': {}, 'traffic': [{'counted': {}}]}
    return {**base, **changes}


for name, wanted in (('gpu', True), ('gpu_device', True), ('simt_hooks', True),
                     ('example_on_device', True), ('certify_on_device_flash2', True),
                     ('certify_on_device_loss_small', True), ('certify', False), ('worker', False),
                     ('a_gpu', False)):
    check(f'--gpu-only and {name}', re.search(test_gpu.GPU_TESTS, name) is not None, wanted)
# Tests of what --gpu-only does not build would fail.
for target in ('attest', 'example_device_attention', 'gpu_device_test'):
    check(f'--gpu-only builds {target}', target in test_gpu.GPU_TARGETS, True)
check('tests', test_gpu.counts_of(JUNIT), {'passed': 2, 'failed': ['b'], 'skipped': ['gpu_device']})
check('clean', test_gpu.sanitizer_verdict(0, '== ERROR SUMMARY: 0 errors')['verdict'], 'passed')
check('errors', test_gpu.sanitizer_verdict(0, '== ERROR SUMMARY: 2 errors')['verdict'], 'failed')
check('hazards', test_gpu.sanitizer_verdict(0, 'RACECHECK SUMMARY: 1 hazard')['verdict'], 'failed')
check('a failed program', test_gpu.sanitizer_verdict(1, 'ERROR SUMMARY: 0 errors')['verdict'],
      'failed')
check('no summary', test_gpu.sanitizer_verdict(0, 'Device not supported'),
      {'verdict': 'refused', 'output': 'Device not supported'})
check('profile', test_gpu.profiled_bytes(PROFILE),
      {'read_bytes': 1500 * 32, 'written_bytes': 30 * 32})
check('no permission', test_gpu.profiled_bytes('==ERROR== ERR_NVGPUCTRPERM'), None)
check('one metric', test_gpu.profiled_bytes(PROFILE.replace('op_write', 'op_else')), None)
check('nothing failed', test_gpu.failures(results()), [])
check('a failed test', test_gpu.failures(results(tests={'failed': ['b']})), ['test b'])
check('a race', test_gpu.failures(results(sanitizers={'racecheck': {'verdict': 'failed'}})),
      ['compute-sanitizer racecheck'])
COUNT = {'kernel': 'gpu/x', 'problem': 'sq=1', 'direction': 'forward',
         'emulated': {'read_bytes': 8, 'written_bytes': 4}}
check('equal counts', test_gpu.failures(results(
    golden={'counts': [{**COUNT, 'device': COUNT['emulated']}]})), [])
check('other counts', test_gpu.failures(results(
    golden={'counts': [{**COUNT, 'device': {'read_bytes': 12, 'written_bytes': 4}}]})),
      ['counts of gpu/x on sq=1 (forward)'])
check('errors over bounds', test_gpu.failures(results(
    errors=[{'kernel': 'gpu/x', 'failed': 'attest check'}])), ['measurement: attest check'])
check('a measurement', test_gpu.failures(results(rates={'failed': 'cudaErrorX'})),
      ['measurement: cudaErrorX'])
ANSWERS = {'time': {'forward_seconds': 1, 'backward_seconds': 3, 'forward_operations': 6,
                    'backward_operations': 10},
           'count': {'read_bytes': 30, 'written_bytes': 10}}
RATES = {'copy_bytes_per_second': 20, 'float_operations_per_second': 8,
         'matrix_operations_per_second': 16}
test_gpu.measure = lambda verb, kernel, problem: dict(ANSWERS[verb])
shares = test_gpu.timed('gpu/x', 'x', RATES)
check('shares', [shares[f'share_of_{kind}_rate'] for kind in ('copy', 'float', 'matrix')],
      [0.5, 0.5, 0.25])
check('no rates', 'share_of_copy_rate' in test_gpu.timed('gpu/x', 'x', {'failed': 'cudaErrorX'}), False)
ANSWERS['time'] = {'loss_gradient_seconds': 2}
loss = test_gpu.timed('gpu/loss', 'x', RATES)
check('no operations', [loss['share_of_copy_rate'], 'share_of_float_rate' in loss], [1, False])
ANSWERS['time'] = {'failed': 'cudaErrorX'}
check('no times', test_gpu.timed('gpu/x', 'x', RATES), ANSWERS['time'])
FAMILY = {'family': 'square_tiled', 'direction': 'forward', 'kernel': 'gpu/y', 'problem': 'x'}
ANSWERS['time'] = {'forward_seconds': 2}
asked = []
test_gpu.measure = lambda verb, *words: ({'families': [dict(FAMILY)]} if verb == 'families'
                                         else dict(ANSWERS[verb]))
test_gpu.profiled = lambda *words: asked.append(words) or {'profiled': {'read_bytes': 5}}
check('families', test_gpu.families(),
      [{**FAMILY, 'seconds': 2, 'profiled': {'read_bytes': 5}}])
check('launches of a family', asked,
      [(test_gpu.run_of('gpu/y', 'x'), 'square_tiled_(scores|values)')])
check('launches are those of the family alone',
      [re.search(test_gpu.LAUNCHES[name], 'square_tiled_bwd_p') is not None
       for name in ('square_tiled', 'square_tiled_bwd')], [False, True])
ANSWERS['time'] = {'failed': 'cudaErrorX'}
check('a family without times', test_gpu.failures(results(families=test_gpu.families())),
      ['measurement: cudaErrorX'])
test_gpu.measure = lambda verb, *words: {'failed': 'cudaErrorX'}
check('no families', test_gpu.families(), [{'failed': 'cudaErrorX'}])
asked.clear()
VARIANTS = [{'variant': name, 'direction': direction, 'fast_bytes': size, 'seconds': seconds}
            for name, direction, size, seconds in (
                ('small', 'forward', 10, 4), ('slow', 'forward', 20, 5), ('large', 'forward', 30, 1),
                ('other', 'backward', 10, 1))]
ROWS = [{'direction': 'forward', 'fast_bytes': cap} for cap in (9, 25, 20, 30)]
test_gpu.at_equal_caps(ROWS, [*VARIANTS, {'variant': 'refused', 'direction': 'forward'}])
check('equal caps', [row.get('triton', {}).get('variant') for row in ROWS],
      [None, 'small', 'small', 'large'])
check('a variant is profiled once', [words[0][-1] for words in asked], ['small', 'large'])
check('what of it', asked[0][1], 'forward_kernel')
check('the peer fails', test_gpu.failures(results(triton={'failed': 'tile'})), ['measurement: tile'])
check('no peer here', test_gpu.failures(results(triton={'refused': 'no Triton'})), [])


def answering(status, text):
    test_gpu.PEER = [sys.executable, '-c', f'import sys; print({text!r}); '
                     f'print("why", file=sys.stderr); sys.exit({status})']
    return test_gpu.peer()


check('a peer without Triton', answering(77, ''), {'refused': 'why'})
check('a broken peer', answering(1, ''), {'failed': 'why'})
check('a good peer', answering(0, '{"variants": [{}]}'), {'variants': [{}]})
check('a wrong peer', answering(1, '{"variants": [{"failed": "tile"}]}')['failed'], 'tile')
with tempfile.TemporaryDirectory() as folder:
    path = test_gpu.write_results(folder, results())
    check('name', os.path.basename(path), '2026-01-02-nvidia-x-sm-90.json')
    check('files', os.listdir(folder), [os.path.basename(path)])
    with open(path, encoding='utf-8') as file:
        check('content', json.load(file), results())
for failure in failures:
    print(failure)
print(f'{len(failures)} failures')
sys.exit(1 if failures else 0)
