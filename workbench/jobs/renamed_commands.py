"""Old names of commands and options from the last release, which work for one more release.

Command lines of old pages, scripts and stored jobs are translated. To stop that, remove this module and its callers.
"""

from __future__ import annotations

from collections.abc import Sequence

# The first words of a command line: old and new.
COMMANDS = {
    ("aligner",): ("data", "train-aligner"),
    ("analyse",): ("analyze",),
    ("average",): ("runs", "average"),
    ("beam-sizes",): ("beam-sweep",),
    ("bench",): ("benchmark", "speed"),
    ("bench-profile",): ("benchmark", "profile"),
    ("bench-run",): ("benchmark", "end-to-end"),
    ("bundle",): ("export", "bundle"),
    ("contrast",): ("contrastive-eval",),
    ("controlled",): ("adequacy",),
    ("outside",): ("runs", "import-translations"),
    ("papers",): ("experiment", "papers"),
    ("report",): ("export", "report"),
    ("rescore",): ("rerank",),
    ("scale", "app"): ("benchmark", "scale-app"),
    ("scale", "corpus"): ("benchmark", "scale-corpus"),
    ("scale", "null-rates"): ("benchmark", "scale-null-rates"),
    ("scale", "runs"): ("benchmark", "scale-runs"),
    ("scale", "seed-intervals"): ("benchmark", "scale-seed-intervals"),
    ("scale", "significance"): ("benchmark", "scale-significance"),
    ("scale", "testset"): ("benchmark", "scale-testset"),
    ("scale",): ("benchmark",),
    ("systems",): ("experiment", "systems"),
    ("true-adequacy",): ("adequacy", "coverage"),
    ("true-choices",): ("adequacy", "pronouns"),
}
REDRAW = "--rerun"  # `figure FILE --rerun` is `figure redraw FILE`

# Renamed options by the new name of the command.
_RESAMPLES = {"--samples": "--n-resamples"}
_FIGURE = {"--set": "--option", "-s": "--option"}
_FILES = {"--set": "--file", "-s": "--file"}
OPTIONS = {
    ("adequacy",): _RESAMPLES,
    ("analyze",): _FIGURE,
    ("beam-sweep",): {
        "--most-nodes": "--max-nodes",
        "--most-short": "--exact-max-sentences",
        "--short-words": "--exact-max-words",
    },
    ("benchmark", "scale-null-rates"): {**_RESAMPLES, "--trials": "--n-datasets"},
    ("benchmark", "scale-seed-intervals"): {"--trials": "--n-simulations"},
    ("benchmark", "scale-significance"): {"--samples": "--paired-bs-n", "--trials": "--paired-ar-n"},
    ("benchmark", "scale-testset"): _RESAMPLES,
    ("data", "prepare"): {"--kind": "--model-type", "--pieces": "--vocab-size"},
    ("evaluate",): _RESAMPLES,
    ("experiment", "run"): {"--minutes": "--max-minutes", "--time": "--slurm-time"},
    ("experiment", "table"): _RESAMPLES,
    ("export", "bundle"): {**_FILES, "--basket": "--collection"},
    ("export", "report"): {**_FILES, "--basket": "--collection"},
    ("figure", "redraw"): _FILES,
    ("figure",): {**_FIGURE, "--among": "--palette-runs"},
    ("rating", "results"): _RESAMPLES,
    ("resume",): {"--minutes": "--max-minutes"},
    ("runs", "import-translations"): {"--docids": "--doc-ids"},
    ("score",): {"--docids": "--doc-ids"},
    ("trace",): {"--names": "--arrays"},
    ("train",): {"--minutes": "--max-minutes", "--set": "--config", "-s": "--config"},
    ("translate",): {
        "--context-output": "--context-target",
        "--docids": "--doc-ids",
        "--samples": "--num-samples",
        "--trees": "--save-beams",
    },
}
# Renamed values by option.
VALUES = {
    "--contexts": {"another": "other-item", "words-backwards": "reversed"},
    "--launcher": {"here": "local"},
}


def current(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words after `workbench` with new names, and a message for each old name."""
    words, remarks = _with_command(list(words))
    options = OPTIONS.get(tuple(words[:2])) or OPTIONS.get(tuple(words[:1]), {})
    renamed = []
    for position, word in enumerate(words):
        if "--" in words[:position]:  # the rest are no options
            renamed.append(word)
            continue
        option, sign, value = word.partition("=")
        before = words[position - 1] if position else ""
        if option in options:
            remarks.append(_is_now(option, options[option]))
            word = f"{options[option]}{sign}{value}"
        elif word in VALUES.get(before, {}):
            remarks.append(_is_now(f"{before} {word}", f"{before} {VALUES[before][word]}"))
            word = VALUES[before][word]
        renamed.append(word)
    return renamed, list(dict.fromkeys(remarks))


def _with_command(words: list[str]) -> tuple[list[str], list[str]]:
    for length in (2, 1):
        old = tuple(words[:length])
        if old in COMMANDS:
            new = COMMANDS[old]
            return [*new, *words[length:]], [_is_now(_command(old), _command(new))]
    if words[:1] == ["figure"] and REDRAW in words:
        others = [word for word in words[1:] if word != REDRAW]
        return ["figure", "redraw", *others], [_is_now(_command(("figure", REDRAW)), _command(("figure", "redraw")))]
    return words, []


def _command(words: Sequence[str]) -> str:
    return f"workbench {' '.join(words)}"


def _is_now(old: str, new: str) -> str:
    return f"`{old}` is now `{new}`; the old name goes with the next release"
