"""`make screenshots`: pages of a demo's runs as pictures, without an error."""

import os

import pytest
from PIL import Image

from docs import screenshots
from tests.workbench.app.browsing import BROWSER

# It starts a browser of its own: the fixture `browser` would stand in its way.
pytestmark = pytest.mark.skipif(BROWSER is None and os.environ.get("CI") != "true", reason="no browser is installed")


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_pages_of_the_demo_become_pictures(demo_runs, tmp_path):
    missing = screenshots.take(demo_runs, tmp_path)
    made = {picture.name for picture in screenshots.PICTURES if set(picture.runs) <= set(screenshots.DEMO)}
    assert made == {"beam-trees", "lengths", "future-cost", "attention"}
    assert {path.stem for path in tmp_path.iterdir()} == made
    assert {*missing, *made} == {picture.name for picture in screenshots.PICTURES}
    for name in made:
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert picture.width == screenshots.WIDTH
            assert picture.height > 700
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 50, "it is not empty"
