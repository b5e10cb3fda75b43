#!/usr/bin/env bash
# A sweep as a SLURM array: every task takes its share of the jobs and writes results of its own; nothing is shared but
# the folder. A task that is preempted or lost is requeued and goes on with the jobs that have no result yet.
#
#   sbatch --array=0-7 deploy/slurm-array.sh sweep.yaml results/
#   geonode merge results/ --out results.csv        (when all tasks have ended)
#SBATCH --job-name=geonode-sweep
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=02:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@60
#SBATCH --output=geonode-%A-%a.log

set -euo pipefail

if [[ $# -ne 2 ]]; then
    echo "usage: sbatch --array=0-N slurm-array.sh SPEC.yaml OUT" >&2
    exit 2
fi
spec=$1
out=$2

export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
# one shard of SLURM_ARRAY_TASK_COUNT; tasks are numbered from SLURM_ARRAY_TASK_MIN
shard="$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN))/${SLURM_ARRAY_TASK_COUNT}"
exec geonode sweep "$spec" --out "$out" --shard "$shard" --device "${GEONODE_DEVICE:-auto}"
