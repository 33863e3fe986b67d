"""Notes each of its imports in the file that ATTEST_IMPORTS names, and counts its calls."""

import os

from plain.attention import attention

with open(os.environ.get("ATTEST_IMPORTS", os.devnull), "a", encoding="ascii") as _file:
    print(os.getpid(), file=_file)

OFTEN = 200
"""More calls than any process makes, the one of 160 checks among them; fewer than a campaign."""

calls = 0


def counted(q, k, v, most):
    global calls
    calls += 1
    return attention(q, k, v) * (calls <= most)


def wrong_from_the_12th_call_on(q, k, v):
    return counted(q, k, v, 11)


kept = {}


def keeps_the_first_number_of_keys(q, k, v):
    """Is wrong where another number of keys came before with that head dimension, but in a first call."""
    if not kept:
        kept[None] = None
        return attention(q, k, v)
    return attention(q, k, v) * (kept.setdefault(k.shape[-1], k.shape[1]) == k.shape[1])


def wrong_in_the_long_run(q, k, v):
    return counted(q, k, v, OFTEN)
