#!/usr/bin/env bash
# Everything that wants a card, in rounds of less than ten minutes each; one step's failure does not end the round.
#
#   bash benchmarks/on_a_card.sh check OUT      GPU tests, racecheck and memcheck of the kernels     (about 6 minutes)
#   bash benchmarks/on_a_card.sh kernels OUT    kernels beside peers, the original recipe, predict   (about 7 minutes)
#   bash benchmarks/on_a_card.sh bench OUT      the bench's quick suite with every installed peer    (5 minutes)
#   bash benchmarks/on_a_card.sh parts OUT      what parts of the pre-trained flow are worth         (3 minutes)
#   bash benchmarks/on_a_card.sh two OUT        on two cards: equality, weak and strong scaling      (6 minutes)
#
# A log a round and the records go to OUT; records named as in benchmarks/results are meant to replace those. The code is run from
# the checkout: nothing need be installed but torch, Triton and what the tests import.
set -u
round=${1:?which round: check, kernels, bench, parts or two}
out=$(realpath -m "${2:?a folder for logs and records}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$out"
export PYTHONPATH=.:kernels:runtime PYTHONHASHSEED=0 PYTHONUNBUFFERED=1
python=${PYTHON:-python3}
card=$($python -c 'import torch; print(torch.cuda.get_device_name().removesuffix(" PCIe").replace(" ", "-"))' 2> /dev/null) ||
    { echo "torch sees no CUDA device here: geonode doctor says why" >&2; exit 2; }

# step SECONDS COMMAND…: all that it says goes to the log of the round, the end of it and how it ended to the terminal too.
log=$out/$round.log
: > "$log"
step() {
    local limit=$1 began=$SECONDS status=0
    shift
    echo "== $*" | tee -a "$log"
    timeout "$limit" "$@" > "$out/.step" 2>&1 || status=$?
    cat "$out/.step" >> "$log"
    tail -n 12 "$out/.step"
    rm "$out/.step"
    echo "== exit $status after $((SECONDS - began)) s" | tee -a "$log"
}

case $round in
check)
    # Foretold times want the card alone; the others share it.
    step 300 $python -m pytest -q -m gpu -n 12 --dist worksteal --timeout 200 tests --ignore tests/training/test_plan.py
    step 120 $python -m pytest -q -m gpu -n 0 tests/training/test_plan.py
    for tool in memcheck racecheck; do
        step 120 env PYTORCH_NO_CUDA_MEMORY_CACHING=1 \
            compute-sanitizer --tool $tool --error-exitcode 1 $python benchmarks/kernels_sanitize.py
    done
    ;;
kernels)
    step 300 $python benchmarks/kernels.py --out "$out"
    step 150 $python benchmarks/blueprint.py --json "$out/blueprint-$card.json"
    step 100 $python benchmarks/prediction.py --json "$out/prediction-$card.json"
    ;;
bench)
    step 400 $python -m geonode.bench --device cuda --json "$out/bench-$card.json"
    ;;
parts)
    step 420 $python benchmarks/prior_ablation.py --jobs 5 --out "$out/prior_ablation.json"
    ;;
two)
    step 180 $python -m pytest -q -m gpu tests/prior/test_two_gpus.py
    rate="benchmarks/pretraining_scaling.py --out $out/pretraining_scaling-$card"
    steps="--steps 300 --warm 100"
    # What one card does beside another that has nothing to do with it: the rest of what is lost is lost between the two.
    CUDA_VISIBLE_DEVICES=1 $python $rate-1-beside.json $steps > "$out/beside.log" 2>&1 &
    CUDA_VISIBLE_DEVICES=0 step 120 $python $rate-1.json $steps
    wait
    torchrun="$python -m torch.distributed.run --standalone --nproc-per-node"
    step 120 $torchrun 2 $rate-2.json $steps
    for processes in 1 2; do
        step 120 $torchrun $processes $rate-$processes-strong.json --strong 8 --steps 150 --warm 50
    done
    ;;
*)
    echo "no round '$round': check, kernels, bench, parts or two" >&2
    exit 2
    ;;
esac
