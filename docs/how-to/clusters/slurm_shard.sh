#!/usr/bin/env bash
#SBATCH --job-name=attest-shard
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --requeue
# Runs one shard; one whose node went down is queued again and goes on where its journal ends.
# usage: sbatch --array=1-SHARDS slurm_shard.sh SHARDS FOLDER LIBRARY [OPTION of attest certify]...
set -euo pipefail
shards=$1 # the array may be of one shard that was lost
folder=$2
shift 2
shard=$SLURM_ARRAY_TASK_ID
attest certify "$@" --shard "$shard/$shards" --jobs "$SLURM_CPUS_PER_TASK" \
  --resume "$folder/shards/$shard.jsonl" --out "$folder/shards/$shard.json"
