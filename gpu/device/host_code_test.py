#!/usr/bin/env python3
"""No launch calls on the host what runs on the device alone: nvcc compiles such a call, from a
template without a word, and makes it end the process.

usage: host_code_test.py NM ARCHIVE OBJECT
ARCHIVE holds the objects of the kernels; OBJECT makes such a call, and must be found to.
"""
import re
import subprocess
import sys


def ending(nm, path):
    """Objects of nvcc's in the file that may end the process."""
    text = subprocess.run([nm, '--undefined-only', '-A', path], capture_output=True, text=True,
                          check=True).stdout
    return sorted({line.split(': ')[0] for line in text.splitlines()
                   if re.search(r'\.o:.* U exit$', line)})


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    nm, archive, broken = sys.argv[1:]
    found = [f'{name}: calls a __device__ function on the host' for name in ending(nm, archive)
             if '.cu.o' in name]
    if not ending(nm, broken):
        found.append(f'{broken} does so too, and was not seen')
    for text in found:
        print(text)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
