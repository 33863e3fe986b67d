#!/usr/bin/env bash
#SBATCH --job-name=attest-shard
#SBATCH --array=1-16
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --requeue
# Runs one shard; one whose node went down is queued again and goes on where its journal ends.
# usage: sbatch slurm_shard.sh FOLDER LIBRARY [OPTION of attest certify]...
set -euo pipefail
folder=$1
shift
shard=$SLURM_ARRAY_TASK_ID
attest certify "$@" --shard "$shard/$SLURM_ARRAY_TASK_COUNT" --jobs "$SLURM_CPUS_PER_TASK" \
  --resume "$folder/shards/$shard.jsonl" --out "$folder/shards/$shard.json"
