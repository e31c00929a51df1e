"""Fixtures for the systems: the toy mechanism in the catalogue, and a run that was trained for a moment."""

from pathlib import Path

import pytest

from core_models import system_catalogue
from core_models.checkpoint import begin_run
from core_models.config import RunConfig
from core_models.system_spec import describe
from core_models.text.prepared import Prepared
from core_models.training.fit import fit
from tests.core_models.toy_mechanism import Toy
from tests.trained import shared


@pytest.fixture
def toy(monkeypatch) -> str:
    """The name under which the toy mechanism stands in the catalogue for the length of a test."""
    monkeypatch.setitem(system_catalogue.MECHANISMS, "toy", Toy)
    return "toy"


@pytest.fixture
def new_run(prepared, tmp_path):
    """new_run(name, system, **training) lays out a run folder on the tiny text, in float64."""

    def lay_out(name: str, system: str = "transformer", search: dict | None = None, **training) -> Path:
        return lay_out_run(tmp_path / name, prepared, system, search, **training)

    return lay_out


def lay_out_run(folder: Path, prepared, system: str, search: dict | None = None, **training) -> Path:
    settings = {
        "precision": "float64",
        "batch_tokens": 300,
        "warmup": 5,
        "learning_rate": 3e-3,
        "max_steps": 4,
        "validate_every": 100,
        "log_every": 1,
        **training,
    }
    model = describe(f"{system}{',' if ':' in system else ':'}preset=tiny")
    config = RunConfig(
        name=folder.name,
        system=system,
        data=str(prepared.folder),
        model=model,
        training=settings,
        search=search or {"beam": 3, "length_offset": 10},
    )
    begin_run(folder, config, prepared.source_vocabulary, prepared.target_vocabulary)
    return folder


@pytest.fixture(scope="session")
def trained_run(prepared, own) -> Path:
    """Model II of future cost after a few dozen steps: it knows the words and mostly ends its sentences."""
    training = {"max_steps": 120, "batch_tokens": 500, "validate_every": 120, "log_every": 40}

    def build(folder: Path, beside: Path) -> None:
        text = Prepared.open(beside / "prepared")
        fit(lay_out_run(folder / "future-cost-2", text, "future-cost-2", precision="float32", **training), device="cpu")

    return shared(own, "trained", build) / "future-cost-2"
