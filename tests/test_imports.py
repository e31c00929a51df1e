"""What the contracts of pyproject.toml do not hold: private names, what a quick start needs, what is declared."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

ROOMS = {"core_models", "analyses", "workbench"}


def imports(path: Path) -> set[str]:
    """The top-level names a file imports anywhere: in functions and under TYPE_CHECKING too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


PRIVATE = re.compile(r"_[a-z].*")


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_no_file_takes_the_private_names_of_another(room):
    taken = [
        f"{path.relative_to(ROOT)}: {node.module}.{alias.name}"
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ROOMS
        for alias in node.names
        if PRIVATE.fullmatch(alias.name)
    ]
    assert taken == []


@pytest.mark.parametrize(
    "module", ["core_models", "core_models.config", "core_models.traces", "analyses", "workbench.cli"]
)
def test_starting_stays_free_of_torch(module):
    """A command line that answers --help, and a list of runs, must not wait for PyTorch."""
    asked = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], cwd=ROOT, timeout=250).returncode == 0


def needed(path: Path) -> set[str]:
    """The top-level names a file imports as it is imported itself: not in functions, not under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8"), str(path)).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


def declared() -> tuple[set[str], set[str]]:
    """Distributions that pyproject.toml asks for always, and those of its extras besides."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=!~;\[ ]", one)[0].lower().replace("_", "-") for one in requirements}

    extras = [name for of_extra in project["optional-dependencies"].values() for name in of_extra]
    return names(project["dependencies"]), names(extras)


@pytest.mark.slow
def test_what_is_imported_is_declared():
    """An installed workbench imports whatever it needs; what extras bring is imported where it is used."""
    from importlib.metadata import packages_distributions

    always, extras = declared()
    distributions = packages_distributions()
    own = {*ROOMS, *sys.stdlib_module_names}
    peers = ROOT / "workbench" / "benchmark" / "other_toolkits.py"  # runs under interpreters of other engines
    wrong = []
    for path in [ROOT / "app.py", *(path for room in sorted(ROOMS) for path in (ROOT / room).rglob("*.py"))]:
        for names, known in ((needed(path), always), (imports(path), always | extras)):
            for name in names - own:
                brought = {one.lower().replace("_", "-") for one in distributions.get(name, [name])}
                if path != peers and not brought & known:
                    wrong.append(f"{path.relative_to(ROOT)}: {name}")
    assert wrong == []
