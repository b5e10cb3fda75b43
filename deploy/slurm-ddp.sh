#!/usr/bin/env bash
# One training over several GPUs: one task a GPU, DDP. Checkpoints let a requeued job go on where it stopped.
#
#   sbatch --nodes=1 --ntasks-per-node=2 --gpus-per-node=2 deploy/slurm-ddp.sh standards.csv assay.bundle run/
#SBATCH --job-name=geonode-fit
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@120
#SBATCH --output=geonode-%j.log

set -euo pipefail

if [[ $# -ne 3 ]]; then
    echo "usage: sbatch [options] slurm-ddp.sh STANDARDS BUNDLE CHECKPOINTS" >&2
    exit 2
fi

export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
# %t: a log per rank
srun --output="geonode-%j-rank-%t.log" geonode fit "$1" --out "$2" --flow path_independent --checkpoint "$3" --resume --device cuda
