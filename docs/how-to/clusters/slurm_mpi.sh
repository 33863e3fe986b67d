#!/usr/bin/env bash
#SBATCH --job-name=attest
#SBATCH --ntasks=65
#SBATCH --cpus-per-task=1
#SBATCH --time=02:00:00
# Certifies a function in Python on 64 processes of an MPI job; the 65th hands out the shards.
# usage: sbatch slurm_mpi.sh [CASES]
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-.}"
srun python3 -m mpi4py.futures certify_by_mpi.py "$@"
