"""Names that commands had in the last release, and their names now: the old ones work for one more release.

Command lines of old pages, scripts and stored jobs are read with it. To end that, remove this module and its callers.
"""

from __future__ import annotations

from collections.abc import Sequence

# The first words of a command line, in the last release and now.
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
    ("true-adequacy",): ("controlled", "coverage"),
    ("true-choices",): ("controlled", "pronouns"),
}
REDRAW = "--rerun"  # `figure FILE --rerun` is `figure redraw FILE`


def current(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words after `workbench` with the names of now, and a sentence for each old name among them."""
    for length in (2, 1):
        old = tuple(words[:length])
        if old in COMMANDS:
            new = COMMANDS[old]
            return [*new, *words[length:]], [_is_now(old, new)]
    if words[:1] == ["figure"] and REDRAW in words:
        others = [word for word in words[1:] if word != REDRAW]
        return ["figure", "redraw", *others], [_is_now(("figure", REDRAW), ("figure", "redraw"))]
    return list(words), []


def _is_now(old: Sequence[str], new: Sequence[str]) -> str:
    return f"`workbench {' '.join(old)}` is now `workbench {' '.join(new)}`; the old name goes with the next release"
