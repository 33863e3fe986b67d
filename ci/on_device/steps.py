"""The steps of a run on a device, in order of worth: add one here.

A step has a name, a title, seconds that it may take in a run of 540, seconds that one command of
it may take, how many tasks go at once, and a function from the kernels and the folder of
certificates to its tasks. A task is a name and a function that answers with records by kind,
{kind: [row]}; it is given a function from a kind to the rows that are already found.
"""
import collections
import os
import sys

import device_tools as tools

sys.path.append(os.path.join(os.path.dirname(tools.__file__), '..', 'docs', 'how-to', 'wild'))
import on_cuda

from on_device import golden as triton_golden

Step = collections.namedtuple('Step', 'name title seconds each at_once tasks')
MOST_AT_ONCE = 8  # each has a context or two on the device, whose memory ends somewhere
SHARED = max(1, min((os.cpu_count() or 2) // 2, MOST_AT_ONCE))
WIDE_PROBLEM = 'hq=8,sq=1024,d=128,mask=causal_br'
TIMED_PROBLEMS = ('hq=16,sq=2048,d=64', 'hq=16,sq=2048,d=128', 'hq=16,sq=4096,d=64',
                  'hq=16,hkv=4,sq=4096,d=64,mask=causal_br')
# Fits every kernel: some keep scores in memory.
SMALL_PROBLEM, LOSS_PROBLEM = 'hq=8,sq=1024,d=64', 'sq=1024,d=64'
SDPA_PROBLEMS = [f'{problem},dtype={dtype}' for dtype in ('bf16', 'f32')
                 for problem in (SMALL_PROBLEM, *TIMED_PROBLEMS[:2])]
# Begins with kernels of short campaigns, by processor time of those emulated; the others follow.
SHORT = ('loss_small', 'loss_large', 'standard', 'flash2_16bit', 'flash1', 'split_kv_tensor_core',
         'square_tiled', 'split_kv', 'standard_tensor_core', 'hybrid')


def shortest_first(kernels):
    names = [f'gpu/{one}' for one in SHORT]
    return sorted(kernels, key=lambda one: names.index(one) if one in names else len(names))


def small(kernel):
    return LOSS_PROBLEM if 'loss' in kernel else SMALL_PROBLEM


def certify(kernels, folder):
    return [(kernel, lambda found, name=f'{kernel}@device': {
        'certify': [tools.certified(name, folder)]}) for kernel in kernels]


def tests(kernels, folder):
    return [(name, lambda found, name=name, tag=tag: {'tests': [tools.tested(name, tag)]})
            for name, tag in (('gpu_device', '~[stray]'), ('gpu_device_stray', '[stray]'))]


def library(kernels, folder):
    path = tools.program('examples', 'libdevice_attention.so')
    return [('device_attention', lambda found: {'library': [tools.certified(path, folder)]})]


def wild(kernels, folder):
    return [(name, lambda found, name=name: {'wild': [tools.outside('on_cuda', name)]})
            for name in on_cuda.SUBJECTS]


def sanitizers(kernels, folder):
    return [(tool, lambda found, tool=tool: {'sanitizers': [tools.sanitize(tool)]})
            for tool in tools.SANITIZERS]


def golden(found):
    answer = tools.measure('golden')
    return {'golden': answer.get('counts', [answer])}


def counts(kernels, folder):
    asked = [*((one, small(one)) for one in kernels), ('gpu/flash2', WIDE_PROBLEM)]
    return [('golden', golden), *((f'{kernel} {problem}', lambda found, one=(kernel, problem): {
        'traffic': [tools.traffic(*one)]}) for kernel, problem in asked)]


def triton(kernels, folder):
    return [('results', lambda found: {'triton_results': triton_golden.results()}),
            ('bytes', lambda found: {
                'triton_bytes': triton_golden.profiled(found('triton_results'))})]


def rates_of(found):
    rates = found('rates')
    return rates[-1] if rates else {'failed': 'no rates'}


def times(kernels, folder):
    def each(pairs):
        return [(f'{kernel} {problem}', lambda found, one=(kernel, problem): {
            'times': [tools.timed(*one, rates_of(found))]}) for kernel, problem in pairs]

    return [('rates', lambda found: {'rates': [tools.measure('rates')]}),
            *each((one, small(one)) for one in kernels),
            ('sdpa', lambda found: {'sdpa': tools.peer(tools.SDPA, *SDPA_PROBLEMS)}),
            *each(('gpu/flash2', problem) for problem in TIMED_PROBLEMS),
            ('density', lambda found: {'density': tools.density()})]


def equal_caps(found):
    variants = [one for row in found('triton') for one in row.get('variants', [])]
    return {'equal_caps': tools.at_equal_caps(found('families'), variants)}


def families(kernels, folder):
    return [('triton', lambda found: {
                'triton': tools.peer(tools.TRITON, tools.FAMILY_PROBLEM)}),
            *((f'family {name}', lambda found, name=name: {'families': tools.families(name)})
              for name in tools.LAUNCHES),
            ('equal_caps', equal_caps)]


STEPS = (
    Step('certify', 'every kernel certified, tier smoke, the shortest first', 200, 150, SHARED,
         certify),
    Step('tests', 'the tests that need a device', 45, 45, 1, tests),
    Step('library', "the documentation's library certified", 25, 25, 1, library),
    Step('wild', 'attention of PyTorch, JAX and Triton certified', 50, 120, 4, wild),
    Step('sanitizers', 'the device tests under compute-sanitizer', 55, 300, 4, sanitizers),
    Step('counts', "counted bytes beside the emulation's and the profiler's", 55, 60, 1, counts),
    Step('triton', "ten small kernels in Triton, whose results the executor is held to", 20, 60, 1,
         triton),
    Step('times', "times beside measured rates and PyTorch's, each verified first", 60, 60, 1,
         times),
    Step('families', "tiles of all sizes beside Triton's", 30, 120, 1, families),
)
