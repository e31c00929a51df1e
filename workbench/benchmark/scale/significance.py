"""Time and memory of our significance tests and sacreBLEU's, on made-up texts of several sizes.

Each engine runs in a process of its own because of peak memory. Knows nothing of runs.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from typing import Any

from workbench.benchmark.scale.stages import Stages, measure_apart
from workbench.benchmark.scale.test_set import made_up_texts

ENGINES = ("nmt-workbench", "sacrebleu")
_BASELINE, _SYSTEM = "system-0", "system-1"


def measure(engine: str, segments: int, samples: int, trials: int) -> list[dict[str, Any]]:
    """Measure one row per stage: making texts, paired bootstrap and approximate randomization of BLEU."""
    stages = Stages()
    with stages.stage("make the texts"):
        references, written = made_up_texts(segments, 2)
    (_ours if engine == ENGINES[0] else _sacrebleu)(stages, references, written, samples, trials)
    return [{"segments": segments, "engine": engine, **row} for row in stages.rows]


def _ours(stages: Stages, references: list[str], written: dict[str, list[str]], samples: int, trials: int) -> None:
    from analyses import scores, significance

    with stages.stage("extract statistics"):
        extracted = {name: scores.extract(lines, references) for name, lines in written.items()}
    with stages.stage(f"bootstrap, {samples:,} resamples"):
        drawn = significance.paired_bootstrap(extracted[_BASELINE], extracted[_SYSTEM], samples, rule="sacrebleu")
    stages.rows[-1]["p_value"] = drawn.p_value
    with stages.stage(f"randomization, {trials:,} trials"):
        swapped = significance.approximate_randomization(extracted[_BASELINE], extracted[_SYSTEM], trials)
    stages.rows[-1]["p_value"] = swapped.p_value
    with stages.stage("sign test"):
        signs = significance.sign_test(extracted[_BASELINE], extracted[_SYSTEM])
    stages.rows[-1]["p_value"] = signs.p_value


def _sacrebleu(stages: Stages, references: list[str], written: dict[str, list[str]], samples: int, trials: int) -> None:
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    for name, kind, draws in (
        (f"statistics and bootstrap, {samples:,} resamples", "bs", samples),
        (f"statistics and randomization, {trials:,} trials", "ar", trials),
    ):
        with stages.stage(name):
            test = PairedTest(list(written.items()), {"BLEU": BLEU(references=[references])}, None, kind, draws)
            _, results = test()
        stages.rows[-1]["p_value"] = results["BLEU"][1].p_value


def measure_significance(
    segments: Sequence[int], samples: int = 1000, trials: int = 10_000, threads: int = 1
) -> list[dict[str, Any]]:
    """Run `measure` for each size and engine, each in a process of its own."""
    return [
        row
        for size in segments
        for engine in ENGINES
        for row in measure_apart(__name__, {}, threads, engine=engine, segments=size, samples=samples, trials=trials)
    ]


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
