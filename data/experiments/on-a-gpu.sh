#!/usr/bin/env bash
# What a machine with a GPU should be asked once: the tests, the benchmarks, the trainings that README misses.
#     data/experiments/on-a-gpu.sh FOLDER_WITH_MULTI30K RESULTS [PYTHON_WITH_TRANSFORMERS_AND_CTRANSLATE2]
set -euo pipefail
text=$1 results=$2 peers=${3:-}
mkdir -p "$results"
python -m pytest -q tests/core_models 2>&1 | tee "$results/tests.log" | tail -n 3
for preset in small base; do
    systems=("transformer:preset=$preset" "future-cost-1:preset=$preset" "future-cost-2:preset=$preset")
    workbench bench "${systems[@]}" --device cuda --precision float32 --precision bfloat16 --rounds 3 --steps 50 \
        --csv "$results/speed-cuda-$preset.csv" ${peers:+--peers "$peers"}
    peers=  # they have the small shape only
done
workbench experiment run data/experiments/multi30k-en-de.yaml --data "$text" --devices cuda:0
workbench experiment table data/experiments/multi30k-en-de.yaml --csv "$results"
workbench experiment run data/experiments/controlled.yaml --devices cuda:0
workbench experiment table data/experiments/controlled.yaml --csv "$results"
