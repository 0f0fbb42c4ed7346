#!/bin/bash
#SBATCH --job-name=several
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
# One task for each device; what Slurm calls a task is a rank. `sbatch examples/several_slurm.sh --device npu`
set -euo pipefail
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR
# Two jobs on one node must not meet: a port of the job's own.
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
srun --kill-on-bad-exit=1 bash -c '
    export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID
    exec "${PYTHON:-python}" "$@"' worker "${SEVERAL_SCRIPT:-examples/several.py}" "$@"
