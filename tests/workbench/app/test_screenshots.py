"""`make screenshots`: pages of the exhibits as pictures, without an error."""

import os

import pytest
from PIL import Image

from docs import screenshots
from tests.workbench.app.browsing import BROWSER
from workbench.store import exhibits

# It starts a browser of its own: the fixture `browser` would stand in its way.
pytestmark = pytest.mark.skipif(BROWSER is None and os.environ.get("CI") != "true", reason="no browser is installed")


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_pages_of_the_exhibits_become_pictures(tmp_path, monkeypatch):
    monkeypatch.delenv(exhibits.VARIABLE)
    screenshots.take(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == {picture.name for picture in screenshots.PICTURES}
    for path in tmp_path.iterdir():
        with Image.open(path) as picture:
            assert picture.width == screenshots.WIDTH
            assert picture.height > 700
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 50, "it is not empty"
