"""Gold links of a test set, of the truth of the controlled corpus or of a file in Pharaoh format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.evaluation.gold_alignments import has_truth
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from analyses.pharaoh import GoldLinks

TRUTH = "truth"  # value of `links` instead of a file


def gold_links(links: str, run: Run, test: str) -> GoldLinks:
    """Gold links of a test set: the truth, or of a file, checked against its whitespace words."""
    from analyses import pharaoh
    from core_models.text.parallel import read_lines

    if links == TRUTH:
        if not has_truth(run, test):
            raise RunError(f"the test set {test!r} has no truth, which only the controlled corpus knows; name a file")
        records = run.translations(test).truth or []
        sets = [{(int(i), int(j)) for i, j in record["alignment"]} for record in records]
        return pharaoh.GoldLinks(sets, sets, 0, True)
    path = Path(links).expanduser()
    if not path.is_file():
        raise RunError(f"{path}: there is no such file of links")
    test_set = run.translations(test).test_set
    if test_set.references is None:
        raise RunError(f"the test set {test!r} has no references, which gold links would align with its sources")
    lengths = [(len(a.split()), len(b.split())) for a, b in zip(test_set.sources, test_set.references, strict=True)]
    return pharaoh.parse(read_lines(path), lengths, path.name)
