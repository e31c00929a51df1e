"""The parts of on-a-gpu.sh, in the order of their value: laws, finite steps, speeds, trainings.

Called again it skips what is done and goes on with what was cut off; what failed is tried again after all others.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from workbench.experiments.parts import Part, outcome, pack, run_parts, table  # noqa: E402

HEADLINE = [
    *("transformer", "em-routing", "dynamic-routing", "dynamic-combination", "linear-combination"),
    *("gdr", "gdr-bow-bca", "future-cost-1", "future-cost-2"),
]
RECURRENT = ["rnnsearch", "coverage", "pfrnn", "pfrnn-loss", "gdr-rnn"]
DOCUMENTS = [
    *("qcn", "qcn-reg", "document-transformer", "han", "han-encoder", "han-decoder", "san", "san-encoder"),
    *("concatenation", "transformer-reg"),
]
GRIDS = [  # in the order of their value; one that begins from another comes after it
    *("claims-layers", "claims-routing", "claims-past-future", "claims-combinations", "claims-future-cost"),
    *("claims-layers-second-pass", "claims-documents", "claims-recurrent", "claims-recurrent-second-pass"),
    *("claims-documents-half", "claims-tatoeba-en-de", "claims-two-layers-rate-0.002"),
    *("claims-two-layers-seeds-6-to-10", "claims-guided-iterations"),
    *("claims-tatoeba-en-de-one-seed", "claims-tatoeba-en-de-recurrent"),
    *("claims-tatoeba-en-de-rate-0.0015", "claims-tatoeba-en-de-rate-0.006"),
    *("claims-future-cost-1-weights", "claims-combinations-rate-0.001", "claims-combinations-rate-0.002"),
    *("claims-combinations-rate-0.008", "scale-width-64", "scale-width-256", "scale-width-256-rate-0.001"),
    *("scale-sentences-5000", "scale-sentences-15000"),
    *("controlled-layers", "controlled", "controlled-routing", "controlled-past-future"),
    *("controlled-past-future-long", "controlled-past-future-ablation", "controlled-recurrent"),
    *("controlled-recurrent-second-pass", "controlled-recurrent-longer-pass", "controlled-recurrent-rows"),
    *("controlled-recurrent-adequacy", "multi30k-en-de", "multi30k-layers", "multi30k-past-future"),
    *("tatoeba-zh-en", "tatoeba-zh-en-second-pass", "tatoeba-de-en", "tatoeba-de-en-second-pass"),
    *("controlled-documents", "controlled-documents-marked", "controlled-documents-sweeps"),
    *("bcontrast", "claims-chats", "bcontrast-second-pass", "bcontrast-smaller-batches"),
    *("bcontrast-demo", "claims-chats-demo", "claims-chats-demo-sweeps"),
    *("manpages-demo", "claims-manpages", "manpages", "manpages-second-pass", "manpages-smaller-batches"),
]
LAWS = {
    "stepping": ("test_laws.py", "stepping"),
    "padding": ("test_laws.py", "padding_and_company"),
    "others": ("test_laws.py", "not stepping and not padding_and_company"),
    "search": ("decoding/test_beam_search.py", "brute_force"),
}


def laws(asked: argparse.Namespace) -> list[Part]:
    """The tests of the laws, on the device."""
    processes = ["-n", "0"] if asked.tiny else ["-n", "8", "--dist", "load"]
    few = " and (san-encoder or em-routing) and not (post or capsules or votes)" if asked.tiny else ""
    return [
        Part(
            f"laws-{name}",
            f"tests/core_models/{file} -k '{chosen}' on {asked.device}",
            [[sys.executable, "-m", "pytest", "-q", *processes, f"{ROOT}/tests/core_models/{file}", "-k",
              f"({chosen}){few}"]],
            guessed_minutes=4,
            resumes=False,
            environment={"NMT_TEST_DEVICE": asked.device},
        )
        for name, (file, chosen) in LAWS.items()
    ]  # fmt: skip


def steps(asked: argparse.Namespace) -> list[Part]:
    """Finite losses and gradients of every system in bfloat16, then speeds by batch size."""
    preset = ["--preset", "tiny", "--vocabulary", "200", "--steps", "2", "--sentences", "8"] if asked.tiny else []
    each = (lambda names: names[:2]) if asked.tiny else (lambda names: names)
    sizes = {"4k": 256, "32k": 512} if asked.tiny else {"4k": 4096, "32k": 32768}
    at_once = (4, 8) if asked.tiny else (40, 400)

    def part(name: str, measures: str, work: str, systems: Sequence[str], *options: str, minutes: float = 5) -> Part:
        chosen = [word for system in systems for word in ("--system", system)]
        csv = ["--csv", str(asked.results / f"{name}.csv"), "--device", asked.device]
        command = [sys.executable, "-m", "workbench.benchmark.on_device", work, *chosen, *csv, *preset, *options]
        return Part(name, measures, [command], minutes)

    speeds = ["--precision", "float32", "--precision", "tf32", "--precision", "bfloat16"]
    few = ["--steps", "2", "--size", "256"] if asked.tiny else ["--steps", "5", "--size", "4096"]
    everything = HEADLINE[:2] if asked.tiny else []
    return [
        part("finite-documents", "losses and gradients, bfloat16, documents", "finite", each(DOCUMENTS), *few),
        part("finite-all", "losses and gradients, bfloat16, whole catalogue", "finite", everything, *few, minutes=8),
        *(
            part(f"training-{name}", f"training, {size} target tokens a batch, float32, TF32, bfloat16", "training",
                 each(HEADLINE), "--size", str(size), *speeds, minutes=6)
            for name, size in sizes.items()
        ),
        part("decoding", f"beam search, {at_once[0]} and {at_once[1]} sentences at once", "decoding", each(HEADLINE),
             *(word for size in at_once for word in ("--size", str(size))),
             "--precision", "float32", "--precision", "bfloat16", minutes=9),
    ]  # fmt: skip


def benchmarks(asked: argparse.Namespace) -> list[Part]:
    """`workbench benchmark speed` of the families, in rounds; the other engines where their interpreter is named."""
    rounds = ["--rounds", "1", "--steps", "1"] if asked.tiny else ["--rounds", "3", "--steps", "50"]
    found = []
    for preset in ("small",) if asked.tiny else ("base", "small"):
        for family, systems in (("recurrent", RECURRENT), ("documents", DOCUMENTS[:5]), ("mechanisms", HEADLINE)):
            chosen = ["transformer:preset=tiny"] if asked.tiny else list(dict.fromkeys([HEADLINE[0], *systems]))
            precisions = [] if asked.tiny else ["--precision", "float32", "--precision", "bfloat16"]
            peers = ["--peers", asked.peers] if asked.peers and family == "mechanisms" else []
            csv = ["--csv", str(asked.results / f"speed-{family}-{preset}.csv"), "--device", asked.device]
            speed = [*_workbench(), "benchmark", "speed", *chosen, "--preset", preset]
            what = f"workbench benchmark speed, {family}, preset {preset}"
            found.append(Part(f"bench-{family}-{preset}", what, [[*speed, *precisions, *rounds, *csv, *peers]], 25))
    return found


def trainings(asked: argparse.Namespace) -> list[Part]:
    """A part a grid; those of files only where their folder is named."""
    found = []
    for grid in [_tiny_grid(asked.results)] if asked.tiny else [ROOT / f"data/experiments/{one}.yaml" for one in GRIDS]:
        files = _files(grid, asked.data)
        if files is None:
            continue
        data = ["--data", str(files)] if files.parts else []
        processes = [] if asked.tiny else ["--processes", "4"]
        run = [*_workbench(), "experiment", "run", str(grid), "--runs", str(asked.results / "runs"), *data]
        commands = [[*run, "--device", asked.device, *processes], _table(grid, asked.results)]
        found.append(Part(f"train-{grid.stem}", f"data/experiments/{grid.stem}.yaml", commands, 30))
    return found


def _files(grid: Path, data: Path | None) -> Path | None:
    """The folder of a grid's files; an empty path where it needs none, None where it is not at hand."""
    if "controlled" in yaml.safe_load(grid.read_text(encoding="utf-8"))["data"]:
        return Path()
    if data is None:
        return None
    text = grid.stem.removeprefix("claims-").removesuffix("-second-pass")
    inner = {"multi30k": "multi30k", "tatoeba": text}.get(text.partition("-")[0])
    return data / inner if inner else data


def _table(grid: Path, results: Path) -> list[str]:
    tables = results / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    return [*_workbench(), "experiment", "table", str(grid), "--runs", str(results / "runs"), "--csv", str(tables)]


def _tiny_grid(results: Path) -> Path:
    """controlled-layers.yaml with so little text, so small a system and so few steps that it takes seconds."""
    grid = yaml.safe_load((ROOT / "data/experiments/controlled-layers.yaml").read_text())
    grid["name"], grid["seeds"], grid["systems"] = "tiny", [1], {"transformer": "transformer:preset=tiny"}
    grid["data"]["pieces"] = 200
    grid["data"]["controlled"] |= {"sentences": 300, "dev": 10, "test": 10}
    grid["training"] |= {"max_steps": 6, "warmup": 2, "validate_every": 3, "log_every": 1, "keep_every": 3}
    path = results / "tiny.yaml"
    path.write_text(yaml.safe_dump(grid))
    return path


def _workbench() -> list[str]:
    return [sys.executable, "-m", "workbench.cli"]


def all_parts(asked: argparse.Namespace) -> list[Part]:
    found = [*laws(asked), *steps(asked), *benchmarks(asked), *trainings(asked)]
    if unknown := set(asked.parts) - {part.name for part in found}:
        sys.exit(f"no part {sorted(unknown)[0]}; --list names them (trainings on files need --data)")
    return [part for part in found if not asked.parts or part.name in asked.parts]


def main() -> int:
    asked = _arguments()
    asked.results.mkdir(parents=True, exist_ok=True)
    parts = all_parts(asked)
    if asked.list:
        for part in parts:
            print(f"{part.name:34} about {part.guessed_minutes:3.0f} min  {outcome(part, asked.results).state:9}  "
                  f"{part.measures}")  # fmt: skip
        return 0
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ["PYTHONUNBUFFERED"] = "1"
    if asked.tiny:  # tried beside other work: threads that wait for each other would take minutes
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the part in progress ends too
    try:
        found = run_parts(
            parts, asked.results, 60 * asked.limit, 60 * asked.minutes, lambda line: print(line, flush=True)
        )
        _tables_of_what_is_not_done(parts, asked.results)
        print(table(found))
    finally:
        archive = asked.results / "on-a-gpu.tar.gz"
        print(f"{archive}: {pack(asked.results, archive) / 2**20:.1f} MiB")
    return int(any(one.state != "done" for one in found))


def _tables_of_what_is_not_done(parts: Sequence[Part], results: Path) -> None:
    """What there is of a grid that was cut off."""
    for part in parts:
        grid = part.name.removeprefix("train-")
        if part.name != grid and outcome(part, results).state == "cut off" and (results / "runs" / grid).is_dir():
            subprocess.run(part.commands[-1], timeout=60, capture_output=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=lambda said: Path(said).resolve(), help="folder of tables, logs and runs")
    parser.add_argument("parts", nargs="*", help="only these; --list names them")
    parser.add_argument("--data", type=lambda said: Path(said).resolve(), help="folder of the files of trainings")
    parser.add_argument("--peers", help="a Python that has transformers and ctranslate2")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--limit", type=float, default=9.0, help="minutes of a part in one call")
    parser.add_argument("--minutes", type=float, default=math.inf, help="of this call")
    parser.add_argument("--tiny", action="store_true", help="every part on next to nothing, to try them")
    parser.add_argument("--list", action="store_true", help="name the parts, about how long each takes and its state")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main())
