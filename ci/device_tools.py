"""Ask a CUDA device for ci/test-gpu and ci/on-device, an answer a dictionary: certificates, tests,
the project's own counts and times, compute-sanitizer, Nsight Compute, the peers in Python, kernels
that others wrote."""
import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # a checkout, or a bundle
SANITIZERS = ('memcheck', 'racecheck', 'initcheck', 'synccheck')
# The kernels with tiles of all sizes, and what the profiler calls their launches.
FAMILY_PROBLEM, FAMILY_LOSS_PROBLEM = 'hq=8,sq=1024,d=256', 'sq=1024,d=192'
LAUNCHES = {'flash2': 'flash2_forward', 'square_tiled': 'square_tiled_(scores|values)',
            'two_pass': 'two_pass', 'square_tiled_bwd': 'square_tiled_bwd',
            'loss_large': 'loss_', 'loss_rows': 'loss_', 'loss_small': 'loss_'}
# Time against density, as FlashAttention's Figure 2 (right) has it: dense, then shares of blocks.
DENSE_PROBLEM = 'hq=16,sq=4096,d=64'
PERCENTS = (100, 50, 25, 10, 5)
# The peers, where PyTorch and Triton are, in this Python.
TRITON, SDPA = 'triton_flash2.py', 'torch_sdpa.py'
PEER_LAUNCHES = {'forward': 'forward_kernel',
                 'backward': '(delta|query_gradients|key_gradients)_kernel'}
PEER_SKIPPED = TEST_SKIPPED = 77
# Kernels of others: seconds that a campaign needs at least, and those of its last check and record.
WILD, LEAST_SECONDS, LAST_SECONDS = ('docs', 'how-to', 'wild', 'certify.py'), 20, 8
DEVICE_TEST = ('gpu', 'device', 'gpu_device_test')
READ = 'lts__t_sectors_srcunit_tex_op_read.sum'
WRITTEN = 'lts__t_sectors_srcunit_tex_op_write.sum'
SECTOR_BYTES = 32
LIMIT_STATUS = 124
GRACE = 10  # seconds until a killed command is given up: a driver may hold it
limit = None  # seconds that one command may take
until = None  # by time.monotonic(), when no command may go on
running = set()
stopped = False
known_counts = {}


class OutOfTime(Exception):
    """Says that a command was ended for all of them, not for its own limit."""


def program(*place):
    return os.path.join(root, 'build', 'cuda', *place)


def peer_script(name):
    return [sys.executable, os.path.join(root, 'gpu', 'device', 'peers', name)]


def toolkit():
    """Finds nvcc, or None; puts the toolkit's folder on PATH for its other tools too."""
    folder = os.path.join(os.environ.get('CUDA_PATH', '/usr/local/cuda'), 'bin')
    os.environ['PATH'] += os.pathsep + folder
    return shutil.which('nvcc')


def session_of(process):
    """Finds the processes of its session: workers have groups of their own."""
    for name in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError, IndexError):
            with open(f'/proc/{name}/stat', encoding='utf-8', errors='replace') as file:
                state, _, _, session = file.read().rpartition(')')[2].split()[:4]
            if int(session) == process.pid and state not in 'ZX':
                yield int(name)


def end(process):
    """Ends a process and all that it has started, which would keep the device from the next."""
    tries = time.monotonic() + GRACE
    while (left := list(session_of(process))) and time.monotonic() < tries:
        for one in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)


def stop_all():
    """No command goes on or begins any more."""
    global stopped
    stopped = True
    for process in list(running):
        end(process)


def answer_of(command):
    """Status, output and errors of a command; LIMIT_STATUS where it has not ended in time."""
    left = None if until is None else until - time.monotonic()
    if left is not None and left <= 0:
        raise OutOfTime
    if stopped:
        return LIMIT_STATUS, '', 'stopped'
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, errors='replace', start_new_session=True)
    except OSError as error:
        return 127, '', str(error)
    running.add(process)
    try:
        output, errors = process.communicate(
            timeout=min((one for one in (limit, left) if one is not None), default=None))
        return process.returncode, output, errors
    except subprocess.TimeoutExpired:
        end(process)
        try:
            output, errors = process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            output, errors = '', 'it cannot be ended, '
        if until is not None and time.monotonic() >= until:
            raise OutOfTime from None
        return LIMIT_STATUS, output, f'{errors}not done after {limit} s'
    finally:
        end(process)
        running.discard(process)


def measure(*words):
    status, output, errors = answer_of([program('bin', 'attest_gpu_measure'), *words])
    return json.loads(output) if status == 0 else {'failed': errors.strip() or f'status {status}'}


def times_of(kernel, problem):
    """Median and quartiles of the seconds of each direction, and its operations."""
    answer = measure('time', kernel, problem)
    for key in [key for key in answer if key.endswith('_seconds')]:
        low, answer[key], high = statistics.quantiles(answer[key], n=4, method='inclusive')
        answer[f'{key}_quartiles'] = [low, high]
    return answer


def counted(kernel, problem):
    """Bytes that the kernel counts on the device, all its directions together; asked once."""
    if (kernel, problem) not in known_counts:
        answer = measure('count', kernel, problem)
        if 'failed' in answer:
            return answer
        known_counts[kernel, problem] = answer
    return known_counts[kernel, problem]


def tail(text, lines=5):
    return '\n'.join(text.strip().splitlines()[-lines:])


def sanitizer_verdict(status, output):
    """passed or failed where the tool has looked to the end, refused where it has not."""
    summary = re.search(r'(?:ERROR|RACECHECK) SUMMARY: (\d+)', output)
    if summary is None:
        return {'verdict': 'refused', 'output': tail(output) or f'status {status}'}
    if status == 0 and int(summary[1]) == 0:
        return {'verdict': 'passed'}
    return {'verdict': 'failed', 'output': tail(output, 40)}


def sanitize(tool):
    """The device's tests under one tool; launches that they mean to be refused are not reported.
    Tests that depend on how long a launch takes to begin are left out: a tool makes that longer."""
    status, output, errors = answer_of(['compute-sanitizer', '--tool', tool, '--report-api-errors',
                                        'no', program(*DEVICE_TEST), '~[delay]~[stray]'])
    return {'tool': tool, **sanitizer_verdict(status, output + errors)}


def profiled_bytes(text):
    """Bytes between L1 and L2 from ncu's CSV, all kernels together; None when there are none."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    found = {READ: 0.0, WRITTEN: 0.0}
    seen = set()
    for row in csv.DictReader(io.StringIO('\n'.join(lines))):
        for metric in found:
            try:
                found[metric] += float((row.get(metric) or '').replace(',', ''))
                seen.add(metric)
            except ValueError:  # the line of units
                pass
    if len(seen) < len(found):
        return None
    return {'read_bytes': found[READ] * SECTOR_BYTES,
            'written_bytes': found[WRITTEN] * SECTOR_BYTES}


def profiled(words, launches=None):
    """{'profiled': bytes} of a command's launches whose names match, or {'refused': why}."""
    command = ['ncu', '--clock-control', 'none', '--cache-control', 'all', '--csv', '--page', 'raw',
               '--metrics', f'{READ},{WRITTEN}', *(['-k', f'regex:{launches}'] if launches else []),
               *words]
    status, output, errors = answer_of(command)
    seen = profiled_bytes(output) if status == 0 else None
    return {'refused': tail(output + errors)} if seen is None else {'profiled': seen}


def run_of(kernel, problem):
    return [program('bin', 'attest_gpu_measure'), 'run', kernel, problem]


def traffic(kernel, problem):
    """Counted bytes beside those of the profiler."""
    return {'kernel': kernel, 'problem': problem, 'counted': counted(kernel, problem),
            **profiled(run_of(kernel, problem))}


def words_of(row):
    """Words that the row's schedule moves."""
    _, output, errors = answer_of([program('bin', 'attest'), 'count', '--schedule',
                                   row['schedule'], '--problem', row['problem'], '--fast-bytes',
                                   str(row['fast_bytes']), '--json'])
    try:
        return {'words': json.loads(output)['closed_form']['moved']['words']}
    except (ValueError, KeyError):
        return {'failed': tail(errors)}


def families(family):
    """Kernels with tiles of all sizes: fast memory, schedules' words, seconds, profiled bytes."""
    answer = measure('families', FAMILY_PROBLEM, FAMILY_LOSS_PROBLEM)
    if 'failed' in answer:
        return [answer]
    rows = [row for row in answer['families'] if row['family'] == family]
    for row in rows:
        row.update(words_of(row))
        times = times_of(row['kernel'], row['problem'])
        if 'failed' in times:
            row['failed'] = times['failed']
        else:
            for what in ('seconds', 'seconds_quartiles'):
                row[what] = times[f"{row['direction']}_{what}"]
        row.update(profiled(run_of(row['kernel'], row['problem']), LAUNCHES[row['family']]))
    return rows


def peer(script, *problems):
    """Times the variants of a peer that are within their bounds, or says why there are none."""
    status, output, errors = answer_of([*peer_script(script), 'time', *problems])
    if status == PEER_SKIPPED:
        return [{'refused': tail(errors)}]
    try:
        answers = [json.loads(line) for line in output.splitlines()]
    except ValueError:
        answers = []
    if len(answers) < len(problems):
        answers.append({'failed': tail(errors) or f'status {status}', 'variants': []})
    for answer in answers:
        wrong = [row['failed'] for row in answer['variants'] if 'failed' in row]
        if wrong:
            answer['failed'] = '; '.join(wrong)
    return answers


def at_equal_caps(rows, variants):
    """Finds for each row of families() the quickest variant of the peer in no more fast memory."""
    seen, found = {}, []
    for row in rows:
        fitting = [one for one in variants if one['direction'] == row.get('direction') and
                   'seconds' in one and one['fast_bytes'] <= row['fast_bytes']]
        if not fitting:
            continue
        best = min(fitting, key=lambda one: one['seconds'])
        name = best['variant']
        if name not in seen:
            seen[name] = profiled([*peer_script(TRITON), 'run', FAMILY_PROBLEM, name],
                                  PEER_LAUNCHES[best['direction']])
        found.append({'kernel': row['kernel'], 'direction': row['direction'],
                      'fast_bytes': row['fast_bytes'],
                      'triton': {'variant': name, 'fast_bytes': best['fast_bytes'],
                                 'seconds': best['seconds'], **seen[name]}})
    return found


def timed(kernel, problem, rates):
    """Times, and what share of them the bytes and the products take at the device's rates."""
    row, moved = times_of(kernel, problem), counted(kernel, problem)
    row['counted'] = moved
    if 'failed' in row or 'failed' in moved or 'failed' in rates:
        return row
    seconds = sum(value for key, value in row.items() if key.endswith('_seconds'))
    operations = sum(value for key, value in row.items() if key.endswith('_operations'))
    row['share_of_copy_rate'] = ((moved['read_bytes'] + moved['written_bytes']) /
                                 rates['copy_bytes_per_second'] / seconds)
    for kind in ('float', 'matrix') if operations else ():
        rate = rates[f'{kind}_operations_per_second']
        row[f'share_of_{kind}_rate'] = operations / rate / seconds
    return row


def density():
    """gpu/block_flash2 on a mask of random blocks against gpu/flash2 on all pairs, in one run."""
    dense = times_of('gpu/flash2', DENSE_PROBLEM)
    if 'failed' in dense:
        return [dense]
    rows = []
    for percent in PERCENTS:
        row = times_of('gpu/block_flash2', f'{DENSE_PROBLEM},mask=block_64x64_{percent}_1')
        for direction in ('forward', 'backward') if 'failed' not in row else ():
            share = row[f'{direction}_operations'] / dense[f'{direction}_operations']
            speedup = dense[f'{direction}_seconds'] / row[f'{direction}_seconds']
            row[f'{direction}_density'] = share
            row[f'{direction}_speedup'] = speedup
            row[f'{direction}_share_of_ideal'] = speedup * share
        rows.append(row)
    return [dense, *rows]


def certified(name, folder):
    """Certifies a kernel in tier smoke: its verdict, and the worst error over bound of each output.
    The certificate is written to the folder."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, re.sub('[^a-z0-9_]+', '-', os.path.basename(name)) + '.json')
    with contextlib.suppress(FileNotFoundError):  # an earlier run's
        os.remove(path)
    status, _, errors = answer_of([program('bin', 'attest'), 'certify', name, '--jobs', '2',
                                   '--out', path])
    try:
        with open(path, encoding='utf-8') as file:
            certificate = json.load(file)
        found, = certificate['kernels']
    except (OSError, ValueError):
        return {'kernel': name.removesuffix('@device'),
                'failed': tail(errors) or f'status {status}'}
    answer = {'kernel': found['kernel'].removesuffix('@device'), 'verdict': found['verdict'],
              'ran': found['ran'], 'tier': certificate['tier'], 'checks': found['checks'],
              'error_over_bound': {output: worst['error_over_bound']
                                   for output, worst in found['worst'].items()}}
    if found['findings']:
        first = found['findings'][0]
        answer['failed'] = f"{first['message']}: {first['reproduce']}"
    elif status != 0:
        answer['failed'] = '; '.join(found['incomplete']) or f'status {status}'
    return answer


def outside(module, subject):
    """Certifies a kernel that others wrote; the campaign ends itself before its time is over."""
    left = [one for one in (limit, until and until - time.monotonic()) if one is not None]
    seconds = int(min(left, default=3600))
    if seconds < min(LEAST_SECONDS, limit or LEAST_SECONDS):
        raise OutOfTime
    status, output, errors = answer_of([
        'env', f"PYTHONPATH={program('package')}", sys.executable, os.path.join(root, *WILD),
        '--one', module, subject, str(max(seconds - LAST_SECONDS, 1))])
    if status == PEER_SKIPPED:
        return {'subject': subject, 'refused': tail(errors, 1)}
    try:
        row = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        return {'subject': subject, 'failed': tail(errors) or f'status {status}'}
    if row['findings']:
        first = row['findings'][0]
        row['failed'] = f"{first['law']}: {first['message']}: {first['case']['problem']}"
    return row


def tested(name, *tags):
    """Runs tests of the device in a program of their own: a context does not survive some."""
    status, output, errors = answer_of([program(*DEVICE_TEST), *tags])
    if status == TEST_SKIPPED:
        return {'test': name, 'refused': tail(output + errors)}
    return {'test': name, 'output': tail(output, 2),
            **({} if status == 0 else {'failed': f'status {status}: {tail(output + errors, 40)}'})}
