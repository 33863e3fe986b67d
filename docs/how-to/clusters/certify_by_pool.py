"""Certifies a function on the processors of one machine.

usage: python3 certify_by_pool.py [CASES]
"""

import os
import sys
from concurrent.futures import ProcessPoolExecutor

from my_kernels import attention

import attest


def pool() -> ProcessPoolExecutor:
    """Makes another pool where one broke: its lost shards run again."""
    return ProcessPoolExecutor(os.cpu_count())


if __name__ == "__main__":
    cases = int(sys.argv[1]) if sys.argv[1:] else None
    report = attest.certify(attention, cases=cases, executor=pool)
    report.save("certificate.json")
    print(report)
    report.raise_if_refused()
