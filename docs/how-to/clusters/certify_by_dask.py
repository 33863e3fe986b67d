"""Certifies a function on jobs that Dask asks Slurm for, as many as there is work for.

usage: python3 certify_by_dask.py [CASES]
"""

import sys

from dask_jobqueue import SLURMCluster
from distributed import Client
from my_kernels import attention

import attest

if __name__ == "__main__":
    cases = int(sys.argv[1]) if sys.argv[1:] else None
    # One GPU for each: job_extra_directives=["--gres=gpu:1"]
    with SLURMCluster(cores=1, processes=1, memory="8GB", walltime="02:00:00") as cluster:
        cluster.adapt(minimum=0, maximum=64)
        with Client(cluster) as client:
            report = attest.certify(attention, cases=cases,
                                    executor=client.get_executor(), shards=256)
    report.save("certificate.json")
    print(report)
    report.raise_if_refused()
