"""The width of a page before the browser has said it."""

import pytest

from workbench.app.components.page_width import WIDTHS, remembered
from workbench.plotting.screen_layout import DEFAULT_WIDTH


@pytest.mark.parametrize("cookie", ["", "761", "1e3", "-280", "0", "760; path=/", "９６０"])
def test_a_cookie_that_says_no_width_of_ours_says_nothing(cookie):
    assert remembered(cookie) == DEFAULT_WIDTH


def test_a_page_is_taken_to_be_as_wide_as_the_last_one():
    assert [remembered(str(width)) for width in WIDTHS] == WIDTHS
