"""Corpus metrics by sacreBLEU as sufficient statistics per segment, each with its signature.

Extraction is the slow part (loops in Python) and is done once; the score of any subset of segments is the score of its
summed statistics. Segments are independent: they are processed in chunks, all systems on a chunk's references before
the next chunk, optionally in several processes. `statistics_cache` stores the extracted statistics.
Per-segment statistics are private API of sacreBLEU (`_cache_references`, `_extract_corpus_statistics`); tests compare
them with `corpus_score`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
from sacrebleu.metrics import BLEU, CHRF, TER

from analyses import meteor, metric_formulas

METRICS = ("bleu", "chrf", "chrf++", "ter")
LOWER_IS_BETTER = ("TER",)
OPTIONAL = (meteor.NAME,)  # counted by libraries that need not be there


@dataclass(frozen=True)
class Preset:
    """Metric settings. description: shown beside the choice; bleu: options of BLEU only; lowercase: of every metric.

    TER ignores case and tokenizes by its own rules under each.
    """

    description: str
    bleu: Mapping[str, Any] = field(default_factory=dict)
    lowercase: bool = False

    def options(self, metric: str) -> dict[str, Any]:
        """The options of `extract` for a metric."""
        if metric == meteor.NAME:  # tokenized as for BLEU; case never counts
            return {name: value for name, value in self.bleu.items() if name == "tokenize"}
        return {**(self.bleu if metric == "bleu" else {}), **({"lowercase": True} if self.lowercase else {})}


# multi-bleu.perl neither tokenizes nor smooths; multi-bleu-detok.perl and mteval tokenize as 13a does.
_MULTI_BLEU = {"tokenize": "none", "smooth_method": "none"}
PRESETS: dict[str, Preset] = {
    "default": Preset("sacreBLEU's defaults: 13a tokenizer, case-sensitive"),
    "lowercase": Preset("13a tokenizer, case-insensitive", lowercase=True),
    "intl": Preset("international tokenizer (mteval-v14), case-sensitive", {"tokenize": "intl"}),
    "zh": Preset("Chinese output: Chinese characters are words", {"tokenize": "zh"}),
    "char": Preset("every character is a word", {"tokenize": "char"}),
    "tokenized": Preset("text that is tokenized already, case-sensitive", {"tokenize": "none"}),
    "zheng-2019-nist": Preset("Zheng 2019, NIST: tokenized, case-insensitive", {"tokenize": "none"}, lowercase=True),
    "dou-2019": Preset("Dou 2019: NIST BLEU (mteval), case-sensitive", {"tokenize": "13a"}),
    "duan-2020": Preset("Duan 2020: multi-bleu.perl, tokenized, case-sensitive", _MULTI_BLEU),
    "zheng-2018-zh-en": Preset("Zheng 2018, Zh-En: multi-bleu.perl, case-insensitive", _MULTI_BLEU, lowercase=True),
    "zheng-2018-de-en": Preset("Zheng 2018, De-En and En-De: multi-bleu-detok.perl", {"smooth_method": "none"}),
}
FORMER_PRESETS = {
    "tokenised": "tokenized", "gdr-nist": "zheng-2019-nist", "dla": "dou-2019", "fc": "duan-2020",
    "pfrnn-zh-en": "zheng-2018-zh-en", "pfrnn-de-en": "zheng-2018-de-en",
}  # fmt: skip
_FORMULA_OPTIONS = {
    "bleu": ("smooth_method", "smooth_value", "max_ngram_order", "effective_order"),
    "chrf": ("beta", "eps_smoothing"),
    "chrf++": ("beta", "eps_smoothing"),
    "ter": (),
    meteor.NAME: (),
}
_FORMULAS = {"bleu": metric_formulas.bleu, "ter": metric_formulas.ter, meteor.NAME: metric_formulas.mean}
# Segments; the n-grams of a chunk's references stay in memory for all systems: under 100 MB for chrF.
_CHUNK = 1000
_Chunk = tuple[list[Sequence[str]], list[list[str | None]]]  # each system's lines, each reference's lines
References = Sequence[str] | Sequence[Sequence[str | None]]


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of one system's output under one metric: values[segments, k].

    int64; of TER and METEOR float64.
    """

    metric: str
    values: np.ndarray
    signature: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def higher_is_better(self) -> bool:
        return self.metric != "ter"

    @property
    def total(self) -> float:
        """The corpus score, exactly as sacreBLEU gives it."""
        return self.score(self.values.sum(axis=0))

    def score(self, sums: np.ndarray) -> float:
        """The score of one vector of summed statistics [k], computed by sacreBLEU if it has the metric."""
        if self.metric in OPTIONAL:
            return float(self.scores(np.asarray(sums)))
        scorer = _scorer(self.metric, tuple(sorted(self.options.items())))
        return float(scorer._compute_score_from_stats(list(np.asarray(sums).tolist())).score)

    def scores(self, sums: np.ndarray) -> np.ndarray:
        """The scores [...] of many sums [..., k]; float32 sums are rounded as in sacreBLEU's significance tests."""
        formula = _FORMULAS.get(self.metric, metric_formulas.chrf)
        names = _FORMULA_OPTIONS[self.metric]
        return formula(sums, **{name: self.options[name] for name in names if name in self.options})

    def subset(self, rows: np.ndarray) -> Statistics:
        """The statistics of some segments (indices or a boolean mask)."""
        return replace(self, values=self.values[rows])


class Shares(Statistics):
    """Shares as statistics, to be bucketed, compared and resampled as scores are.

    values[segments, 2]: numerator and denominator of each segment. NaN if the denominators sum to zero.
    """

    def score(self, sums: np.ndarray) -> float:
        return float(self.scores(sums))

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return metric_formulas.mean(np.asarray(sums, dtype=np.float64))


def extract(hypotheses: Sequence[str], references: References, metric: str = "bleu", **options: Any) -> Statistics:
    """The sufficient statistics of a system's output.

    hypotheses: one string per segment. references: one string per segment, or several such lists (None: no such
    reference for this segment). metric: bleu, chrf, chrf++ or ter; meteor (`analyses.meteor`) if NLTK is installed.
    options go to the metric (`lowercase`, `tokenize`, …); `lowercase` works for all. Raises ValueError on unequal line
    counts, an unknown metric or option, or a missing library.
    """
    return extract_all({"system": hypotheses}, references, metric, **options)["system"]


def extract_all(
    systems: Mapping[str, Sequence[str]],
    references: References,
    metric: str = "bleu",
    processes: int = 1,
    **options: Any,
) -> dict[str, Statistics]:
    """`extract` for several systems of one test set: the n-grams of each reference are extracted once for all of them.

    processes: how many share the segments; each takes a second or two to start and holds one chunk's n-grams. A script
    that uses more than one needs `if __name__ == "__main__"`.
    """
    streams: list[list[str | None]] = []
    for hypotheses in systems.values():
        streams = reference_streams(hypotheses, references)
    scorer = _build(metric, options)
    if not systems:
        return {}
    if metric in OPTIONAL:
        signature_text = signature(streams, metric, options)
        return {
            system: Statistics(metric, meteor.segment_values(lines, streams, **options), signature_text, dict(options))
            for system, lines in systems.items()
        }
    chunks = _chunks(list(systems.values()), streams)
    if processes > 1:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            parts_by_chunk = list(pool.map(partial(_extract_apart, metric, options), chunks))
    else:
        parts_by_chunk = [_extract_chunk(scorer, chunk) for chunk in chunks]
    signature_text = signature(streams, metric, options)
    return {
        system: Statistics(metric, np.concatenate(parts), signature_text, dict(options))
        for system, parts in zip(systems, zip(*parts_by_chunk, strict=True), strict=True)
    }


def signature(streams: Sequence[Sequence[str | None]], metric: str, options: Mapping[str, Any]) -> str:
    """The signature of a score in sacreBLEU's format. streams: from `reference_streams`."""
    counts = {sum(line is not None for line in lines) for lines in zip(*streams, strict=True)}
    count = counts.pop() if len(counts) == 1 else -1  # -1: sacreBLEU's sign for "varies"
    if metric in OPTIONAL:
        return meteor.signature(count, **options)
    scorer = _build(metric, options)
    scorer.num_refs = count
    return str(scorer.get_signature())


def _chunks(systems: list[Sequence[str]], streams: list[list[str | None]]) -> Iterator[_Chunk]:
    for start in range(0, len(streams[0]), _CHUNK):
        rows = slice(start, start + _CHUNK)
        yield [lines[rows] for lines in systems], [stream[rows] for stream in streams]


def _extract_chunk(scorer: Any, chunk: _Chunk) -> list[np.ndarray]:
    """Each system's statistics of a chunk of segments."""
    systems, streams = chunk
    scorer._ref_cache = scorer._cache_references(streams)
    kind = np.float64 if isinstance(scorer, TER) else np.int64
    return [np.array(scorer._extract_corpus_statistics(lines, None), dtype=kind) for lines in systems]


def _extract_apart(metric: str, options: Mapping[str, Any], chunk: _Chunk) -> list[np.ndarray]:
    return _extract_chunk(_build(metric, options), chunk)  # not every tokenizer can be sent to a process


def preset(name: str) -> Preset:
    """The preset of this name, or former name. Raises ValueError for an unknown one, with the closest known name."""
    name = FORMER_PRESETS.get(name, name)
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(PRESETS)}."
        raise ValueError(f"there is no preset {name!r} for scores; {hint}")
    return PRESETS[name]


def score_table(
    systems: Mapping[str, Sequence[str]],
    references: References,
    metrics: Sequence[str] | Mapping[str, Mapping[str, Any]] = ("bleu", "chrf", "ter"),
) -> pd.DataFrame:
    """Every system under every metric: system, metric, score, signature, n (segments).

    metrics: names, or names with their options ({"bleu": {"lowercase": True}}).
    """
    with_options = metrics if isinstance(metrics, Mapping) else {metric: {} for metric in metrics}
    by_metric = {
        metric: extract_all(systems, references, metric, **options) for metric, options in with_options.items()
    }
    rows = [
        (system, metric, statistics[system].total, statistics[system].signature, len(statistics[system]))
        for system in systems
        for metric, statistics in by_metric.items()
    ]
    return pd.DataFrame(rows, columns=["system", "metric", "score", "signature", "n"])


def reference_streams(hypotheses: Sequence[str], references: References) -> list[list[str | None]]:
    """References in sacreBLEU's format: a list of streams, each as long as the hypotheses."""
    if not len(hypotheses):
        raise ValueError("There are no hypotheses to score: the list is empty.")
    single = bool(len(references)) and (references[0] is None or isinstance(references[0], str))
    streams: list[list[str | None]] = [list(references)] if single else [list(stream) for stream in references]  # type: ignore[arg-type]
    if not streams:
        raise ValueError("There are no references to score against: the list is empty.")
    for number, stream in enumerate(streams, start=1):
        if len(stream) != len(hypotheses):
            raise ValueError(
                f"Reference {number} has {len(stream)} lines but there are {len(hypotheses)} hypotheses: "
                "both must be the same test set, line by line."
            )
    return streams


def _build(metric: str, options: Mapping[str, Any]) -> Any:
    """Build the metric of sacreBLEU; None for another metric, whose options are only checked."""
    if metric in OPTIONAL:
        meteor.check_options(options)
        return None
    if metric not in METRICS:
        known = (*METRICS, *OPTIONAL)
        near = difflib.get_close_matches(metric, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"Unknown metric {metric!r}: choose one of {', '.join(known)}.{hint}")
    arguments = dict(options)
    try:
        if metric == "bleu":
            return BLEU(force=True, **arguments)
        if metric == "ter":
            if "lowercase" in arguments:
                arguments["case_sensitive"] = not arguments.pop("lowercase")
            return TER(**arguments)
        return CHRF(**({"word_order": 2} if metric == "chrf++" else {}), **arguments)
    except (TypeError, KeyError, AssertionError) as error:
        raise ValueError(f"sacreBLEU's {metric} does not take the options {dict(options)!r}: {error}.") from error


@lru_cache(maxsize=32)
def _scorer(metric: str, options: tuple[tuple[str, Any], ...]) -> Any:
    """A metric that only scores sums; it has no tokenizer, as some would load a model."""
    return _build(metric, {**dict(options), **({"tokenize": "none"} if metric == "bleu" else {})})
