#!/usr/bin/env bash
# What a machine with a GPU should be asked once: the tests, the benchmarks, the trainings that README misses.
#     data/experiments/on-a-gpu.sh FOLDER RESULTS [PYTHON_WITH_TRANSFORMERS_AND_CTRANSLATE2]
# FOLDER has the files of multi30k*.yaml in multi30k/, of tatoeba-*.yaml in tatoeba-zh-en/ and tatoeba-de-en/, and the folders that
# bcontrast*.yaml and manpages*.yaml name.
set -euo pipefail
text=$1 results=$2 peers=${3:-}
mkdir -p "$results"
python -m pytest -q tests/core_models 2>&1 | tee "$results/tests.log" | tail -n 3
systems=(transformer future-cost-1 future-cost-2 linear-combination dynamic-combination dynamic-routing em-routing gdr gdr-bow-bca)
for preset in small base; do
    workbench bench "${systems[@]}" --preset $preset --device cuda --precision float32 --precision bfloat16 --rounds 3 \
        --steps 50 --csv "$results/speed-cuda-$preset.csv" ${peers:+--peers "$peers"}
    workbench bench rnnsearch coverage pfrnn pfrnn-loss gdr-rnn --preset $preset --device cuda --precision float32 \
        --precision bfloat16 --rounds 3 --steps 50 --csv "$results/speed-cuda-recurrent-$preset.csv"
    workbench bench transformer qcn qcn-reg document-transformer han-encoder --preset $preset --device cuda \
        --precision float32 --precision bfloat16 --rounds 3 --steps 50 --csv "$results/speed-cuda-documents-$preset.csv"
done
for grid in multi30k-en-de multi30k-layers multi30k-past-future controlled controlled-layers controlled-routing \
    controlled-past-future controlled-past-future-long controlled-past-future-ablation \
    controlled-recurrent controlled-recurrent-second-pass controlled-recurrent-rows controlled-recurrent-adequacy \
    tatoeba-zh-en tatoeba-zh-en-second-pass tatoeba-de-en tatoeba-de-en-second-pass \
    controlled-documents controlled-documents-marked controlled-documents-sweeps \
    bcontrast bcontrast-second-pass bcontrast-smaller-batches manpages manpages-second-pass \
    manpages-smaller-batches; do
    case $grid in
        multi30k*) files=$text/multi30k ;;
        tatoeba*) files=$text/${grid%-second-pass} ;;
        *) files=$text ;;
    esac
    workbench experiment run "data/experiments/$grid.yaml" --data "$files" --devices cuda:0
    workbench experiment table "data/experiments/$grid.yaml" --csv "$results"
done
