"""Systems measured on a device: broken numbers are named, rows are kept, and what is kept is not measured again."""

import math

import pandas as pd
import pytest
import torch

from core_models.system_builder import build
from core_models.system_catalogue import catalogue
from workbench.benchmark.on_device import Task, finite_steps, measured, with_gaps
from workbench.benchmark.workload import Shape, training_pairs

pytestmark = pytest.mark.long

SHAPE = Shape(vocabulary=60, steps=2, warmup=0, batch_tokens=150, sentences=6, forced_length=4, repeats=1)
READERS = [name for name in catalogue() if build(f"{name}:preset=tiny", 60).context.sentences]


@pytest.mark.parametrize("name", ["transformer", "em-routing", "pfrnn-loss", "gdr-bow-bca", *READERS])
def test_steps_in_bfloat16_stay_finite_where_sentences_have_no_context(name):
    torch.manual_seed(1)
    found = finite_steps(build(f"{name}:preset=tiny", 60), SHAPE, "bfloat16")
    assert "problem" not in found
    assert found["steps"] == SHAPE.steps
    assert math.isfinite(found["first_loss"])
    assert math.isfinite(found["last_loss"])


def test_some_sentences_lack_what_stands_before_them():
    system = build("qcn:preset=tiny,context_sentences=2", 60)
    batch = with_gaps(system, *next(training_pairs(SHAPE)))
    present = batch.context.present.tolist()
    assert present[:4] == [[False, False], [False, True], [True, True], [True, True]]
    assert not batch.context.mask[0].any()


def test_a_loss_that_is_not_finite_is_named_with_its_step():
    system = build("transformer:preset=tiny", 60)
    with torch.no_grad():
        next(system.backbone.decoder[0].parameters()).fill_(float("nan"))
    assert finite_steps(system, SHAPE, "float32")["problem"].startswith("step 1: not finite: main")


def test_a_gradient_that_is_not_finite_is_named_although_the_loss_is():
    system = build("transformer:preset=tiny", 60)
    system.backbone.decoder[0].expand.weight.register_hook(lambda gradient: gradient * float("inf"))
    found = finite_steps(system, SHAPE, "float32")
    assert found["problem"] == "step 1: not finite: gradient of backbone.decoder.0.expand.weight"


def test_rows_are_kept_as_they_are_measured_and_only_problems_are_measured_again(tmp_path):
    csv, name = tmp_path / "rows.csv", "transformer:preset=tiny"
    tasks = [
        Task("finite", name, "bfloat16", 150),
        Task("training", name, "float32", 150),
        Task("training", name, "tf32", 150),
        Task("finite", "no-such-system", "float32", 150),
        Task("decoding", name, "float32", 3),
    ]
    first = measured(tasks, SHAPE, "cpu", csv)
    next(first)
    next(first)
    first.close()  # as if the time had been up
    assert len(pd.read_csv(csv)) == 2
    rows, kept = zip(*measured(tasks, SHAPE, "cpu", csv), strict=True)
    assert kept == (True, True, False, False, False)
    assert [bool(row["problem"]) for row in rows] == [False, False, False, True, False]
    assert float(rows[1]["train_tokens_per_second"]) > 0
    assert rows[4]["decode_sentences_per_second"] > 0
    _, kept = zip(*measured(tasks, SHAPE, "cpu", csv), strict=True)
    assert kept == (True, True, True, False, True)
    assert len(pd.read_csv(csv)) == len(tasks)
    assert torch.get_float32_matmul_precision() == "highest"
