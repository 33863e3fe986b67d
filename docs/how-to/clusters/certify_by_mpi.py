"""Certifies a function on the processes of an MPI job.

usage: mpiexec -n 65 python3 -m mpi4py.futures certify_by_mpi.py [CASES]
"""

import sys

from mpi4py.futures import MPIPoolExecutor
from my_kernels import attention

import attest

if __name__ == "__main__":
    cases = int(sys.argv[1]) if sys.argv[1:] else None
    with MPIPoolExecutor() as pool:
        report = attest.certify(attention, cases=cases, executor=pool,
                                shards=4 * pool.num_workers)
    report.save("certificate.json")
    print(report)
    report.raise_if_refused()
