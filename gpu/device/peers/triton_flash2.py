#!/usr/bin/env python3
"""FlashAttention-2 in Triton, in tiles of all sizes: the peer of capped_blocks; see --help."""
import json
import os
import sys

USAGE = """\
usage: triton_flash2.py time PROBLEM           every variant: fast memory of a block, seconds
       triton_flash2.py run PROBLEM VARIANT    one variant once, for a profiler
       triton_flash2.py check PROBLEM          every variant on the CPU, by Triton's interpreter
PROBLEM is like hq=8,sq=1024,d=256: float32, no mask, d a power of two from 16 on. A VARIANT is a
"variant" of what `time` prints. Nothing is timed that is not within its error bound. With `check`
subjects that leave out the last key, the scale, or delta must lie outside it.
Exit codes: 0 done, 1 outside the bound, 2 bad words, 77 no Triton or PyTorch, or no device.
"""
SKIPPED = 77
if __name__ == '__main__' and sys.argv[1:] in (['-h'], ['--help']):
    print(USAGE, end='')
    sys.exit(0)
if sys.argv[1:2] == ['check']:
    os.environ['TRITON_INTERPRET'] = '1'
sys.dont_write_bytecode = True  # the tree stays as it is
try:
    import torch
    import triton
    import triton.language as tl

    import peer_bounds
except ImportError as missing:
    if __name__ == '__main__':
        print(f'skipped: {missing}', file=sys.stderr)
        sys.exit(SKIPPED)
    raise

LOG2_E = tl.constexpr(1.4426950408889634)
# Larger ones take minutes to compile: float32 products are not the tensor cores'.
SIDES, STAGES = (peer_bounds.LEAST_TILE, 32, 64), (1, 2)


# Tensors are (heads, rows, columns), contiguous. Rows beyond the last read 0 and write nothing.
@triton.jit
def load_rows(tensor, rows, count, D: tl.constexpr):
    places = rows[:, None] * D + tl.arange(0, D)[None, :]
    return tl.load(tensor + places, mask=rows[:, None] < count, other=0.0)


@triton.jit
def store_rows(tensor, rows, count, values, D: tl.constexpr):
    places = rows[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(tensor + places, values, mask=rows[:, None] < count)


@triton.jit
def product(a, b, sum):
    return tl.dot(a, b, sum, input_precision='ieee')


@triton.jit
def forward_kernel(Q, K, V, O, LSE, scale, queries, keys, D: tl.constexpr, ROWS: tl.constexpr,
                   KEYS: tl.constexpr):
    """Dao 2023, algorithm 1: a block of queries, all keys pass."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    q = load_rows(Q + head * queries * D, rows, queries, D)
    greatest = tl.full([ROWS], float('-inf'), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    o = tl.zeros([ROWS, D], tl.float32)
    for first in range(0, keys, KEYS):
        columns = first + tl.arange(0, KEYS)
        k = load_rows(K + head * keys * D, columns, keys, D)
        v = load_rows(V + head * keys * D, columns, keys, D)
        s = product(q, tl.trans(k), tl.zeros([ROWS, KEYS], tl.float32)) * scale
        s = tl.where(columns[None, :] < keys, s, float('-inf'))
        risen = tl.maximum(greatest, tl.max(s, 1))
        factor = tl.exp(greatest - risen)
        p = tl.exp(s - risen[:, None])
        total = total * factor + tl.sum(p, 1)
        o = product(p, v, o * factor[:, None])
        greatest = risen
    store_rows(O + head * queries * D, rows, queries, o / total[:, None], D)
    tl.store(LSE + head * queries + rows, greatest + tl.log(total), mask=rows < queries)


@triton.jit
def delta_kernel(O, dO, delta, queries, D: tl.constexpr, ROWS: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    o = load_rows(O + head * queries * D, rows, queries, D)
    do = load_rows(dO + head * queries * D, rows, queries, D)
    tl.store(delta + head * queries + rows, tl.sum(o * do, 1), mask=rows < queries)


@triton.jit
def query_gradients_kernel(Q, K, V, dO, LSE, delta, dQ, scale, queries, keys, D: tl.constexpr,
                           ROWS: tl.constexpr, KEYS: tl.constexpr):
    """Dao 2023, algorithm 2, its dQ: queries stay, keys pass."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    q = load_rows(Q + head * queries * D, rows, queries, D)
    do = load_rows(dO + head * queries * D, rows, queries, D)
    lse = tl.load(LSE + head * queries + rows, mask=rows < queries, other=0.0)
    d = tl.load(delta + head * queries + rows, mask=rows < queries, other=0.0)
    dq = tl.zeros([ROWS, D], tl.float32)
    for first in range(0, keys, KEYS):
        columns = first + tl.arange(0, KEYS)
        k = load_rows(K + head * keys * D, columns, keys, D)
        v = load_rows(V + head * keys * D, columns, keys, D)
        s = product(q, tl.trans(k), tl.zeros([ROWS, KEYS], tl.float32)) * scale
        p = tl.where(columns[None, :] < keys, tl.exp(s - lse[:, None]), 0.0)
        dp = product(do, tl.trans(v), tl.zeros([ROWS, KEYS], tl.float32))
        dq = product(p * (dp - d[:, None]), k, dq)
    store_rows(dQ + head * queries * D, rows, queries, dq * scale, D)


@triton.jit
def key_gradients_kernel(Q, K, V, dO, LSE, delta, dK, dV, scale, queries, keys, D: tl.constexpr,
                         ROWS: tl.constexpr, KEYS: tl.constexpr):
    """Dao 2023, algorithm 2, its dK and dV: keys stay, queries pass."""
    head = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * KEYS + tl.arange(0, KEYS)
    k = load_rows(K + head * keys * D, columns, keys, D)
    v = load_rows(V + head * keys * D, columns, keys, D)
    dk = tl.zeros([KEYS, D], tl.float32)
    dv = tl.zeros([KEYS, D], tl.float32)
    for first in range(0, queries, ROWS):
        rows = first + tl.arange(0, ROWS)
        q = load_rows(Q + head * queries * D, rows, queries, D)
        do = load_rows(dO + head * queries * D, rows, queries, D)
        lse = tl.load(LSE + head * queries + rows, mask=rows < queries, other=0.0)
        d = tl.load(delta + head * queries + rows, mask=rows < queries, other=0.0)
        s = product(k, tl.trans(q), tl.zeros([KEYS, ROWS], tl.float32)) * scale
        p = tl.where(rows[None, :] < queries, tl.exp(s - lse[None, :]), 0.0)
        dv = product(p, do, dv)
        dp = product(v, tl.trans(do), tl.zeros([KEYS, ROWS], tl.float32))
        dk = product(p * (dp - d[None, :]), q, dk)
    store_rows(dK + head * keys * D, columns, keys, dk * scale, D)
    store_rows(dV + head * keys * D, columns, keys, dv, D)


def stop(message, status=2):
    print(f'triton_flash2.py: {message}', file=sys.stderr)
    sys.exit(status)


class Variant:
    """rows and keys of a tile, warps of a block and stages of the loop, of one direction."""

    def __init__(self, direction, rows, keys, warps, stages):
        self.direction, self.rows, self.keys = direction, rows, keys
        self.options = {'num_warps': warps, 'num_stages': stages}

    def __str__(self):
        return (f"{self.direction}:{self.rows}x{self.keys},warps={self.options['num_warps']},"
                f"stages={self.options['num_stages']}")

    def run(self, call):
        """The launches; the largest fast memory of a block in bytes, shared and registers."""
        compiled = call.forward(self) if self.direction == 'forward' else call.backward(self)
        return [(one.metadata.shared, 4 * one.n_regs * 32 * one.metadata.num_warps, one.n_spills)
                for one in compiled if one is not None]


def variants():
    for direction in ('forward', 'backward'):
        for rows in SIDES:
            for keys in SIDES:
                for stages in STAGES:
                    yield Variant(direction, rows, keys, 4 if rows * keys <= 1024 else 8, stages)


class Call:
    """Tensors of one problem, drawn from a normal distribution, and the launches on them."""

    def __init__(self, shape, device):
        self.heads, self.length, self.d = shape
        self.scale = self.d ** -0.5
        drawn = torch.Generator().manual_seed(1)
        size = (self.heads, self.length, self.d)
        self.Q, self.K, self.V, self.dO = (
            torch.randn(size, generator=drawn).to(device) for _ in range(4))
        self.outputs = {name: torch.empty(size, device=device)
                        for name in ('O', 'dQ', 'dK', 'dV')}
        self.LSE = torch.empty(size[:2], device=device)
        self.delta = torch.empty(size[:2], device=device)
        self.keys, self.given_scale, self.given_delta = self.length, self.scale, True

    def expected(self):
        return peer_bounds.exact_and_bounds(self.Q, self.K, self.V, self.dO, self.scale)

    def worst_ratio(self, expected, direction):
        names = ('O',) if direction == 'forward' else ('dQ', 'dK', 'dV')
        return peer_bounds.worst_ratio(self.outputs, expected, names)

    def clear(self):
        for tensor in (*self.outputs.values(), self.LSE, self.delta):
            tensor.fill_(float('nan'))

    def grid(self, side):
        return (triton.cdiv(self.length, side), self.heads)

    def forward(self, variant):
        return [forward_kernel[self.grid(variant.rows)](
            self.Q, self.K, self.V, self.outputs['O'], self.LSE, self.given_scale, self.length,
            self.keys, D=self.d, ROWS=variant.rows, KEYS=variant.keys, **variant.options)]

    def backward(self, variant):
        """LSE and O are those of a forward pass before."""
        sides = {'D': self.d, 'ROWS': variant.rows, 'KEYS': variant.keys, **variant.options}
        found = [delta_kernel[self.grid(variant.rows)](
            self.outputs['O'], self.dO, self.delta, self.length, D=self.d, ROWS=variant.rows)]
        if not self.given_delta:
            self.delta.zero_()
        inputs = (self.Q, self.K, self.V, self.dO, self.LSE, self.delta)
        sizes = (self.given_scale, self.length, self.keys)
        found.append(query_gradients_kernel[self.grid(variant.rows)](
            *inputs, self.outputs['dQ'], *sizes, **sides))
        found.append(key_gradients_kernel[self.grid(variant.keys)](
            *inputs, self.outputs['dK'], self.outputs['dV'], *sizes, **sides))
        return found


def judged(variant, call, expected):
    """(fast memory of its launches, worst error over bound) of outputs that held NaN before."""
    call.clear()
    if variant.direction == 'backward':
        call.forward(Variant('forward', 16, 16, 4, 1))
    return variant.run(call), call.worst_ratio(expected, variant.direction)


def time_all(call):
    rows = []
    expected = call.expected()
    for variant in variants():
        row = {'variant': str(variant), 'direction': variant.direction}
        rows.append(row)
        try:
            launches, ratio = judged(variant, call, expected)
        except triton.runtime.errors.OutOfResources as refused:
            row['refused'] = str(refused)
            continue
        shared, registers, spilled = max(launches, key=lambda one: one[0] + one[1])
        row.update({'fast_bytes': shared + registers, 'shared_bytes': shared,
                    'register_bytes': registers, 'spilled': spilled, 'error_over_bound': ratio})
        if ratio <= 1:
            row.update(peer_bounds.seconds_of(lambda: variant.run(call)))
        else:
            row['failed'] = f'{variant} is {ratio:.3g} times outside its bound'
    return rows


def check_all(call):
    """Every variant within its bounds, each broken subject outside: lines of what is not so."""
    found = []
    worst = {}
    expected = call.expected()
    sides = {(one.direction, one.rows, one.keys): one for one in variants()}
    for variant in sides.values():  # warps and stages mean nothing to the interpreter
        call.clear()
        if variant.direction == 'backward':
            call.forward(variant)
        (call.forward if variant.direction == 'forward' else call.backward)(variant)
        ratio = call.worst_ratio(expected, variant.direction)
        worst[variant.direction] = max(worst.get(variant.direction, 0), ratio)
        if not ratio <= 1:
            found.append(f'{variant} is {ratio:.3g} times outside its bound')
    for what, change in (('the last key', {'keys': call.length - 1}),
                         ('the scale', {'given_scale': 1.0}), ('delta', {'given_delta': False})):
        kept = dict(call.__dict__)
        for direction in ('forward', 'backward'):
            if what == 'delta' and direction == 'forward':
                continue
            call.clear()
            variant = sides[direction, 16, 32]
            if direction == 'backward':
                call.forward(variant)
            call.__dict__.update(change)
            (call.forward if direction == 'forward' else call.backward)(variant)
            call.__dict__.update(kept)
            if call.worst_ratio(expected, direction) <= 1:
                found.append(f'{direction} without {what} is within its bound')
    print(f'{len(sides)} tiles, worst error over bound: ' +
          ', '.join(f'{direction} {ratio:.3g}' for direction, ratio in worst.items()))
    return found


def shape_of(problem):
    """(heads, length, head_dim) of a problem string."""
    sizes = {'hq': 1}
    for word in problem.split(','):
        key, _, value = word.partition('=')
        if key not in ('hq', 'sq', 'd') or not value.isdigit() or int(value) < 1:
            stop(f"'{word}' of problem '{problem}': hq, sq and d with a positive number are known")
        sizes[key] = int(value)
    if 'sq' not in sizes or 'd' not in sizes:
        stop(f"problem '{problem}' needs sq and d")
    if sizes['d'] < 16 or sizes['d'] & (sizes['d'] - 1):
        stop(f"d = {sizes['d']} is not a power of two from 16 on")
    return sizes['hq'], sizes['sq'], sizes['d']


def main(words):
    verb = words[0] if words else ''
    if verb not in ('time', 'run', 'check') or len(words) != (3 if verb == 'run' else 2):
        print(USAGE, end='', file=sys.stderr)
        return 2
    shape = shape_of(words[1])
    if verb == 'check':
        found = check_all(Call(shape, 'cpu'))
        for line in found:
            print(f'failed: {line}')
        return 1 if found else 0
    if not torch.cuda.is_available():
        stop('no CUDA device', SKIPPED)
    torch.backends.cuda.matmul.allow_tf32 = False
    call = Call(shape, 'cuda')
    if verb == 'run':
        for variant in variants():
            if str(variant) == words[2]:
                call.forward(variant)
                if variant.direction == 'backward':
                    call.backward(variant)
                torch.cuda.synchronize()
                return 0
        stop(f"unknown variant '{words[2]}'")
    rows = time_all(call)
    print(json.dumps({'triton': triton.__version__, 'torch': torch.__version__,
                      'problem': words[1], 'variants': rows}))
    return 1 if any('failed' in row for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
