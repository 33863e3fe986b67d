"""Works one row of attention out in 256 bits, with Python's decimal: who is right where two differ."""
from decimal import Context, Decimal, localcontext

DIGITS = 78  # 256 bits


def row(q, k, v, scale):
    """Returns the exact output, a Decimal for each column of v, of one query and the keys that it sees.

    q is (head_dim), k (keys, head_dim), v (keys, head_dim_v), numbers of Python.
    """
    with localcontext(Context(prec=DIGITS, Emin=-10**6, Emax=10**6)):
        q, k, v = [Decimal(x) for x in q], [*map(decimals, k)], [*map(decimals, v)]
        scores = [Decimal(scale) * sum(a * b for a, b in zip(q, key)) for key in k]
        weights = [(score - max(scores)).exp() for score in scores]
        return [sum(w * value[c] for w, value in zip(weights, v)) / sum(weights)
                for c in range(len(v[0]))]


def decimals(numbers):
    """Returns the numbers exactly."""
    return [Decimal(number) for number in numbers]
