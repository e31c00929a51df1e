"""Translate, trace and score test sets with runs, and put the results beside them. Torch is imported when needed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyses import meteor
from core_models.whole_folders import others, refuse_foreign, replacing_folder
from workbench import known_scores
from workbench.contexts import beside
from workbench.ranks import over_ranks, own_device, wait
from workbench.runs import Run, RunError
from workbench.traced import write_forced
from workbench.translation_writer import foreign_to_translations, write_translations
from workbench.translations import TestSet, Translations

if TYPE_CHECKING:
    import pandas as pd

    from analyses.scores import Statistics
    from analyses.significance import Comparison
    from core_models.reading import Texts
    from core_models.traces import Trace
    from core_models.translator import Translation, Translator

METRICS = ("bleu", "chrf", "ter")
# As figures and tables print them; METEOR with its variant, since it is no other METEOR.
METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF", "chrf++": "chrF++", "ter": "TER", meteor.NAME: meteor.label()}
Step = Callable[[int, int], None]  # (sentences done, sentences in all)


def prepared_of(run: Run) -> Any:
    """The prepared data that a run was trained on; raises RunError where the folder has gone."""
    from core_models.text.binary import Prepared
    from core_models.text.parallel import TextError

    try:
        return Prepared.open(run.config.data_folder(run.folder))
    except TextError as error:
        raise RunError(f"{run.name}: its data is not at hand ({error}); give the test set as files instead") from None


def test_set(run: Run, name: str) -> tuple[TestSet, Path | None]:
    """A test set by name from the run's prepared data, and the file of its truth, if there is one."""
    prepared = prepared_of(run)
    text = prepared.test(name)
    return TestSet(name, text.sources, text.targets, text.documents), prepared.truth(name)


def translate_test(
    run: Run,
    test: TestSet,
    truth: Path | None = None,
    trees: bool = False,
    device: str = "cpu",
    translator: Translator | None = None,
    step: Step | None = None,
    **search: Any,
) -> Translations:
    """Translate a test set with a run and write the result beside it. `search` changes the run's search settings.

    Under `torchrun` the ranks share the batches; the files are those of one process with as many threads.
    """
    made_by = run.made_by  # before they are read: training may go on meanwhile
    if translator is None:
        translator = _loaded(run, device)
    if trees and (search.get("finished") or translator.search.finished) == "stay":
        raise RunError(
            f"{run.name}: a search with finished=stay records no trees; translate without --trees, or with "
            "--search finished=leave"
        )
    refuse_foreign(run.translations_folder(test.name), "translate", foreign_to_translations)  # before any work is done
    began = time.perf_counter()
    found = translate_lines(translator, test.sources, test.documents, step, record=trees, **search)
    if found is not None:
        changes = {key: value for key, value in search.items() if value is not None}
        settings = {**translator.search.model_dump(), **changes}
        write_translations(run, test, found, settings, time.perf_counter() - began, truth, made_by)
    wait()
    return Translations(run.translations_folder(test.name), run.typed)  # also where training has gone on


def _loaded(run: Run, device: str) -> Translator:
    """The model of a run; RunError where it was translated elsewhere."""
    import core_models

    run.require_model()
    return core_models.load(run.reference, own_device(device))


def translate_lines(
    translator: Translator,
    sources: Sequence[str],
    documents: Sequence[str] | None = None,
    step: Step | None = None,
    record: bool = False,
    prefix: str | None = None,
    contexts: Texts | None = None,
    context_outputs: Texts | None = None,
    **search: Any,
) -> list[Translation] | None:
    """Translate sentences, shared over the ranks where there are several: then None on all but the first.

    step: is told how far this rank has come with its share. contexts, context_outputs: instead of documents, as in
    `Translator.translate`.
    """
    if contexts is None:
        contexts, _ = translator.contexts(sources, documents)  # of all lines: those of a batch are not side by side

    def translate(rows: list[int]) -> list[Translation]:
        return translator.translate(
            [sources[row] for row in rows],
            [documents[row] for row in rows] if documents and contexts is None else None,
            contexts=None if contexts is None else [contexts[row] for row in rows],
            context_outputs=None if context_outputs is None else [context_outputs[row] for row in rows],
            prefix=None if prefix is None else [prefix] * len(rows),
            record=record,
            **search,
        )

    found = over_ranks(translator.batches(sources, documents, **search), translate, step)
    return None if found is None else [found[row] for row in range(len(sources))]


def trace_test(
    run: Run,
    translations: Translations,
    names: Sequence[str],
    sentences: Sequence[int] | None = None,
    device: str = "cpu",
    translator: Translator | None = None,
    step: Step | None = None,
) -> Path:
    """Force a run's own translations of a test set, piece by piece as the search found them, and write the traces of
    some sentences (None: all), whole or not at all."""
    from core_models.traces import write_traces

    if translator is None:
        translator = _loaded(run, device)
    rows = list(range(len(translations))) if sentences is None else list(sentences)
    outside = [row for row in rows if not 0 <= row < len(translations)]
    if outside:
        raise RunError(f"{translations.test} has sentences 0 to {len(translations) - 1}, not {outside[0]}")
    folder = run.results / "traces" / translations.test
    refuse_foreign(folder, "trace", _foreign_to_traces)  # before any work is done
    test, written = translations.test_set, translations.hypotheses
    sources = [test.sources[row] for row in rows]
    tokens = [translations.details[row]["tokens"] for row in rows]

    def force(places: list[int]) -> list[Trace]:
        return translator.trace(
            [sources[place] for place in places],
            [tokens[place] for place in places],
            names,
            **beside(translator.context, test, [rows[place] for place in places], written),
        )

    found = over_ranks(translator.batches(sources), force, step)
    if found is not None:
        if not any(found.values()):
            raise RunError(f"{run.name} has no trace of the name {', '.join(names)}; '*' stands for all that it has")
        with replacing_folder(folder, "trace", _foreign_to_traces) as unfinished:
            write_traces(unfinished, {rows[place]: trace for place, trace in found.items()})
            write_forced(unfinished, dict(zip(rows, tokens, strict=True)))
    wait()
    return folder


def _foreign_to_traces(folder: Path) -> str | None:
    return others(folder, lambda name: re.fullmatch(r"(index|forced)\.json|[^/]+\.npy", name) is not None)


@dataclass(frozen=True)
class Counting:
    """How scores are counted: a preset of `analyses.scores`; against one reference, from 1, or 0 for all together."""

    preset: str = "default"
    reference: int = 0


def references(runs: Mapping[str, Translations], which: int = 0) -> list[list[str]]:
    """The references that all of them translated towards, or one of them (from 1); raises RunError where they or the
    sources differ or lack it."""
    first_name, first = next(iter(runs.items()))
    if first.test_set.references is None:
        raise RunError(f"{first_name}: the test set {first.test} has no references; scores need them")
    check_alike(runs)
    found = first.test_set.all_references
    if not 0 <= which <= len(found):
        raise RunError(f"{first.test} has {len(found)} references, from 1; there is no reference {which}")
    return [found[which - 1]] if which else found


def check_alike(runs: Mapping[str, Translations]) -> None:
    """Raises RunError where runs were tested on different versions of a test set."""
    first_name, first = next(iter(runs.items()))
    for name, translations in runs.items():
        own, other = translations.test_set, first.test_set
        if (own.sources, own.all_references) != (other.sources, other.all_references):
            raise RunError(
                f"{name} and {first_name} were tested on different versions of {first.test}; translate again"
            )


def statistics(run: Run, translations: Translations, metric: str, counting: Counting = Counting()) -> Statistics:
    """Segment statistics of a metric, from the run's cache where the same translations were scored before."""
    return statistics_of_all([run], {run.name: translations}, metric, counting=counting)[run.name]


def statistics_of_all(
    runs: Sequence[Run],
    opened: Mapping[str, Translations],
    metric: str,
    processes: int = 1,
    counting: Counting = Counting(),
) -> dict[str, Statistics]:
    """`statistics` of every run; those not yet in a run's cache are extracted together, in so many processes."""
    from analyses.kept_statistics import cached_extract_all
    from analyses.scores import preset

    counted = runs if metric == "bleu" and counting == Counting() else ()
    stamps = [known_scores.stamp(run, opened[run.name].test) for run in counted]  # before the texts are read
    folders = {run.name: run.statistics for run in runs}
    hypotheses = {name: translations.hypotheses for name, translations in opened.items()}
    towards, options = references(opened, counting.reference), preset(counting.preset).options(metric)
    found = cached_extract_all(folders, hypotheses, towards, metric, processes, **options)
    for run, stamp in zip(counted, stamps, strict=True):
        known_scores.keep(run, opened[run.name].test, stamp, found[run.name].total)
    return found


def by_seed(runs: Sequence[Run], found: Mapping[str, Statistics]) -> dict[str, dict[int, Statistics]]:
    """What was found of each run by its name, by the run's system and the seed it was trained with; raises RunError
    where two runs of a system have the same seed."""
    systems: dict[str, dict[int, Statistics]] = {}
    for run in runs:
        own, seed = systems.setdefault(run.system, {}), run.config.training.seed
        if seed in own:
            raise RunError(f"{run.name} is not the only run of {run.system} with seed {seed}; leave one out")
        own[seed] = found[run.name]
    return systems


def score_table(
    runs: Sequence[Run],
    test: str,
    metrics: Sequence[str] = METRICS,
    samples: int = 1000,
    processes: int = 1,
    counting: Counting = Counting(),
) -> pd.DataFrame:
    """system, metric, score, low, high (95 % bootstrap), signature, n for every run and metric."""
    import pandas as pd

    from analyses.significance import bootstrap_intervals

    opened = {run.name: run.translations(test) for run in runs}
    rows = []
    for metric in metrics:
        extracted = statistics_of_all(runs, opened, metric, processes, counting)
        intervals = bootstrap_intervals(extracted, samples)
        for run in runs:
            found, interval = extracted[run.name], intervals[run.name]
            rows.append(
                {
                    "system": run.name,
                    "metric": found.metric,
                    "score": interval.score,
                    "low": interval.low,
                    "high": interval.high,
                    "signature": found.signature,
                    "n": len(found),
                }
            )
    return pd.DataFrame(rows)


# Names of the tests of a difference; `bootstrap-sacrebleu` is the bootstrap with sacreBLEU's rule for p.
TESTS = ("bootstrap", "randomization", "sign", "bootstrap-sacrebleu")


def _tested(base: Statistics, others: Mapping[str, Statistics], method: str) -> dict[str, Comparison]:
    """Each system against the baseline by one of TESTS; the bootstrap draws its resamples once for all."""
    from analyses import significance

    if method == "randomization":
        return {name: significance.approximate_randomization(base, own) for name, own in others.items()}
    if method == "sign":
        return {name: significance.sign_test(base, own) for name, own in others.items()}
    rule: significance.Rule = "sacrebleu" if method == "bootstrap-sacrebleu" else "interval"
    return significance.paired_bootstraps(base, others, rule=rule)


def comparison_table(
    runs: Sequence[Run],
    test: str,
    baseline: str,
    method: str = "bootstrap",
    metrics: Sequence[str] = ("bleu",),
    counting: Counting = Counting(),
) -> pd.DataFrame:
    """Each run against the baseline: system, metric, score, delta, low, high (of the difference), p_value, p_holm."""
    import pandas as pd

    from analyses import significance

    opened = {run.name: run.translations(test) for run in runs}
    if baseline not in opened:
        raise RunError(f"the baseline {baseline!r} is not among the runs compared: {', '.join(opened)}")
    rows = []
    for metric in metrics:
        extracted = statistics_of_all(runs, opened, metric, counting=counting)
        base = extracted[baseline]
        others = {run.name: extracted[run.name] for run in runs if run.name != baseline}
        found = _tested(base, others, method)
        adjusted = significance.holm([comparison.p_value for comparison in found.values()])
        rows += [
            {
                "system": name,
                "baseline": baseline,
                "metric": base.metric,
                "score": comparison.system_score,
                "delta": comparison.delta,
                "low": comparison.low,
                "high": comparison.high,
                "p_value": comparison.p_value,
                "p_holm": float(p),
                "method": comparison.method,
            }
            for (name, comparison), p in zip(found.items(), adjusted, strict=True)
        ]
    return pd.DataFrame(rows)
