"""The search that a model's generation_config.json asks for, and the settings that are named as unknown here."""

import json

import pytest

from core_models.config import SearchConfig
from core_models.foreign import search_of

MARIAN = {"model_type": "marian", "pad_token_id": 59, "decoder_start_token_id": 59}


def _search(tmp_path, settings, config=MARIAN, file="generation_config.json"):
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / file).write_text(json.dumps({**config, **settings}), encoding="utf-8")
    return search_of(tmp_path)


@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
def test_settings_of_either_file_are_taken(tmp_path, file):
    """`generate` reads config.json where a model has no other file."""
    search, unknown = _search(tmp_path, {"num_beams": 6, "length_penalty": 0.5, "max_new_tokens": 40}, file=file)
    wanted = SearchConfig(
        beam=6, length_penalty=0.5, penalty="power", max_length=40, length_factor=1000.0, penalty_offset=0
    )
    assert (search, unknown) == (wanted, [])


@pytest.mark.parametrize(
    ("config", "settings", "longest", "offset"),
    [
        (MARIAN, {"max_length": 10}, 9, 0),
        ({"model_type": "m2m_100"}, {"max_length": 10}, 8, 1),
        ({"model_type": "m2m_100"}, {"max_new_tokens": 10}, 9, 1),
        ({"model_type": "bart"}, {"max_new_tokens": 10, "forced_bos_token_id": 0}, 9, 1),
        ({"model_type": "llama"}, {"max_length": 10}, SearchConfig().max_length, 0),
        (MARIAN, {}, SearchConfig().max_length, 0),
    ],
)
def test_words_of_a_prompt_that_generate_counts(tmp_path, config, settings, longest, offset):
    """max_length counts the start word and a forced tag, max_new_tokens and the length penalty the tag alone."""
    search, unknown = _search(tmp_path, settings, config)
    assert (search.max_length, search.penalty_offset, unknown) == (longest, offset, [])


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"do_sample": True, "temperature": 0.6}, ["do_sample"]),
        ({"no_repeat_ngram_size": 1}, ["no_repeat_ngram_size"]),
        ({"min_new_tokens": 1, "repetition_penalty": 1.1}, ["repetition_penalty", "min_new_tokens"]),
        ({"early_stopping": True}, ["early_stopping"]),
        ({"length_penalty": -1.0}, ["length_penalty"]),
        ({"bad_words_ids": [[59]], "suppress_tokens": [59]}, []),
        ({"bad_words_ids": [[59], [4, 5]], "begin_suppress_tokens": [7]}, ["begin_suppress_tokens", "bad_words_ids"]),
        (
            {"do_sample": False, "no_repeat_ngram_size": 0, "repetition_penalty": 1.0, "early_stopping": "never",
             "num_beam_groups": 1, "diversity_penalty": 0.0, "min_length": 0, "forced_eos_token_id": 0},
            [],
        ),
    ],
)  # fmt: skip
def test_settings_without_a_counterpart_are_named(tmp_path, settings, named):
    """Those that change nothing, such as the words that no search of ours puts out, are not."""
    search, unknown = _search(tmp_path, settings)
    assert unknown == named
    assert search.length_penalty == max(settings.get("length_penalty", 1.0), 0.0)
