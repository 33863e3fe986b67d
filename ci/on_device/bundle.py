"""Bundle what a run on a device needs in one folder, which runs where nothing is installed."""
import json
import os
import re
import shutil
import subprocess

import device_tools as tools

PROGRAMS = ('bin/attest', 'bin/attest_gpu_measure', 'gpu/device/gpu_device_test',
            'examples/libdevice_attention.so')
TARGETS = ('attest', 'attest_gpu_measure', 'gpu_device_test', 'example_device_attention',
           'attest_shared')
SCRIPTS = ('ci/on-device', 'ci/device_tools.py', 'ci/on_device', 'gpu/device/peers/peer_bounds.py',
           'gpu/device/peers/torch_sdpa.py', 'gpu/device/peers/triton_flash2.py',
           *(f'docs/how-to/wild/{name}.py' for name in ('certify', 'on_cuda', 'triton_flash')),
           'gpu/golden')
# Fit the kernel and the driver of the machine where the bundle runs, and are taken there.
OF_THE_SYSTEM = re.compile(r'(ld-linux|lib(c|m|dl|rt|pthread|cuda))\b')
# PyTorch needs its own beside those of the package, in one process.
OF_PYTHON = re.compile(r'lib(stdc\+\+|gcc_s)\.')
MOST_BYTES = 60 * 1000 * 1000
LIBRARIES = 'lib'
# Asks for RPATH: RUNPATH is not searched for what a library needs.
CONFIGURE = ('cmake', '--preset', 'cuda', '--log-level=WARNING',
             '-DCMAKE_CUDA_ARCHITECTURES=90a-real', '-DCMAKE_CUDA_FLAGS=--compress-mode=size',
             f'-DCMAKE_BUILD_RPATH=$ORIGIN/../{LIBRARIES};$ORIGIN/../../{LIBRARIES}',
             '-DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags')


def said(*command):
    return subprocess.run(command, cwd=tools.root, capture_output=True, text=True).stdout.strip()


def libraries(program):
    """Finds the shared libraries that a program needs beside the system's."""
    for line in said('ldd', program).splitlines():
        name, _, path = line.strip().partition(' => ')
        if path.startswith('/') and not OF_THE_SYSTEM.match(name):
            yield path.split()[0]


def glibc_of(path):
    """Finds the newest version of the C library that a file asks for, as [major, minor]."""
    with open(path, 'rb') as file:
        found = re.findall(rb'GLIBC_(\d+)\.(\d+)', file.read())
    return max(([int(one) for one in pair] for pair in found), default=[0, 0])


def copy(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(source):
        shutil.copytree(source, target, ignore=shutil.ignore_patterns('__pycache__'))
    else:
        shutil.copy(source, target)


def sizes(folder):
    """Lists (bytes, path) of the files of a bundle, the largest first."""
    return sorted(((os.path.getsize(os.path.join(place, name)),
                    os.path.relpath(os.path.join(place, name), folder))
                   for place, _, names in os.walk(folder) for name in names), reverse=True)


def build(jobs):
    """Builds the programs; true where that went well."""
    for command in (CONFIGURE, ('cmake', '--build', '--preset', 'cuda', '-j', str(jobs),
                                '--target', *TARGETS)):
        if subprocess.run(command, cwd=tools.root).returncode != 0:
            return False
    return True


def pack_package(place):
    """Lays the package of Python out as a wheel has it, the libraries that it needs beside it."""
    library = tools.program('lib', 'libattest.so')
    copy(os.path.join(tools.root, 'python', 'attest'), os.path.join(place, 'attest'))
    copy_program(library, os.path.join(place, 'attest', 'libattest.so'))
    for one in libraries(library):
        if not OF_PYTHON.match(os.path.basename(one)):
            copy(one, os.path.join(place, LIBRARIES, os.path.basename(one)))


def copy_program(source, target):
    """Copies a program or library without the symbols that only a debugger reads."""
    copy(source, target)
    said('strip', '--strip-unneeded', target)  # what is no ELF file stays as it is


def pack(folder):
    """Fills the folder anew from build/cuda; returns its size in bytes."""
    shutil.rmtree(folder, ignore_errors=True)
    inside = os.path.join(folder, 'build', 'cuda')
    for place in PROGRAMS:
        copy_program(tools.program(place), os.path.join(inside, place))
        for library in libraries(tools.program(place)):
            copy(library, os.path.join(inside, LIBRARIES, os.path.basename(library)))
    pack_package(os.path.join(inside, 'package'))
    for place in SCRIPTS:
        copy(os.path.join(tools.root, place), os.path.join(folder, place))
    manifest = {
        'commit': said('git', 'describe', '--always', '--dirty', '--abbrev=40'),
        'toolkit': tools.tail(said('nvcc', '--version'), 2),
        'glibc': max(glibc_of(os.path.join(place, name))
                     for place, _, names in os.walk(inside) for name in names)}
    with open(os.path.join(folder, 'manifest.json'), 'w', encoding='utf-8') as file:
        json.dump(manifest, file, indent=2)
    return sum(size for size, _ in sizes(folder))


def manifest(folder):
    """Reads what pack() wrote of the programs; {} in a checkout."""
    path = os.path.join(folder, 'manifest.json')
    if not os.path.exists(path):
        return {}
    with open(path, encoding='utf-8') as file:
        return json.load(file)
