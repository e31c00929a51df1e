#!/usr/bin/env bash
# What a machine with a GPU should be asked, in parts of at most nine minutes; call it again to go on where it stopped.
#     data/experiments/on-a-gpu.sh RESULTS [PART …] [--data FOLDER] [--peers PYTHON] [--minutes 9] [--list]
# RESULTS gets tables, logs, states of parts and runs/; RESULTS/on-a-gpu.tar.gz has all of it but the runs.
# FOLDER has the files of multi30k*.yaml in multi30k/, those of *tatoeba*.yaml in tatoeba-zh-en/, tatoeba-de-en/ and
# tatoeba-en-de/, and the folders that bcontrast*.yaml and manpages*.yaml name; without it these trainings are left out.
# PYTHON has transformers and ctranslate2: they are measured too. --device cpu --tiny tries every part within minutes.
exec "${PYTHON:-python}" "$(dirname "$0")/on_a_gpu.py" "$@"
