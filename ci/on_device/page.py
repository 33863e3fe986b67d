"""Make docs/on-devices.md from gpu/results: what is certified, counted and timed on a device."""
import collections
import glob
import os

from on_device import records, steps
from on_device.run import outcome_of

PLACE = os.path.join('docs', 'on-devices.md')
HEAD = """\
# On devices

Made by `ci/on-device page` from [gpu/results](../gpu/results/README.md); a test holds it to that.

{summary}

- *certified*: the day when a campaign in tier smoke ended with CERTIFIED there; else its
  verdict, or — where none has ended.
- *counts equal*: calls whose bytes, counted on the device, are the emulation's, integer for
  integer.
- *bytes*, *profiled*, *time*, *shares*: for `{small}`, losses for `{loss}`: bytes
  counted, the profiler's over them, medians of each direction, and shares of the rates of copies
  and products that were measured on the device ([how](how-to/on-a-gpu.md)).
- *to PyTorch*: the time over that of the quickest backend of PyTorch's attention within its error
  bound, in one run.
"""
COLUMNS = ('kernel', 'certified', 'counts equal', 'bytes', 'profiled', 'time', 'shares',
           'to PyTorch')
NONE = '—'


def runs(folder):
    """Reads every record of a folder with the run that it is of, the oldest first."""
    for path in sorted(glob.glob(os.path.join(folder, '*.jsonl'))):
        run = None
        for row in records.read(path):
            run = row if row['kind'] == 'run' else run
            yield run, row


def newest(rows, kind, kernel):
    """Finds the newest record of a kernel, on its own problem where it has one."""
    found = [(run, row) for run, row in rows if row['kind'] == kind and
             row.get('kernel') == kernel and row.get('problem') in (None, steps.small(kernel))]
    return found[-1] if found else (None, {})


def certified(rows, kernel):
    run, row = newest(rows, 'certify', kernel)
    if row.get('verdict') == 'certified':
        return run['date'][:10]
    return row.get('verdict') or ('failed' if row else NONE)


def counts(rows, kernel):
    """Compares the counts of the newest run that counted."""
    found = [(run, row) for run, row in rows
             if row['kind'] == 'golden' and row.get('kernel') == kernel]
    last = [row for run, row in found if run is found[-1][0]]
    equal = sum(records.failure(row) is None for row in last)
    return f'{equal} of {len(last)}' if last else NONE


def traffic(rows, kernel):
    _, row = newest(rows, 'traffic', kernel)
    counted, profiled = (row.get(what, {}) for what in ('counted', 'profiled'))
    total = sum(counted.get(what, 0) for what in ('read_bytes', 'written_bytes'))
    if not total:
        return NONE, NONE
    seen = sum(profiled.values())
    return f'{total:,}'.replace(',', ' '), f'{seen / total:.2f}' if seen else NONE


def times(rows, kernel):
    _, row = newest(rows, 'times', kernel)
    found = [f'{key[:-8]} {value * 1e3:.3g} ms'.replace('_', ' ') for key, value in sorted(
        row.items(), reverse=True) if key.endswith('_seconds')]
    products = (('matrix', 'share_of_matrix_rate') if kernel.endswith('_tensor_core') else
                ('float32', 'share_of_float_rate'))
    shares = [f'{kind} {row[key]:.1%}'
              for kind, key in (('copies', 'share_of_copy_rate'), products) if key in row]
    return ', '.join(found) or NONE, ', '.join(shares) or NONE


def dtype_of(kernel):
    return 'bf16' if kernel.endswith(('_tensor_core', '_16bit')) else 'f32'


def to_torch(rows, kernel):
    run, row = newest(rows, 'times', kernel)
    problem = f'{steps.small(kernel)},dtype={dtype_of(kernel)}'
    found = []
    for direction in ('forward', 'backward'):
        peers = [one['seconds'] for other, sdpa in rows if other is run and
                 sdpa['kind'] == 'sdpa' and sdpa.get('problem') == problem
                 for one in sdpa['variants'] if one['direction'] == direction and 'seconds' in one]
        if peers and f'{direction}_seconds' in row:
            found.append(f"{direction} {row[f'{direction}_seconds'] / min(peers):.3g}")
    return ', '.join(found) or NONE


def others(rows):
    """Tells of tests, libraries, kernels of others and sanitizers, the newest of each name."""
    found = {}
    for run, row in rows:
        if row['kind'] in ('tests', 'library', 'wild', 'sanitizers'):
            name = next(row[key] for key in ('tool', 'test', 'kernel', 'subject') if key in row)
            outcome = row.get('verdict') or outcome_of([row])[0]
            found[row['kind'], name] = f"- {row['kind']}, `{name}`: {outcome} ({run['date'][:10]})"
    return [found[name] for name in sorted(found)]


def kernels_of(rows):
    return list(dict.fromkeys(row['kernel'] for _, row in rows
                              if row['kind'] in ('certify', 'golden') and 'kernel' in row))


def text(folder):
    devices = collections.defaultdict(list)
    for run, row in runs(folder):
        devices[run['device']].append((run, row))
    every = {kernel for rows in devices.values() for kernel in kernels_of(rows)}
    done = {kernel for rows in devices.values() for kernel in kernels_of(rows)
            if newest(rows, 'certify', kernel)[1].get('verdict') == 'certified'}
    summary = f'**{len(done)} of {len(every)} kernels are certified on a device.**'
    lines = [HEAD.format(summary=summary, small=steps.SMALL_PROBLEM, loss=steps.LOSS_PROBLEM)]
    for device, rows in sorted(devices.items()):
        dates = sorted({run['date'][:10] for run, _ in rows})
        lines += [f"## {device}\n", f"Runs of {', '.join(dates)}.\n",
                  '| ' + ' | '.join(COLUMNS) + ' |', '|' + '---|' * len(COLUMNS)]
        lines += ['| ' + ' | '.join((f'`{kernel}`', certified(rows, kernel), counts(rows, kernel),
                                     *traffic(rows, kernel), *times(rows, kernel),
                                     to_torch(rows, kernel))) + ' |' for kernel in kernels_of(rows)]
        lines += ['', *others(rows), '']
    return '\n'.join(lines).rstrip() + '\n'


def write(root):
    with open(os.path.join(root, PLACE), 'w', encoding='utf-8') as file:
        file.write(text(os.path.join(root, 'gpu', 'results')))
    print(PLACE)
    return 0
