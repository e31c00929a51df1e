"""Tables of test sets as translated by runs: sizes, suspicious lines, outputs, scores by document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.evaluation.scoring import Counting, references, statistics_of_all
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd


def testsets_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Test sets of the runs, one row for each version.

    Columns: test, sentences, documents, references, source_words and reference_words (means), longest (source), empty,
    odd, repeated (lines of the source), digest, runs (that translated this version).
    """
    import pandas as pd

    from analyses import text_checks

    rows: dict[tuple[str, str], dict[str, object]] = {}
    for run in runs:
        for test in run.tests():
            test_set = run.translations(test).test_set
            digest = text_checks.digest(test_set.sources, *test_set.all_references)
            if (test, digest) in rows:
                rows[test, digest]["runs"] = f"{rows[test, digest]['runs']}, {run.name}"
                continue
            source, reference = text_checks.summary(test_set.sources), text_checks.summary(test_set.references or [])
            rows[test, digest] = {
                "test": test, "sentences": len(test_set.sources),
                "documents": len(set(test_set.documents)) if test_set.documents is not None else None,
                "references": len(test_set.all_references), "source_words": source["words"],
                "reference_words": reference["words"], "longest": source["longest"], "empty": source["empty"],
                "odd": source["odd"], "repeated": source["repeated"], "digest": digest, "runs": run.name,
            }  # fmt: skip
    columns = ["test", "sentences", "documents", "references", "source_words", "reference_words", "longest", "empty",
               "odd", "repeated", "digest", "runs"]  # fmt: skip
    return pd.DataFrame(list(rows.values()), columns=columns).astype({"documents": "Int64"})


def corpora_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Prepared text of the runs, one row for each split, in the form of Table 1 of Yang 2019.

    Columns: data (named as for reported numbers), split, sentences (pairs), documents, length (mean sentences per
    document; NaN without documents), runs (trained on it). Runs without their data are left out.
    """
    import numpy as np
    import pandas as pd

    from workbench.evaluation.translate import prepared_of
    from workbench.papers.our_measurements import origin_fields

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
            document_ids = text.documents
            documents = None if document_ids is None else len(np.unique(np.asarray(document_ids)))
            length = np.nan if not documents else len(text) / documents
            rows[prepared.digest, split] = {
                "data": origin_fields(run, split)["data"], "split": split, "sentences": len(text),
                "documents": documents, "length": length, "runs": run.name,
            }  # fmt: skip
    columns = ["data", "split", "sentences", "documents", "length", "runs"]
    return pd.DataFrame(list(rows.values()), columns=columns).astype({"documents": "Int64"})


def outputs_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """Properties of the runs' outputs.

    Columns: system, words, characters (means), ratio (of characters to the reference's), empty, odd, repeated, copies
    (of the source).
    """
    import pandas as pd

    from analyses import text_checks

    rows = []
    for run in runs:
        translations = run.translations(test)
        summary, references_of_test = text_checks.summary(translations.hypotheses), translations.test_set.references
        reference_characters = (
            text_checks.summary(references_of_test)["characters"] if references_of_test else float("nan")
        )
        copies = sum(
            source == output != ""
            for source, output in zip(translations.test_set.sources, translations.hypotheses, strict=True)
        )
        rows.append({
            "system": run.name, "words": summary["words"], "characters": summary["characters"],
            "ratio": summary["characters"] / reference_characters if reference_characters else float("nan"),
            "empty": summary["empty"],
            "odd": summary["odd"], "repeated": summary["repeated"], "copies": copies,
        })  # fmt: skip
    return pd.DataFrame(rows)


def findings_table(runs: Sequence[Run], test: str) -> pd.DataFrame:
    """Suspicious lines of source, references and outputs; columns sentence, side, finding, detail, text."""
    import pandas as pd

    from analyses.text_checks import line_checks, pair_checks

    translations = {run.name: run.translations(test) for run in runs}
    first = next(iter(translations.values())).test_set
    outputs = [(name, run_translations.hypotheses) for name, run_translations in translations.items()]
    sides = [("source", first.sources)]
    for number, lines in enumerate(first.all_references, start=1):
        sides.append(("reference" if number == 1 else f"reference {number}", lines))
    checked = [(side, lines, pair_checks(translations[side].test_set.sources, lines)) for side, lines in outputs]
    checked += [(side, lines, line_checks(lines)) for side, lines in (*sides, *outputs)]
    tables = [
        table.assign(side=side, text=[lines[sentence] for sentence in table["sentence"]])
        for side, lines, table in checked
    ]
    findings = pd.concat(tables, ignore_index=True).sort_values("sentence", kind="stable", ignore_index=True)
    return findings[["sentence", "side", "finding", "detail", "text"]]


def documents_table(runs: Sequence[Run], test: str, metric: str, counting: Counting) -> pd.DataFrame:
    """Scores by document, one row for each: document, n (segments), then the score of each run in their order."""
    from analyses.documents import by_document

    translations = {run.name: run.translations(test) for run in runs}
    references(translations)
    documents = next(iter(translations.values())).test_set.documents
    if documents is None:
        raise RunError(f"{test} says of no sentence which document it belongs to; translate it with document ids")
    scored = by_document(statistics_of_all(runs, translations, metric, counting=counting), documents)
    wide = scored.pivot(index=["document", "n"], columns="system", values="score")
    order = list(dict.fromkeys(documents))
    return wide[[run.name for run in runs]].reset_index().set_index("document").loc[order].reset_index()
