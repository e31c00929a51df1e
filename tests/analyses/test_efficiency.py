"""The cost table: values as measured, ratios to the baseline."""

import pytest

from analyses import efficiency

MEASURED = [
    {"system": "transformer", "parameters": 200, "train_tokens_per_second": 50.0, "device": "cpu"},
    {"system": "gdr", "parameters": 250, "train_tokens_per_second": 40.0, "device": "cpu"},
    {"system": "qcn", "parameters": 100, "device": "cpu"},
]


def test_ratios_to_the_first_or_the_named_system():
    table = efficiency.table(MEASURED)
    assert table.parameters_ratio.tolist() == [1.0, 1.25, 0.5]
    assert table.train_tokens_per_second_ratio.tolist()[:2] == [1.0, 0.8]
    assert table.train_tokens_per_second_ratio.isna().tolist() == [False, False, True]
    assert list(table.columns) == [
        "system",
        "parameters",
        "parameters_ratio",
        "train_tokens_per_second",
        "train_tokens_per_second_ratio",
        "device",
    ]
    assert efficiency.table(MEASURED, baseline="gdr").parameters_ratio.tolist() == [0.8, 1.0, 0.4]


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="'gdr' was measured twice"):
        efficiency.table([*MEASURED, MEASURED[1]])
    with pytest.raises(ValueError, match="baseline 'aol'"):
        efficiency.table(MEASURED, baseline="aol")
    with pytest.raises(ValueError, match="Measurement 1 has no field 'system'"):
        efficiency.table([MEASURED[0], {"parameters": 1}])
