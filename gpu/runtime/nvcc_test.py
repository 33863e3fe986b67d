#!/usr/bin/env python3
"""Compiles libraries with nvcc, where it is, and has attest carry their PTX out; without nvcc skipped (77).

usage: nvcc_test.py ATTEST ROOT LIBRARY...
The libraries are static ones: gpu's kernels as they are emulated, and those that they need. nvcc takes seconds
for each, so that outside ci/nightly there is one right and one wrong library of each kind.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

NIGHTLY = 'ATTEST_NIGHTLY' in os.environ
SHARED = ['-cudart', 'shared']
GUARD = '  if (row >= p.batch * p.num_heads_q * p.seqlen_q) return;\n'
LINKED = '''#include <cuda.h>
#include <cuda_runtime.h>
static cudaError_t from_library(const char*, void** f, unsigned, unsigned long long,
                                cudaDriverEntryPointQueryResult* found) {
  *f = (void*)cuTensorMapEncodeTiled;
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
#define cudaGetDriverEntryPointByVersion from_library
#include "gpu/simt/async/tensor_copy.cuh"'''
FIELDS = '''
#include <stddef.h>
#include <stdio.h>
int main() {
  cudaDeviceProp p;
  int major = 0;
  if (cudaGetDeviceProperties(&p, 0) != cudaSuccess) return 1;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  printf("%s %d %d %d %d %d %zu %zu %zu %d %d %d %d %d\\n", p.name, p.major, p.minor, major, p.warpSize,
         p.multiProcessorCount, p.sharedMemPerBlock, p.sharedMemPerBlockOptin, p.sharedMemPerMultiprocessor,
         p.maxThreadsPerBlock, p.maxThreadsDim[2], p.maxGridSize[1], p.regsPerMultiprocessor,
         p.maxThreadsPerMultiProcessor);
  return sizeof p == 1008 ? 0 : 1;
}
'''


def find_nvcc():
    """Returns nvcc's path, or None."""
    folder = os.environ.get('CUDA_PATH', '/usr/local/cuda')
    return shutil.which('nvcc') or shutil.which(os.path.join(folder, 'bin', 'nvcc'))


class Libraries:
    """Libraries of one source, compiled in a folder."""

    def __init__(self, nvcc, root, folder):
        self.nvcc, self.folder = nvcc, folder
        self.include = os.path.join(root, 'core', 'abi')
        path = os.path.join(root, 'docs', 'how-to', 'plugins', 'device_attention.cu')
        self.source = pathlib.Path(path).read_text(encoding='utf-8')

    def build(self, name, options, old='', new='', suffix='.so'):
        """Compiles the source with a part replaced to lib<name><suffix>."""
        if old not in self.source:
            sys.exit(f'device_attention.cu has no {old!r}')
        at = self.folder / name
        at.mkdir()
        (at / 'device_attention.cu').write_text(self.source.replace(old, new), encoding='utf-8')
        target = self.folder / f'lib{name}{suffix}'
        self.compile(['-lineinfo', *options, '-I', self.include, at / 'device_attention.cu', '-o', target])
        return f'./lib{name}{suffix}'

    def compile(self, words):
        subprocess.run([self.nvcc, '-O2', '-shared', '-Xcompiler', '-fPIC', *words], check=True)


def build_own(nvcc, root, folder, name, archives, old='', new=''):
    """Compiles flash2_tensor_core, with a part of its source replaced, to lib<name>.so."""
    kernel = 'gpu/kernels/flash2/flash2_tensor_core.cuh'
    source = pathlib.Path(root, kernel).read_text(encoding='utf-8')
    if old not in source:
        sys.exit(f'{kernel} has no {old!r}')
    replaced = folder / name / kernel
    replaced.parent.mkdir(parents=True)
    replaced.write_text(source.replace(old, new), encoding='utf-8')
    subprocess.run([nvcc, '-std=c++20', '-O2', '-lineinfo', *SHARED, '-shared', '-Xcompiler', '-fPIC',
                    '-gencode=arch=compute_80,code=compute_80', '-I', folder / name, '-I', root,
                    os.path.join(root, 'gpu/device/kernels/flash2_tensor_core.cu'),
                    os.path.join(root, 'gpu/runtime/testing/own_kernel.cpp'), *archives, '-lgomp',
                    '-o', folder / f'lib{name}.so'], check=True)
    return f'./lib{name}.so'


def build_hopper(nvcc, root, folder, name, words, old='', new=''):
    """Compiles testing/hopper_attention.cu, with a part of it replaced, to lib<name>.so."""
    source = pathlib.Path(root, 'gpu/runtime/testing/hopper_attention.cu').read_text(encoding='utf-8')
    if old not in source:
        sys.exit(f'hopper_attention.cu has no {old!r}')
    replaced = folder / f'{name}.cu'
    replaced.write_text(source.replace(old, new), encoding='utf-8')
    subprocess.run([nvcc, '-std=c++20', '-O2', '-lineinfo', *SHARED, '-shared', '-Xcompiler', '-fPIC',
                    '-gencode=arch=compute_90a,code=compute_90a', '-I', root, replaced, *words, '-lgomp',
                    '-o', folder / f'lib{name}.so'], check=True)
    return f'./lib{name}.so'


def expect(what, done, status, *parts):
    """Ends the test unless the command ended so and said all of it."""
    text = done.stdout + done.stderr
    for part in parts:
        if part not in text:
            sys.exit(f'{what}: no {part!r} in:\n{text}')
    if done.returncode != status:
        sys.exit(f'{what}: exit status {done.returncode}, not {status}:\n{text}')
    print(f'{what}: as expected', flush=True)


def check_forms(libraries, check):
    """Checks forms of fat binaries, and refusals that tests of libraries written by hand have too."""
    for mode in ('speed', 'none'):  # LZ4, not compressed; the default was zstd
        library = libraries.build(mode, [*SHARED, f'--compress-mode={mode}',
                                         '-gencode=arch=compute_80,code=[sm_80,compute_80]'])
        expect(mode, check(library), 0, 'PASSED')
    library = libraries.build('machine_code', [*SHARED, '-gencode=arch=compute_80,code=sm_80'])
    expect('machine code alone', check(library), 2, 'holds machine code alone, no PTX; build it with')
    library = libraries.build('newer', [*SHARED, '-gencode=arch=compute_100,code=compute_100'])
    expect('newer PTX', check(library), 2, 'holds PTX for compute_100 alone, newer than the emulated sm_90')
    library = libraries.build('static', [])
    expect('static runtime', check(library), 2, 'registers no kernel with libcudart.so.12 or .13', '-cudart shared')
    library = libraries.build('scaled', SHARED, 'score *= (float)p.softmax_scale;', 'score *= 0.25f;')
    expect('wrong scale', check(library), 1, 'violated')
    library = libraries.build('graphs', SHARED, 'if (rows == 0)', 'if (cudaGraphLaunch(0, 0)) {}\n  if (rows == 0)')
    expect('missing function', check(library), 2, 'calls cudaGraphLaunch, which the emulated device has not')


def main(attest, root, *archives):
    nvcc = find_nvcc()
    if nvcc is None:
        print('skipped: no nvcc on the path, in CUDA_PATH or in /usr/local/cuda')
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        libraries = Libraries(nvcc, root, folder)

        def check(library, problem='hq=2,sq=5,sk=7,d=8'):
            return subprocess.run([attest, 'check', '--kernel', library, '--problem', problem,
                                   '--law', 'reference_forward', '--emulate'],
                                  cwd=folder, capture_output=True, text=True)

        libraries.build('device_attention', SHARED)
        libraries.build('beyond', SHARED, GUARD)
        guide = os.path.join(root, 'docs', 'how-to', 'cuda-libraries-without-a-gpu.md')
        subprocess.run([sys.executable, os.path.join(root, 'ci', 'check_console'), attest, guide], cwd=folder,
                       check=True)
        if NIGHTLY:
            check_forms(libraries, check)
        # Tensor cores and asynchronous copies, with and without a barrier.
        tensor_core = 'hq=2,hkv=1,sq=70,sk=130,d=64,mask=causal_br,dtype=bf16'
        own = build_own(nvcc, root, folder, 'own', archives)
        expect('tensor cores', check(own, tensor_core), 0, 'PASSED')
        own = build_own(nvcc, root, folder, 'unordered', archives,
                        '__syncthreads();\n    store_pairs', 'store_pairs')
        expect('a barrier less', check(own, tensor_core), 4, 'crashed', 'race: lane ', 'PTX line', 'pair_rows.cuh:')
        # Tensor maps, tensor copies and products of a warpgroup.
        hopper = build_hopper(nvcc, root, folder, 'hopper', archives)
        warpgroup = 'hq=2,hkv=1,sq=70,sk=200,d=64,dtype=bf16'
        expect('tensor copies', check(hopper, warpgroup), 0, 'PASSED')
        certified = subprocess.run([attest, 'certify', hopper, '--emulate', '--only', 'reference_forward', '--cases',
                                    '8'], cwd=folder, capture_output=True, text=True)
        expect('a campaign', certified, 0, 'LAW HOLDS', 'emulated on the host as sm_90: a warpgroup')
        if NIGHTLY:
            # The driver's function by its name, not by the runtime.
            linked = build_hopper(nvcc, root, folder, 'linked', ['-lcuda', *archives],
                                  '#include "gpu/simt/async/tensor_copy.cuh"', LINKED)
            expect('linked with the driver', check(linked, warpgroup), 0, 'PASSED')
            linked = build_hopper(nvcc, root, folder, 'driver', ['-lcuda', *archives], 'kernel.forward = forward;',
                                  'kernel.forward = forward; cuInit(0); cuGraphCreate(0, 0);')
            expect('other functions of the driver', check(linked, warpgroup), 2,
                   'calls cuGraphCreate, cuInit, which the emulated device has not')
        for what, old, new, finding in (
                ('a stage less', 'kStages = 2', 'kStages = 1', 'have come already'),
                ('no wait for a product', 'wgmma_wait<0>();\n    for (int half', 'for (int half',
                 'uses a register of a wgmma that has not ended'),
                ('no fence of a product', 'wgmma_fence();\n    for (int c = 0; c < kTile',
                 'for (int c = 0; c < kTile', 'have been used since the last wgmma.fence'),
                ('too few bytes expected', '(tile == 0 ? 3 : 2) * kTileBytes', '2 * kTileBytes',
                 "ended its phase before this tensor copy's 8192 bytes arrived"))[:None if NIGHTLY else 1]:
            broken = build_hopper(nvcc, root, folder, what.replace(' ', '_'), archives, old, new)
            expect(what, check(broken, warpgroup), 1, 'violated', finding)
        # Layouts of structs, held against the headers' by a program that runs with the library. One
        # that a sanitizer is part of runs in a program with the sanitizer's runtime alone.
        if b'__asan_init' in pathlib.Path(attest).read_bytes():
            print('properties: not asked of a sanitized library')
            return 0
        (folder / 'fields.cu').write_text(FIELDS, encoding='utf-8')
        subprocess.run([nvcc, *SHARED, folder / 'fields.cu', '-o', folder / 'fields'], check=True)
        runtime = pathlib.Path(attest).resolve().parents[1] / 'lib' / 'attest'
        done = subprocess.run([folder / 'fields'], env={**os.environ, 'LD_LIBRARY_PATH': str(runtime)},
                              capture_output=True, text=True)
        expect('properties', done, 0,
               'emulated sm_80 8 0 8 32 108 49152 166912 167936 1024 64 65535 65536 2048')
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
