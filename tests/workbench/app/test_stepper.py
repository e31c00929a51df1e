"""Clicks are counted once each, in whichever order the reruns that they begin come to count them."""

from itertools import permutations

import pytest

from workbench.app.components.stepper import _SteppedNumber


def step(number: int, by: int) -> int:
    return min(max(0, number + by), 29)


def said(*clicks: int, version: int = 0, mount: str = "one") -> dict:
    """What the browser sends after the last of these clicks, each 1 or -1, of which it has seen `version`."""
    return {"mount": mount, "clicks": len(clicks), "sum": sum(clicks), "version": version}


@pytest.mark.parametrize("order", permutations(range(1, 5)))
def test_reruns_in_any_order_count_every_click_once(order):
    clicks = (1, 1, -1, 1)
    place = _SteppedNumber()
    for many in order:
        place.count(said(*clicks[:many]), 7, step)
    assert place.value == 9
    assert not place.is_ahead(said(*clicks))
    assert place.is_ahead(said(*clicks, -1))


def test_what_the_browser_shows_counts_where_it_has_seen_the_newest_version():
    place = _SteppedNumber()
    place.count(said(1), 7, step)
    place.count(said(1, 1), 7, step)  # sent before it saw the first: it still shows 7
    assert place.value == 9
    place.count(said(1, 1, 1, version=place.version), 20, step)  # somebody typed 20
    assert place.value == 21
    place.set_value(3)  # by another widget
    place.count(said(1, 1, 1, -1, version=1), 21, step)
    assert place.value == 2


def test_buttons_that_are_made_anew_count_from_their_own_first_click():
    place = _SteppedNumber()
    place.count(said(1, 1, 1), 0, step)
    place.count(said(1, mount="two"), 0, step)
    place.count(said(1, 1, 1, 1), 0, step)  # the last click on those that are gone comes late
    assert place.value == 5
