"""Bounds what a peer computes in PyTorch's tensors: attention in float64, and worst cases."""
import statistics

import torch

UNITS = {torch.float32: 2.0 ** -24, torch.bfloat16: 2.0 ** -8}
UNIT = UNITS[torch.float32]  # of sums and of exp
EXP_ULPS = 2  # exp in float32, as the kernels' contract has it where nothing is declared
LEAST_TILE = 16  # keys that meet a running maximum at once
REPETITIONS = 21


def gamma(terms):
    """Bounds so many roundings (Higham 2002, lemma 3.1)."""
    return terms * UNIT / (1 - terms * UNIT)


def of_head(Q, K, V, dO, scale, unit):
    """Gives {output: (exact, bound)} in float64, every bound a worst case for any order of summation.

    Tensors, weights and differences may be stored in a type of this unit.

    Errors of a score meet as exp's relative ones; those of O and LSE that backward reads are
    those of forward. Products of two errors are in the factor 1 + e of each line.
    """
    n, d = K.shape[-2:]
    t = lambda one: one.transpose(-1, -2)
    # Counts once: in float32 a tensor's rounding is one of those of gamma.
    stored = unit if unit > UNIT else 0.0
    S = scale * Q @ t(K)
    LSE = torch.logsumexp(S, -1)
    P = torch.exp(S - LSE[..., None])
    O = P @ V
    e_S = gamma(d + 2) * scale * (Q.abs() @ t(K.abs()))
    # A weight's exponent: errors of its score and of the greatest, subtractions from rising maxima
    # (what they take away adds up to no more than the span), exp's own scaling by log2 e. And exp
    # once for the tile, once for each tile after it.
    span = S.amax(-1) - S.amin(-1)
    worst = e_S.amax(-1)
    exps = 2 + n // LEAST_TILE
    weight = torch.expm1(2 * worst + gamma(6) * (span + 2 * worst) + gamma(2 * EXP_ULPS * exps))
    sums = gamma(2 * n + 2)
    relative = (1 + weight) * (1 + sums) * (1 + stored) / ((1 - weight) * (1 - sums)) - 1
    e_O = relative[..., None] * (P @ V.abs())
    e_O = e_O + stored * (O.abs() + e_O)
    e_LSE = relative + gamma(8) * (1 + LSE.abs() + S.abs().amax(-1))
    again = torch.expm1(e_S + e_LSE[..., None] + gamma(2) * (S.abs() + LSE.abs()[..., None]) +
                        gamma(2 * EXP_ULPS))
    again = again + stored * (1 + again)
    dP = dO @ t(V)
    delta = (dO * O).sum(-1, keepdim=True)
    e_dP = gamma(d + 1) * (dO.abs() @ t(V.abs()))
    e_delta = (dO.abs() * (e_O + gamma(d + 1) * (O.abs() + e_O))).sum(-1, keepdim=True)
    dS = P * (dP - delta)
    e_dS = P * (again * (dP - delta).abs() + (1 + again) * (1 + gamma(3)) * (e_dP + e_delta) +
                gamma(3) * (1 + again) * (dP - delta).abs())
    e_dS = e_dS + stored * (dS.abs() + e_dS)
    met = dS.abs() + e_dS
    long = gamma(n + 2)
    found = {'O': (O, e_O),
             'dQ': (scale * dS @ K, scale * (e_dS + long * met) @ K.abs()),
             'dK': (scale * t(dS) @ Q, scale * t(e_dS + long * met) @ Q.abs()),
             'dV': (t(P) @ dO, t(P * (again + long * (1 + again))) @ dO.abs())}
    return {name: (exact, bound + (stored * (exact.abs() + bound) if name != 'O' else 0))
            for name, (exact, bound) in found.items()}


def exact_and_bounds(Q, K, V, dO, scale):
    """Gives those of tensors (heads, rows, columns), a head at a time, for memory ends."""
    heads = [of_head(*(one.double() for one in head), scale, UNITS[Q.dtype])
             for head in zip(Q, K, V, dO)]
    return {name: tuple(torch.stack([head[name][part] for head in heads]) for part in (0, 1))
            for name in heads[0]}


def worst_ratio(outputs, expected, names):
    """Finds the greatest error over bound of the outputs of these names; infinite for NaN."""
    worst = 0.0
    for name in names:
        exact, bound = expected[name]
        ratio = (outputs[name].double() - exact).abs() / bound
        worst = max(worst, torch.nan_to_num(ratio, nan=float('inf')).max().item())
    return worst


def seconds_of(run):
    times = []
    for _ in range(REPETITIONS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    low, median, high = statistics.quantiles(times, n=4, method='inclusive')
    return {'seconds': median, 'seconds_quartiles': [low, high]}
