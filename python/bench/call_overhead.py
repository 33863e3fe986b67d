#!/usr/bin/env python3
"""Measures what a call through attest.certify costs beside the function that it calls.

usage: call_overhead.py [numpy|torch|jax]...
Every call of a small campaign is timed twice, around the package's callback and around the function within it;
medians and quartiles of both and of their difference, in microseconds, are of one run. They leave out
the time in which the C library draws and judges; the last column is that per call.
"""
import importlib
import importlib.util
import statistics
import sys
import time

import attest
from attest import _kernel

PROBLEMS = ["b=2,hq=2,sq=5,sk=9,d=8,mask=causal_tl", "b=2,hq=2,sq=9,d=16"]


def timed(function, times):
    def call(*args, **words):
        began = time.perf_counter()
        try:
            return function(*args, **words)
        finally:
            times.append(time.perf_counter() - began)
    return call


def attentions():
    """Returns by name what makes a function of nearly no work: it returns zeros."""
    def of_module(name):
        module = importlib.import_module(name)
        return lambda q, k, v, *, is_causal=False, scale=1.0: module.zeros_like(q)
    return {"numpy": lambda: of_module("numpy"), "torch": lambda: of_module("torch"),
            "jax": lambda: of_module("jax.numpy")}


def spread(times):
    """Returns median and quartiles in microseconds."""
    low, middle, high = statistics.quantiles([1e6 * one for one in times], n=4)
    return f"{middle:7.0f} [{low:.0f}, {high:.0f}]"


def measure(kind):
    whole, within = [], []
    function, plain = timed(attentions()[kind](), within), _kernel.Kernel._call
    like = attest.Convention(kind, "bhsd", "top_left", attest.CONVENTIONS["sdpa"].keywords)
    _kernel.Kernel._call = timed(plain, whole)
    try:
        began = time.perf_counter()
        attest.certify(function, like=like, isolate=False, cases=20, dtypes=["f32"], jobs=1,
                       only="reference_forward", claims=["causal", "cross_lengths"])
        seconds = time.perf_counter() - began
    finally:
        _kernel.Kernel._call = plain
    inner = within[-len(whole):]  # the first calls asked for dtypes and LSE
    both = [a - b for a, b in zip(whole, inner)]
    rest = (seconds - sum(whole)) / len(whole)
    print(f"{kind:6} {len(whole):5} {spread(whole):24} {spread(inner):24} {spread(both):24} "
          f"{statistics.median(both) / statistics.median(inner):5.1f} {1e6 * rest:9.0f}")


def main(words):
    kinds = words or [kind for kind in attentions() if importlib.util.find_spec(kind)]
    print(f"{'arrays':6} {'calls':>5} {'callback':24} {'function':24} {'difference':24} ratio    library")
    for kind in kinds:
        if kind not in attentions():
            sys.exit(f"call_overhead.py: no arrays '{kind}'; they are {', '.join(attentions())}")
        measure(kind)


if __name__ == "__main__":
    main(sys.argv[1:])
