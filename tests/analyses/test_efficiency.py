"""Medians and ratios of measurements, on numbers worked out by hand."""

import pytest

from analyses import efficiency

ROUNDS = [
    [
        {"engine": "a", "train_tokens_per_second": 100.0, "train_multiply_adds": 6.0},
        {"engine": "b", "train_tokens_per_second": 50.0, "train_multiply_adds": 8.0},
        {"engine": "marian", "train_tokens_per_second": 40.0},
    ],
    [
        {"engine": "a", "train_tokens_per_second": 10.0, "train_multiply_adds": 6.0},
        {"engine": "b", "train_tokens_per_second": 6.0, "train_multiply_adds": 8.0},
        {"engine": "marian", "train_tokens_per_second": 5.0},
    ],
    [
        {"engine": "a", "train_tokens_per_second": 20.0, "train_multiply_adds": 6.0},
        {"engine": "b", "train_tokens_per_second": 14.0, "train_multiply_adds": 8.0},
        {"engine": "marian", "train_tokens_per_second": 16.0},
    ],
]


def test_ratios_are_medians_of_ratios_within_a_round():
    found = efficiency.table(ROUNDS).set_index("engine")
    assert found.train_tokens_per_second.to_list() == [20.0, 14.0, 16.0]
    assert found.train_ratio["b"] == pytest.approx(0.6)  # of 0.5, 0.6, 0.7; the ratio of medians would be 0.7
    assert found.loc["b", ["train_ratio_low", "train_ratio_high"]].to_list() == pytest.approx([0.5, 0.7])
    assert found.train_peer["a"] == pytest.approx(2.0)  # of 2.5, 2.0, 1.25
    assert found.loc["a", ["train_peer_low", "train_peer_high"]].to_list() == pytest.approx([1.25, 2.5])
    assert set(found.rounds) == {3}
    assert found.train_ceiling["b"] == pytest.approx(0.75)
    assert found.train_share["b"] == pytest.approx(0.8)


def test_what_was_not_measured_is_not_there():
    found = efficiency.table(ROUNDS).set_index("engine")
    assert found.train_ceiling.isna()["marian"]
    assert "decode_ratio" not in found


def test_the_first_engine_may_only_decode():
    decoding = {"engine": "int8", "decode_sentences_per_second": 8.0}
    rounds = [[decoding, *one] for one in ROUNDS]
    rounds = [[*one[:-1], {**one[-1], "decode_sentences_per_second": 2.0}] for one in rounds]
    found = efficiency.table(rounds).set_index("engine")
    assert found.decode_ratio["marian"] == pytest.approx(0.25)
    assert found.train_tokens_per_second["b"] == 14.0
    assert found.train_peer["b"] == pytest.approx(1.2)  # of 1.25, 1.2, 0.875
    assert "train_ratio" not in found
    beside = efficiency.table(rounds, peer="int8").set_index("engine")
    assert beside.decode_peer["marian"] == pytest.approx(0.25)
    assert "train_peer" not in beside


def test_decoding_beside_ctranslate2_is_of_the_same_precision():
    def one_round(*speeds: float) -> list[dict[str, object]]:
        engines = (
            {"engine": "ours", "precision": "float32"},
            {"engine": "ours int8", "precision": "int8"},
            {"engine": "ctranslate2-float32"},
            {"engine": "ctranslate2-int8"},
        )
        return [{**one, "decode_sentences_per_second": speed} for one, speed in zip(engines, speeds, strict=True)]

    found = efficiency.table([one_round(10, 30, 20, 40), one_round(10, 30, 10, 30)]).set_index("engine")
    assert found.decode_ctranslate2["ours"] == pytest.approx(0.75)  # of 0.5 and 1
    assert found.decode_ctranslate2["ours int8"] == pytest.approx(0.875)  # of 0.75 and 1
    assert found.loc["ours", ["decode_ctranslate2_low", "decode_ctranslate2_high"]].to_list() == [0.5, 1.0]
    assert found.decode_ctranslate2.isna()["ctranslate2-int8"]


@pytest.mark.parametrize("rounds", [[], [ROUNDS[0], ROUNDS[1][:2]], [[ROUNDS[0][0], ROUNDS[0][0]]]])
def test_rounds_that_do_not_match_are_refused(rounds):
    with pytest.raises(ValueError, match="the same engines"):
        efficiency.table(rounds)
