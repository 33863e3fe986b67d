#!/usr/bin/env bash
# Certifies a library by a Slurm job array of 16 shards, then merges them: FOLDER/certificate.json.
# usage: [SHARDS=16] slurm_submit.sh FOLDER LIBRARY [OPTION of attest certify]...
set -euo pipefail
if [ $# -lt 2 ]; then
  sed -n '2,3s/^# //p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shards=${SHARDS:-16}
library=${2%%:*}
if [[ ! $shards =~ ^[1-9][0-9]*$ ]]; then
  printf 'SHARDS is %q; set it to a number from 1 on.\n' "$shards" >&2
  exit 2
fi
if [[ $library =~ \.(so|py)$ && ! -f $library ]]; then
  printf '%s is no file; build the library first.\n' "$library" >&2
  exit 2
fi
asked=$(printf '%q ' "$shards" "${@:2}")
if [ -f "$library" ]; then asked+=$(sha256sum <"$library"); fi
# Shards of another campaign would be merged in the place of those that are missing.
if [ -e "$folder/asked" ] && [ "$(cat "$folder/asked")" != "$asked" ]; then
  printf '%s holds a campaign that was asked for as: %s\nTake another folder.\n' "$folder" "$(cat "$folder/asked")" >&2
  exit 2
fi
known=() # for the merge as well: what shards left to it is judged by the list, too
for ((k = 3; k <= $#; k++)); do
  case ${!k} in
    --known-failures) known=("${@:k:2}") ;;
    --known-failures=*) known=("${!k}") ;;
  esac
done
mkdir -p "$folder/shards"
array=$(sbatch --parsable --array="1-$shards" "$here/slurm_shard.sh" "$shards" "$@")
printf '%s\n' "$asked" >"$folder/asked"
rm -f "$folder/certificate.json" "$folder/report.html"
# Not afterok: a shard with a finding exits with 1, and the merge says which shard is missing.
sbatch --parsable --dependency="afterany:$array" "$here/slurm_merge.sh" "$folder" "${known[@]}"
