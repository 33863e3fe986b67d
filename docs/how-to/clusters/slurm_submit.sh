#!/usr/bin/env bash
# Certifies a library by a Slurm job array, then merges the shards: FOLDER/certificate.json.
# usage: slurm_submit.sh FOLDER LIBRARY [OPTION of attest certify]...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/shards"
array=$(sbatch --parsable "$here/slurm_shard.sh" "$@")
# Not afterok: a shard with a finding exits with 1, and the merge says which shard is missing.
sbatch --parsable --dependency="afterany:$array" "$here/slurm_merge.sh" "$1"
