"""Harms the process of a call, most functions for more than six queries only."""

import ctypes
import dataclasses
import functools
import os
import sys
import time

import numpy as np
from plain.attention import attention

import attest

LONG = 6


def right(q, k, v):
    return attention(q, k, v)


def divides_by_zero(q, k, v):
    return 1 / 0


def crashes(q, k, v):
    if q.shape[1] > LONG:
        ctypes.string_at(8)
    return attention(q, k, v)


held = functools.partial(crashes)
"""A function that only this variable names."""

NUMPY = dataclasses.replace(attest.CONVENTIONS["plain"], arrays="numpy")


def hangs(q, k, v):
    while q.shape[1] > LONG:
        time.sleep(1)
    return attention(q, k, v)


def ends_the_process(q, k, v):
    if q.shape[1] > LONG:
        os._exit(3)
    return attention(q, k, v)


def exits(q, k, v):
    if q.shape[1] > LONG:
        sys.exit("enough")
    return attention(q, k, v)


def allocates(q, k, v):
    if q.shape[1] > LONG:
        np.ones(2**30)
    return attention(q, k, v)


def prints(q, k, v):
    if q.shape[1] > LONG:
        print("hello")
    return attention(q, k, v)


def writes_into_v(q, k, v):
    out = attention(q, k, v)
    v[:, -1] = v[:, -1] + 0
    return out


def reads_beyond_v(q, k, v):
    np.lib.stride_tricks.as_strided(v, (2048, ), (v.itemsize, ))[-1] + 0
    return attention(q, k, v)


def changes_the_environment(q, k, v):
    if q.shape[1] > LONG:
        os.environ["ATTEST_TEST"] = "1"
    return attention(q, k, v)


def starts_a_process(q, k, v):
    if q.shape[1] > LONG:
        os.system("true")
    return attention(q, k, v)


def two_gradients(q, k, v, out, lse, dout, **_):
    return q, k
