"""Test sets as the runs translated them: what they hold, what is odd about their lines, scores by document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.evaluation.scoring import Counting, references, statistics_of_all
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd


def testsets_table(runs: Sequence[Run]) -> pd.DataFrame:
    """A row a version of a test set: test, sentences, documents, references, words and longest of source and reference
    (means, most), empty, odd, repeated (lines of the source), digest, runs (those that translated this version)."""
    import pandas as pd

    from analyses import text_checks

    rows: dict[tuple[str, str], dict[str, object]] = {}
    for run in runs:
        for test in run.tests():
            found = run.translations(test).test_set
            digest = text_checks.digest(found.sources, *found.all_references)
            if (test, digest) in rows:
                rows[test, digest]["runs"] = f"{rows[test, digest]['runs']}, {run.name}"
                continue
            source, reference = text_checks.summary(found.sources), text_checks.summary(found.references or [])
            rows[test, digest] = {
                "test": test, "sentences": len(found.sources),
                "documents": len(set(found.documents)) if found.documents is not None else None,
                "references": len(found.all_references), "source_words": source["words"],
                "reference_words": reference["words"], "longest": source["longest"], "empty": source["empty"],
                "odd": source["odd"], "repeated": source["repeated"], "digest": digest, "runs": run.name,
            }  # fmt: skip
    columns = ["test", "sentences", "documents", "references", "source_words", "reference_words", "longest", "empty",
               "odd", "repeated", "digest", "runs"]  # fmt: skip
    return pd.DataFrame(list(rows.values()), columns=columns).astype({"documents": "Int64"})


def corpora_table(runs: Sequence[Run]) -> pd.DataFrame:
    """The prepared text of the runs, a row a split, as Table 1 of Yang 2019 has it: data, split, sentences (pairs),
    documents, length (sentences of a document on average; NaN where documents are not known), runs (trained on it).

    data is named as beside printed numbers. Runs whose data is not at hand are left out.
    """
    import numpy as np
    import pandas as pd

    from workbench.evaluation.translate import prepared_of
    from workbench.papers.our_measurements import place

    rows: dict[tuple[str, str], dict[str, object]] = {}
    for run in runs:
        try:
            prepared = prepared_of(run)
        except RunError:
            continue
        for split in dict.fromkeys(("train", "dev", *prepared.test_names)):
            if (prepared.digest, split) in rows:
                rows[prepared.digest, split]["runs"] = f"{rows[prepared.digest, split]['runs']}, {run.name}"
                continue
            text = prepared.split(split) if split in prepared.manifest["splits"] else prepared.test(split)
            known = text.documents
            documents = None if known is None else len(np.unique(np.asarray(known)))
            length = np.nan if not documents else len(text) / documents
            rows[prepared.digest, split] = {
                "data": place(run, split)["data"], "split": split, "sentences": len(text), "documents": documents,
                "length": length, "runs": run.name,
            }  # fmt: skip
    columns = ["data", "split", "sentences", "documents", "length", "runs"]
    return pd.DataFrame(list(rows.values()), columns=columns).astype({"documents": "Int64"})


def outputs_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """What the runs wrote: system, words, characters (means), ratio (characters to those of the reference), empty, odd,
    repeated, copies (of the source)."""
    import pandas as pd

    from analyses import text_checks

    rows = []
    for run in runs:
        found = run.translations(test)
        summary, wanted = text_checks.summary(found.hypotheses), found.test_set.references
        expected = text_checks.summary(wanted)["characters"] if wanted else float("nan")
        copies = sum(
            source == output != "" for source, output in zip(found.test_set.sources, found.hypotheses, strict=True)
        )
        rows.append({
            "system": run.name, "words": summary["words"], "characters": summary["characters"],
            "ratio": summary["characters"] / expected if expected else float("nan"), "empty": summary["empty"],
            "odd": summary["odd"], "repeated": summary["repeated"], "copies": copies,
        })  # fmt: skip
    return pd.DataFrame(rows)


def findings_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """Every odd line of source, references and outputs, in their order: sentence, side, finding, detail, text."""
    import pandas as pd

    from analyses.text_checks import line_checks, pair_checks

    opened = {run.name: run.translations(test) for run in runs}
    first = next(iter(opened.values())).test_set
    outputs = [(name, found.hypotheses) for name, found in opened.items()]
    sides = [("source", first.sources)]
    for number, lines in enumerate(first.all_references, start=1):
        sides.append(("reference" if number == 1 else f"reference {number}", lines))
    checked = [(side, lines, pair_checks(opened[side].test_set.sources, lines)) for side, lines in outputs]
    checked += [(side, lines, line_checks(lines)) for side, lines in (*sides, *outputs)]
    tables = [
        table.assign(side=side, text=[lines[sentence] for sentence in table["sentence"]])
        for side, lines, table in checked
    ]
    whole = pd.concat(tables, ignore_index=True).sort_values("sentence", kind="stable", ignore_index=True)
    return whole[["sentence", "side", "finding", "detail", "text"]]


def documents_table(runs: Sequence[Run], test: str, metric: str, counting: Counting) -> pd.DataFrame:
    """A row a document: document, n (segments), then the score of each run, the first run's first."""
    from analyses.documents import by_document

    opened = {run.name: run.translations(test) for run in runs}
    references(opened)
    documents = next(iter(opened.values())).test_set.documents
    if documents is None:
        raise RunError(f"{test} says of no sentence which document it belongs to; translate it with document ids")
    scored = by_document(statistics_of_all(runs, opened, metric, counting=counting), documents)
    wide = scored.pivot(index=["document", "n"], columns="system", values="score")
    order = list(dict.fromkeys(documents))
    return wide[[run.name for run in runs]].reset_index().set_index("document").loc[order].reset_index()
