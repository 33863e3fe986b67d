#!/usr/bin/env python3
"""No launch calls on the host what runs on the device alone: nvcc compiles such a call, from a
template without a word, and makes it end the process.

usage: host_code_test.py NM ARCHIVE OBJECT
ARCHIVE holds the objects of the kernels; OBJECT makes such a call, and must be found to.
"""
import re
import subprocess
import sys


def objects(nm, path):
    """{object: whether it may end the process} of the file."""
    text = subprocess.run([nm, '--undefined-only', '-A', path], capture_output=True, text=True,
                          check=True).stdout
    found = {}
    for line in text.splitlines():
        name, _, symbol = line.partition(': ')
        found[name] = found.get(name, False) or re.search(' U exit$', symbol) is not None
    return found


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    nm, archive, broken = sys.argv[1:]
    compiled = {name: ends for name, ends in objects(nm, archive).items() if '.cu.o' in name}
    found = [f'{name}: calls a __device__ function on the host'
             for name, ends in compiled.items() if ends]
    if not compiled:
        found.append(f'{archive} has no object of nvcc')
    if not any(objects(nm, broken).values()):
        found.append(f'{broken} does so too, and was not seen')
    for text in found:
        print(text)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
