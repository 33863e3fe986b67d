#!/usr/bin/env python3
"""Checks the command when it cannot write: exit status 2, a message, and nothing overwritten;
a campaign goes on to its end and writes its files all the same;
what it prints of names that a terminal would obey; and that it shows that long work goes on."""
import os
import resource
import select
import stat
import subprocess
import sys
import tempfile

ATTEST = sys.argv[1]
CHECK = ['check', '--kernel', 'cpu/flash2', '--problem', 'sq=2,d=1', '--law', 'reference_forward']
EMULATE = ['emulate', '--kernel', 'gpu/flash2', '--problem', 'sq=2,d=1']
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
    for arguments in (['list'], ['--help'], CHECK, CHECK + ['--json'], CERTIFY + ['--json'], CERTIFY,
                      EMULATE):
        with open(read_only, encoding='utf-8') as unwritable:  # every write to it fails
            expect(' '.join(arguments), run(arguments, unwritable), 'cannot write to the standard')
    pipe = os.path.join(folder, 'pipe')
    os.mkfifo(pipe)
    expect('--out PIPE', run(CERTIFY + ['--out', pipe], subprocess.DEVNULL), 'it is a pipe')
    if not stat.S_ISFIFO(os.lstat(pipe).st_mode):
        failures.append('--out PIPE: the pipe is gone')

# A campaign ends as it would have, whatever became of what it prints.
VERDICTS = (('cpu/flash2', 0), ('broken/nan_output', 1))
for kernel, code in VERDICTS:
    campaign = [ATTEST, 'certify', kernel, 'cpu/standard', '--only', 'ones', '--cases', '2', '--out']
    for how, lost in (('2>&-', False), ('2>/dev/full', False), ('>&-', True), ('>/dev/full', True),
                      ('>/dev/full 2>&-', True), ('>&- 2>&- <&-', True),
                      ('| head -c 1 > /dev/null', False)):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, 'certificate.json')
            line = ' '.join(campaign + [out])
            done = subprocess.run(['bash', '-c', f'{line} {how}; exit ${{PIPESTATUS[0]}}'],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=250)
            expected = {2, 0} if '|' in how and code == 0 else {2 if lost and code == 0 else code}
            if done.returncode not in expected:
                failures.append(f'{line} {how}: exit status {done.returncode}, {done.stderr!r}')
            if not os.path.exists(out):
                failures.append(f'{line} {how}: no certificate')
            if lost and '2>&-' not in how and b'cannot write to the standard' not in done.stderr:
                failures.append(f'{line} {how}: {done.stderr!r}')

# Progress that cannot be shown ends nothing.
done = subprocess.run(['bash', '-c', f'timeout 8 {ATTEST} check --kernel cpu/flash2 --law ones --problem '
                       'sq=2,d=1,hq=8000000 2>&-'], stdout=subprocess.DEVNULL, timeout=250)
if done.returncode not in (0, 124):
    failures.append(f'progress on a closed stderr: exit status {done.returncode}')

# A limit on the size of files is a file that cannot be written, and leaves nothing behind.
with tempfile.TemporaryDirectory() as folder:
    out = os.path.join(folder, 'mask.json')
    done = subprocess.run([ATTEST, 'pattern', 'random_50_1', '--seqlen', '200', '--out', out],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=250,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    expect('--out beyond the limit', (done.returncode, done.stderr), 'is the disk full')
    if os.listdir(folder):
        failures.append(f'--out beyond the limit left {os.listdir(folder)}')

# Names that people give reach the terminal spelled, not raw; bytes that are no UTF-8 end nothing.
with tempfile.TemporaryDirectory() as folder:
    mask = os.path.join(os.fsencode(folder), b'm\x1b[31m\xff.txt')
    with open(mask, 'wb') as file:
        file.write(b'11\n11\n')
    named = CHECK[:3] + ['--problem', b'sq=2,d=1,mask=file_' + mask] + CHECK[5:]
    for arguments in (named, named + ['--json']):
        done = subprocess.run([ATTEST] + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=250)
        if done.returncode != 0 or b'\x1b' in done.stdout or b'\xff' in done.stdout:
            failures.append(f'{arguments}: exit status {done.returncode}, {done.stdout!r}')
    # A campaign on such a file ends with a certificate.
    certificate = os.path.join(folder, 'certificate.json')
    for more in (['--json'], ['--out', certificate]):
        arguments = ['certify', 'cpu/flash2', '--only', 'reference_forward', '--cases', '1', '--mask',
                     b'file_' + mask] + more
        done = subprocess.run([ATTEST] + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=250)
        if done.returncode not in (0, 3) or b'\x1b' in done.stdout or b'\xff' in done.stdout:
            failures.append(f'{arguments}: exit status {done.returncode}, {done.stdout!r}')
    if not os.path.exists(certificate):
        failures.append('certify --out wrote no certificate')
for arguments in ([b'\x1b[31m'], ['list', b'\x1b[31m\xff'], ['certify', b'\x1b\xff'],
                  ['certify', '--all', '--tier', b'\x1b'], ['certify', '--all', b'--\x1b[31m'],
                  ['certify', 'cpu/flash2', '--out', b'/missing/\x1b[31m\xff'],
                  CHECK[:4] + [b'sq=2,d=1,mask=file_\x1b[31m\xff'],
                  CHECK[:4] + [b'sq=2,d=1,\x1b=1'], CHECK + ['--values', b'\x1b\xff'],
                  CHECK + ['--seed', b'\x1b'], ['count', '--schedule', b'\x1b\xff', '--problem',
                                                'sq=2,d=1', '--fast-words', '99']):
    done = subprocess.run([ATTEST] + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=250)
    if done.returncode != 2 or b'\x1b' in done.stdout or b'\\x1b' not in done.stdout:
        failures.append(f'{arguments}: exit status {done.returncode}, {done.stdout!r}')

# Long work shows on a terminal that it goes on.
for arguments, line in ((['check', '--kernel', 'cpu/flash2', '--law', 'ones', '--problem',
                          'sq=2,d=1,hq=1000000'], b'ones, 1 s'),
                        (['emulate', '--kernel', 'gpu/flash2', '--problem',
                          'sq=2,d=1,hq=1000000'], b'gpu/flash2 ascending, 1 s'),
                        (['count', '--schedule', 'flash2', '--problem',
                          'sq=4096,d=64,mask=block_64_25_1', '--fast-words', '65536', '--no-best'],
                         b'counting flash2, 1 s')):
    master, terminal = os.openpty()
    long = subprocess.Popen([ATTEST] + arguments, stdout=subprocess.DEVNULL,
                            stderr=terminal)
    shown = os.read(master, 100) if select.select([master], [], [], 120)[0] else b''
    long.kill()
    long.wait()
    if line not in shown:
        failures.append(f'{arguments} printed {shown!r} on the terminal')

print('\n'.join(failures + [f'{len(failures)} commands wrong']))
sys.exit(1 if failures else 0)
