#!/usr/bin/env python3
"""A kernel with the traffic policy off is, byte for byte, the machine code of the one by hand.

usage: machine_code_test.py CUBIN...  (of gpu/device/testing/machine_code.cu)
The kernel with the policy on and one that differs in a constant must not be equal.
"""
import struct
import sys


def code_of_kernels(elf):
    """{kernel: bytes of its instructions} of a cubin, a 64-bit ELF file."""
    if elf[:5] != b'\x7fELF\x02':
        raise ValueError('not a 64-bit ELF file')
    table, = struct.unpack_from('<Q', elf, 0x28)
    size, count, names = struct.unpack_from('<HHH', elf, 0x3A)
    # name, type, flags, address, offset, size
    sections = [struct.unpack_from('<IIQQQQ', elf, table + k * size) for k in range(count)]
    strings = elf[sections[names][4]:][:sections[names][5]]
    found = {}
    for name, _, _, _, offset, length in sections:
        text = strings[name:strings.index(b'\0', name)].decode()
        if text.startswith('.text.'):
            found[text[len('.text.'):]] = elf[offset:offset + length]
    return found


def complaints(code):
    for kernel in ('policy_off', 'policy_on', 'by_hand', 'by_hand_and_wrong'):
        if not code.get(kernel):
            yield f'{kernel}: no machine code'
            return
    if code['policy_off'] != code['by_hand']:
        yield 'policy_off differs from by_hand: the policy costs something where it is off'
    for other in ('policy_on', 'by_hand_and_wrong'):
        if code[other] == code['by_hand']:
            yield f'{other} equals by_hand: this comparison sees nothing'


def main():
    paths = sys.argv[1:]
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    status = 0
    for path in paths:
        with open(path, 'rb') as file:
            code = code_of_kernels(file.read())
        for text in complaints(code):
            print(f'{path}: {text}')
            status = 1
        print(f'{path}: ' + ', '.join(f'{name} {len(code[name])} bytes' for name in sorted(code)))
    return status


if __name__ == '__main__':
    sys.exit(main())
