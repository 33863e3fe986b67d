#!/usr/bin/env python3
"""What the command does when it cannot write: exit status 2, a message, and nothing overwritten."""
import os
import stat
import subprocess
import sys
import tempfile

ATTEST = sys.argv[1]
CHECK = ['check', '--kernel', 'cpu/flash2', '--problem', 'sq=2,d=1', '--law', 'reference_forward']
CERTIFY = ['certify', 'cpu/flash2', '--only', 'one_hot_probe', '--cases', '1']
failures = []


def run(arguments, stdout):
    done = subprocess.run([ATTEST] + arguments, stdout=stdout, stderr=subprocess.PIPE, text=True,
                          timeout=250)
    return done.returncode, done.stderr


def expect(what, got, message):
    if got[0] != 2 or message not in got[1]:
        failures.append(f'{what}: exit status {got[0]}, {got[1]!r}; expected 2 and {message!r}')


with tempfile.TemporaryDirectory() as folder:
    read_only = os.path.join(folder, 'read_only')
    open(read_only, 'w', encoding='utf-8').close()
    for arguments in (['list'], ['--help'], CHECK, CHECK + ['--json'], CERTIFY + ['--json'], CERTIFY):
        with open(read_only, encoding='utf-8') as unwritable:  # every write to it fails
            expect(' '.join(arguments), run(arguments, unwritable), 'cannot write to the standard')
    pipe = os.path.join(folder, 'pipe')
    os.mkfifo(pipe)
    expect('--out PIPE', run(CERTIFY + ['--out', pipe], subprocess.DEVNULL), 'it is a pipe')
    if not stat.S_ISFIFO(os.lstat(pipe).st_mode):
        failures.append('--out PIPE: the pipe is gone')
print('\n'.join(failures + [f'7 commands, {len(failures)} wrong']))
sys.exit(1 if failures else 0)
