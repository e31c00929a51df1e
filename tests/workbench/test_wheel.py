"""The built wheel: it carries what the code reads, and runs without the checkout from any folder."""

import os
import site
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from core_models.resources import data_folder
from tests.paths import ROOT

TINY_DEMO = """
import sys
from pathlib import Path
import yaml
import workbench
from workbench.experiments import demo
assert Path(workbench.__file__).is_relative_to(sys.argv[1]), workbench.__file__
assert demo.grid_file().is_relative_to(sys.argv[1]), demo.grid_file()
grid = yaml.safe_load(demo.grid_file().read_text())
grid["data"] = {"pieces": 160, "kind": "bpe", "controlled": {"sentences": 200, "dev": 10, "test": 10}}
grid["search"] = {"beam": 2, "max_length": 12}
grid["training"] |= {"max_steps": 2, "validate_every": 2, "log_every": 1, "warmup": 1, "batch_tokens": 256}
Path("tiny.yaml").write_text(yaml.safe_dump(grid))
demo.build(Path("runs"), file=Path("tiny.yaml"))
assert demo.complete(Path("runs"))
"""


def _pip(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)],
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = _pip("wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    if built.returncode and "hatchling" in built.stderr + built.stdout:
        pytest.skip(f"the build backend cannot be had here: {built.stderr.strip().splitlines()[-1]}")
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    done = _pip("install", "--no-deps", "--no-index", "--target", folder, wheel)
    assert done.returncode == 0, done.stderr
    return folder


def _python(installed: Path, cwd: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Python with the wheel first, then the libraries; `-S` passes over the .pth that leads to the checkout."""
    libraries = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], *site.getsitepackages()]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(installed), *libraries])),
    }
    return subprocess.run(
        [sys.executable, "-S", "-P", *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.mark.slow
def test_it_carries_the_readable_data_the_app_and_its_settings(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    kinds = ("controlled/*.yaml", "experiments/*.yaml", "papers/*.toml")
    readable = {path.relative_to(data_folder()).as_posix() for kind in kinds for path in data_folder().glob(kind)}
    assert {Path(name).parent.as_posix() for name in readable} == {"controlled", "experiments", "papers"}
    assert {f"core_models/_data/{name}" for name in readable} <= names
    assert {"workbench/_launcher/app.py", "workbench/_launcher/.streamlit/config.toml"} <= names
    code = {
        path.relative_to(ROOT).as_posix()
        for room in ("core_models", "analyses", "workbench")
        for path in (ROOT / room).rglob("*.py")
    }
    assert code <= names
    assert not [name for name in names if name.startswith(("tests/", "runs/", ".venv/"))]


@pytest.mark.slow
def test_the_installed_command_writes_the_controlled_corpus_from_another_folder(installed, tmp_path):
    found = _python(
        installed, tmp_path, "-c", "import workbench, core_models; print(workbench.__file__, core_models.__file__)"
    )
    assert all(Path(path).is_relative_to(installed) for path in found.stdout.split()), found.stdout + found.stderr
    written = _python(
        installed,
        tmp_path,
        "-m",
        "workbench.cli",
        "data",
        "controlled",
        "--out",
        "corpus",
        "--sentences",
        "200",
        "--dev",
        "10",
        "--test",
        "10",
    )
    assert written.returncode == 0, written.stderr
    assert len((tmp_path / "corpus" / "train.en").read_text(encoding="utf-8").splitlines()) >= 190


@pytest.mark.exhaustive
def test_the_installed_demo_runs_from_another_folder(installed, tmp_path):
    found = _python(installed, tmp_path, "-c", TINY_DEMO, str(installed))
    assert found.returncode == 0, found.stderr
    listed = _python(installed, tmp_path, "-m", "workbench.cli", "runs")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [
        "demo/future-cost-1",
        "demo/future-cost-2",
        "demo/transformer",
    ]
