#!/usr/bin/env python3
"""Times PyTorch's attention, backend by backend, verified first; see --help."""
import json
import sys

USAGE = """\
usage: torch_sdpa.py time PROBLEM...   every backend: error over bound, and seconds where within
       torch_sdpa.py check PROBLEM...  those of the CPU, and broken subjects that must lie outside
PROBLEM is like hq=8,sq=1024,d=64,dtype=bf16: f32 or bf16, no mask. A backend that does not take
the problem, or is outside its bound, is refused and not timed.
Exit codes: 0 done, 1 outside the bound, 2 bad words, 77 no PyTorch, or no device.
"""
SKIPPED = 77
if __name__ == '__main__' and sys.argv[1:] in (['-h'], ['--help']):
    print(USAGE, end='')
    sys.exit(0)
sys.dont_write_bytecode = True  # the tree stays as it is
try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    import peer_bounds
except ImportError as missing:
    if __name__ == '__main__':
        print(f'skipped: {missing}', file=sys.stderr)
        sys.exit(SKIPPED)
    raise

BACKENDS = {'math': SDPBackend.MATH, 'flash': SDPBackend.FLASH_ATTENTION,
            'efficient': SDPBackend.EFFICIENT_ATTENTION, 'cudnn': SDPBackend.CUDNN_ATTENTION}
ON_CPU = ('math', 'flash')
DTYPES = {'f32': torch.float32, 'bf16': torch.bfloat16}
OUTPUTS = {'forward': ('O',), 'backward': ('dQ', 'dK', 'dV')}


def stop(message, status=2):
    print(f'torch_sdpa.py: {message}', file=sys.stderr)
    sys.exit(status)


def shape_of(problem):
    """Reads (heads, length, head_dim) and dtype of a problem string."""
    sizes, dtype = {'hq': 1}, 'f32'
    for word in problem.split(','):
        key, _, value = word.partition('=')
        if key == 'dtype' and value in DTYPES:
            dtype = value
        elif key in ('hq', 'sq', 'd') and value.isdigit() and int(value) > 0:
            sizes[key] = int(value)
        else:
            stop(f"'{word}' of problem '{problem}': hq, sq and d with a positive number are known, "
                 f"dtype is {' or '.join(DTYPES)}")
    if 'sq' not in sizes or 'd' not in sizes:
        stop(f"problem '{problem}' needs sq and d")
    return (sizes['hq'], sizes['sq'], sizes['d']), DTYPES[dtype]


class Call:
    """Draws the tensors of one problem and runs PyTorch's attention on them."""

    def __init__(self, shape, dtype, device):
        drawn = torch.Generator().manual_seed(1)
        self.Q, self.K, self.V, self.dO = (
            torch.randn(shape, generator=drawn).to(device, dtype) for _ in range(4))
        self.scale = shape[-1] ** -0.5
        self.inputs = [one[None].clone().requires_grad_() for one in (self.Q, self.K, self.V)]

    def expected(self):
        return peer_bounds.exact_and_bounds(self.Q, self.K, self.V, self.dO, self.scale)

    def forward(self, scale=None, keys=None):
        Q, K, V = self.inputs
        return torch.nn.functional.scaled_dot_product_attention(
            Q, K[..., :keys, :], V[..., :keys, :], scale=scale or self.scale)

    def backward(self, O):
        return torch.autograd.grad(O, self.inputs, self.dO[None], retain_graph=True)

    def outputs(self, **changes):
        O = self.forward(**changes)
        return dict(zip(('O', 'dQ', 'dK', 'dV'),
                        (one.detach()[0] for one in (O, *self.backward(O)))))


def time_backend(name, call, expected):
    rows = [{'variant': f'{name}:{direction}', 'direction': direction} for direction in OUTPUTS]
    with sdpa_kernel(BACKENDS[name]):
        try:
            outputs = call.outputs()
        except RuntimeError as refused:  # no kernel of this backend takes the problem
            return [{**row, 'refused': str(refused).splitlines()[0]} for row in rows]
        O = call.forward()
        for row in rows:
            ratio = peer_bounds.worst_ratio(outputs, expected, OUTPUTS[row['direction']])
            row['error_over_bound'] = ratio
            if ratio > 1:
                row['refused'] = f'{ratio:.3g} times outside its bound'
            else:
                row.update(peer_bounds.seconds_of(
                    call.forward if row['direction'] == 'forward' else lambda: call.backward(O)))
    return rows


def check(call):
    """Finds backends outside their bounds, and broken subjects within them."""
    expected, found = call.expected(), []
    for name in ON_CPU:
        with sdpa_kernel(BACKENDS[name]):
            for what, changes, wanted in (('itself', {}, True), ('no scale', {'scale': 1.0}, False),
                                          ('the last key lost', {'keys': -1}, False)):
                outputs = call.outputs(**changes)
                for direction, names in OUTPUTS.items():
                    ratio = peer_bounds.worst_ratio(outputs, expected, names)
                    print(f'{name}, {what}, {direction}: {ratio:.3g} of its bound')
                    if (ratio <= 1) != wanted:
                        found.append(f'{name}, {what}, {direction}')
    return found


def main(words):
    if len(words) < 2 or words[0] not in ('time', 'check'):
        print(USAGE, end='', file=sys.stderr)
        return 2
    asked = [(problem, *shape_of(problem)) for problem in words[1:]]
    if words[0] == 'check':
        found = [line for _, *form in asked for line in check(Call(*form, 'cpu'))]
        for line in found:
            print(f'failed: {line}')
        return 1 if found else 0
    if not torch.cuda.is_available():
        stop('no CUDA device', SKIPPED)
    torch.backends.cuda.matmul.allow_tf32 = False
    for problem, *form in asked:
        call = Call(*form, 'cuda')
        expected = call.expected()
        rows = [row for name in BACKENDS for row in time_backend(name, call, expected)]
        print(json.dumps({'torch': torch.__version__, 'problem': problem, 'variants': rows}))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
