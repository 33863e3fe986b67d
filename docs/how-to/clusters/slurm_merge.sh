#!/usr/bin/env bash
#SBATCH --job-name=attest-merge
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=01:00:00
# Joins the shards, runs the few cases that follow from all of them, and gives the verdict.
# usage: sbatch slurm_merge.sh FOLDER [--known-failures FILE]
set -euo pipefail
attest certify --merge "$1"/shards/*.json --jobs "$SLURM_CPUS_PER_TASK" "${@:2}" \
  --out "$1/certificate.json" --html "$1/report.html"
