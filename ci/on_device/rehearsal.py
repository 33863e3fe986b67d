"""Rehearse a run without a device: every step with a stand-in for the programs."""
import os
import sys

STAND_IN = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'stand_in.py')
PROGRAMS = ('gpu/golden/triton_golden.py',
            'build/cuda/bin/attest', 'build/cuda/bin/attest_gpu_measure',
            'build/cuda/gpu/device/gpu_device_test', 'build/cuda/examples/libdevice_attention.so',
            'gpu/device/peers/triton_flash2.py', 'gpu/device/peers/torch_sdpa.py',
            'docs/how-to/wild/certify.py', 'tools/ncu', 'tools/compute-sanitizer')


def stand_in(folder):
    """Lays the programs out as in a bundle; returns an environment that finds the tools."""
    script = os.path.join(folder, 'stand_in')
    with open(STAND_IN, encoding='utf-8') as file, open(script, 'w', encoding='utf-8') as copy:
        copy.write(f'#!{sys.executable} -IS\n{file.read()}')
    os.chmod(script, 0o755)
    for place in PROGRAMS:
        path = os.path.join(folder, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(script, path)
    return {**os.environ, 'PATH': os.path.join(folder, 'tools') + os.pathsep + os.environ['PATH']}

