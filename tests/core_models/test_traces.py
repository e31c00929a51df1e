"""Traces: axes, cutting of padding, distributions, and the way to the disk and back."""

import json

import numpy as np
import pytest
import torch

from core_models.traces import TraceArray, TraceStore, TraceWriter, join_traces, write_traces

LENGTHS = {"source": [3, 2], "target": [1, 4]}


def writer(*wanted: str) -> TraceWriter:
    return TraceWriter(wanted or ["*"])


def test_padding_is_cut_by_the_name_of_the_axis_and_iterations_come_first():
    values = torch.randn(2, 4, 3, 5, 3)  # [sentence, target, iteration, capsule, source]
    filled = writer()
    filled.record("routing", ("target", "iteration", "capsule", "source"), values)
    first, second = filled.sentences(LENGTHS)
    assert first["routing"].axes == ("iteration", "target", "capsule", "source")
    assert first["routing"].values.shape == (3, 1, 5, 3)
    expected = values[1, :4, :, :, :2].permute(1, 0, 2, 3).numpy()
    np.testing.assert_array_equal(second["routing"].values, expected)


def test_only_what_is_wanted_is_kept():
    filled = writer("decoder.*", "gate")
    for name in ("decoder.cross_attention", "encoder.self_attention", "gate", "future_cost.gate"):
        filled.record(name, ("source",), torch.zeros(2, 3))
    assert list(filled.sentences(LENGTHS)[0]) == ["decoder.cross_attention", "gate"]


def test_what_contradicts_itself_is_refused():
    filled = writer()
    with pytest.raises(
        ValueError, match=r"trace 'gate': 2 dimensions recorded, the sentence and \('target', 'source'\) named"
    ):
        filled.record("gate", ("target", "source"), torch.zeros(2, 4))
    filled.record("gate", ("target",), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="trace 'gate' is recorded twice in one pass"):
        filled.record("gate", ("target",), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="trace 'gate' has 1 dimensions and names 2 axes"):
        TraceArray(("target", "source"), np.zeros(3)).check("gate")
    with pytest.raises(ValueError, match=r"trace 'share' should sum to one along 'source' and is 0.1 off"):
        TraceArray(("target", "source"), np.array([[0.5, 0.5], [0.5, 0.6]]), "source").check("share")
    TraceArray(("target", "source"), np.array([[0.5, 0.5], [0.4, 0.6]]), "source").check("share")


@pytest.fixture
def traces():
    generator = np.random.default_rng(1)

    def share(*shape: int) -> TraceArray:
        values = generator.random(shape).astype(np.float32)
        return TraceArray(("target", "source"), values / values.sum(1, keepdims=True), "source")

    return {
        4: {"share": share(2, 3)},
        1: {"share": share(5, 1), "gate": TraceArray(("target",), np.arange(5, dtype=np.float32))},
    }


@pytest.mark.parametrize(("half", "tolerance"), [(True, 1e-3), (False, 0)])
def test_traces_come_back_from_the_disk(tmp_path, traces, half, tolerance):
    write_traces(tmp_path, traces, half)
    store = TraceStore(tmp_path)
    assert (list(store), len(store), store.names) == ([1, 4], 2, ["gate", "share"])
    for sentence, trace in traces.items():
        assert store[sentence].keys() == trace.keys()
        for name, array in trace.items():
            found = store[sentence][name]
            found.check(name)
            assert (found.axes, found.sums_to_one) == (array.axes, array.sums_to_one)
            np.testing.assert_allclose(found.values, array.values, atol=tolerance, rtol=0)


def test_traces_in_several_folders_are_joined_to_the_bytes_of_one(tmp_path, traces):
    some = {**traces, 11: {**next(iter(traces.values())), "rank": TraceArray(("target",), np.arange(70_000, 70_003))}}
    write_traces(tmp_path / "whole", some)
    for part in (0, 1):
        write_traces(tmp_path / f"{part}", {number: some[number] for number in list(some)[::-1][part::2]})
    join_traces(tmp_path / "joined", [TraceStore(tmp_path / f"{part}") for part in (1, 0)])
    whole, joined = (
        {path.name: path.read_bytes() for path in tmp_path.glob(f"{name}/*")} for name in ("whole", "joined")
    )
    assert joined == whole
    assert "rank.npy" in whole


def test_a_missing_sentence_and_another_format_are_named(tmp_path, traces):
    write_traces(tmp_path, traces)
    with pytest.raises(KeyError, match="sentence 2 is not traced"):
        TraceStore(tmp_path)[2]
    (tmp_path / "index.json").write_text(json.dumps({"format": 0}), encoding="utf-8")
    with pytest.raises(ValueError, match="traces of format 0; this version reads 1: trace the run again"):
        TraceStore(tmp_path)
