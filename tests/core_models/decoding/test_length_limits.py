"""How long an output may be: each option by hand."""

import pytest
import torch

from core_models.config import SearchConfig
from core_models.decoding.length_limits import output_limits

MASK = torch.arange(6)[None] < torch.tensor([2, 4, 6])[:, None]  # sources of two, four and six pieces


@pytest.mark.parametrize(
    ("options", "positions", "expected"),
    [
        ({"length_factor": 2.0, "length_offset": 3}, float("inf"), [7, 11, 15]),
        ({"length_factor": 2.0, "length_offset": 0}, float("inf"), [4, 8, 12]),
        ({"length_factor": 0.5, "length_offset": 1}, float("inf"), [2, 3, 4]),
        ({"length_factor": 1.4, "length_offset": 0}, float("inf"), [2, 5, 8]),  # 2.8, 5.6 and 8.4, cut
        ({"length_factor": 2.0, "length_offset": 3, "max_length": 9}, float("inf"), [7, 9, 9]),
        ({"length_factor": 2.0, "length_offset": 3, "max_length": 12}, 8, [7, 8, 8]),
        ({"length_factor": 0.1, "length_offset": 0}, float("inf"), [1, 1, 1]),  # at least the end of the sentence
    ],
)
def test_a_limit_is_a_multiple_of_the_source_and_an_offset_within_the_longest(options, positions, expected):
    assert output_limits(MASK, SearchConfig(**options), positions).tolist() == expected
