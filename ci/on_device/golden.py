"""Ask a device for the results of ten small kernels in Triton, and a profiler for their bytes."""
import contextlib
import csv
import io
import json
import os
import sys

import device_tools as tools

PROGRAM = ('gpu', 'golden', 'triton_golden.py')
# Bytes that instructions ask for, not those that pass between caches; atomic operations do both.
OF_GLOBAL = 'smsp__sass_data_bytes_mem_global_op_'
METRICS = {f'{direction}_bytes': [f'{OF_GLOBAL}{one}.sum' for one in (*operations, 'atom', 'red')]
           for direction, operations in (('read', ('ld', 'ldgsts')), ('written', ('st',)))}
ALL_METRICS = sorted({one for some in METRICS.values() for one in some})


def program():
    return [sys.executable, os.path.join(tools.root, *PROGRAM), 'device']


def results():
    """Returns the record of each kernel; those before one that crashes stay."""
    status, output, errors = tools.answer_of(program())
    if status == tools.PEER_SKIPPED:
        return [{'refused': tools.tail(errors, 1)}]
    rows = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):  # cut short
            rows.append(json.loads(line))
    if status != 0 or not rows:
        rows.append({'failed': tools.tail(errors) or f'status {status}'})
    return rows


def profiled_launches(text):
    """Sums the bytes of each kernel in ncu's CSV with units of one byte: {kernel: bytes}."""
    found = {}
    lines = [line for line in text.splitlines() if line.startswith('"')]
    for row in csv.DictReader(io.StringIO('\n'.join(lines))):
        try:
            each = {what: sum(int(float(row[one].replace(',', ''))) for one in metrics)
                    for what, metrics in METRICS.items()}
        except (KeyError, TypeError, ValueError):  # the line of units
            continue
        sums = found.setdefault(row.get('Kernel Name'), dict.fromkeys(METRICS, 0))
        for what, count in each.items():
            sums[what] += count
    return found


def profiled(rows):
    """Returns the profiler's bytes of each kernel that has a record of its results."""
    names = [row['kernel'] for row in rows if 'kernel' in row]
    if not names:
        return [{'refused': 'no kernel has results'}]
    status, output, errors = tools.answer_of([
        'ncu', '--csv', '--page', 'raw', '--print-units', 'base', '--metrics',
        ','.join(ALL_METRICS), '-k', f"regex:^({'|'.join(names)})$", *program()])
    found = profiled_launches(output) if status == 0 else {}
    said = [line for line in (output + errors).splitlines() if line[:1] not in ('{', '"')]
    refused = tools.tail('\n'.join(said)) or 'the profiler does not show it'
    return [{'kernel': name, **({'moved': found[name]} if name in found else {'refused': refused})}
            for name in names]
