#!/usr/bin/env bash
# Pre-training over several GPUs and machines: one task a GPU, DDP. A requeued job goes on from its checkpoint, also with
# another number of tasks (up to the batches of a step that it began with).
#
#   sbatch --nodes=8 --ntasks-per-node=8 --gpus-per-node=8 deploy/slurm-pretrain.sh weights/ 40000
#SBATCH --job-name=geonode-pretrain
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@120
#SBATCH --output=geonode-%j.log

set -euo pipefail

if [[ $# -ne 2 ]]; then
    echo "usage: sbatch [options] slurm-pretrain.sh FOLDER STEPS" >&2
    exit 2
fi

export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
resume=()
[[ -f "$1/last.ckpt" ]] && resume=(--resume "$1/last.ckpt")
# %t: a log per rank
srun --output="geonode-%j-rank-%t.log" geonode pretrain --out "$1" --steps "$2" ${resume[@]+"${resume[@]}"}
