"""The controlled corpus's own words, for all files that test it."""

import pytest
import yaml

from core_models.resources import data_folder
from core_models.text.controlled.lexicon import Lexicon, read_lexicon


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    folder = data_folder() / "controlled"
    return read_lexicon(folder, yaml.safe_load((folder / "grammar.yaml").read_text(encoding="utf-8")))
