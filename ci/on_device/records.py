"""Keep what a device answered: JSON Lines, a record a line, on the disk before the next is asked.

A record has a "kind". Kind "run" begins what one run found (date, device, versions); kind "task"
ends what one task of a step found (step, task, outcome, seconds).
"""
import datetime
import glob
import json
import os
import re


def path_of(folder, run):
    """Names the file of a device and a day."""
    words = re.sub(r'[^A-Za-z0-9]+', '-', run['device']).strip('-').lower()
    return os.path.join(folder, f"{run['date'][:10]}-{words}.jsonl")


def run_record(device, **more):
    """Begins a run: its date, its device, and more."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds')
    return {'kind': 'run', 'date': now, **device, **more}


def read(path):
    """Reads a file; a last line that a stop has cut short is left out."""
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as file:
        return [json.loads(line) for line in file if line.endswith('\n')]


def append(path, rows):
    """Adds whole lines after the whole lines that are there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'ab+') as file:
        file.seek(0)
        whole = file.read().rpartition(b'\n')
        file.truncate(len(whole[0] + whole[1]))
        file.write(''.join(json.dumps(row) + '\n' for row in rows).encode())
        file.flush()
        os.fsync(file.fileno())


def last_run(path):
    """Reads the last run of a file, its own record first."""
    rows = read(path)
    begins = [place for place, row in enumerate(rows) if row['kind'] == 'run']
    return rows[begins[-1]:] if begins else []


def begin(folder, run, resume):
    """Begins the file of a run, or finds that of the last of the same device and programs."""
    path = path_of(folder, run)
    others = sorted(glob.glob(path_of(folder, {**run, 'date': '*'})))
    if resume and others:
        last = last_run(others[-1])
        if last and all(last[0].get(what) == run.get(what) for what in ('device', 'commit')):
            return others[-1]
    append(path, [run])
    return path


def finished(rows):
    """Lists the (step, task) that are not to be done again."""
    return {(row['step'], row['task']) for row in rows if row['kind'] == 'task'}


def failure(row):
    """Says why a record is no success, or None."""
    if row['kind'] == 'golden' and row.get('device') != row.get('emulated'):
        return f"counts of {row['kernel']} on {row['problem']} ({row['direction']})"
    if row.get('verdict') == 'failed':
        return row['output']
    return row.get('failed') or row.get('counted', {}).get('failed')


def refusal(row):
    """Says why a tool did not look, or None."""
    return row.get('refused') or (row['output'] if row.get('verdict') == 'refused' else None)
