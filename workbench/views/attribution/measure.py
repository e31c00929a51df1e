"""Attribution of a translation of a sentence to its source and prefix words, by a live model.

The translation is the run's own, the reference or a typed text. Results are cached in memory. Imports neither figure
code nor Streamlit; torch and captum are imported by the first attribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.evaluation.document_context import ContextSentences, as_arguments
from workbench.evaluation.forced_decoding import opened, stamp
from workbench.evaluation.live_trace import trace_sentence
from workbench.plotting.axes import token_texts
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    import pandas as pd

    from core_models.inspection.attribution import Attribution
    from core_models.text.vocabulary import Vocabulary

METHODS = {
    "integrated_gradients": "Integrated gradients",
    "gradient_x_input": "Gradient × input",
    "occlusion": "Occlusion",
}
BASELINES = {"zero": "Zero vector", "padding": "Padding's embedding"}
WHOLE = "sentence"  # value of `word` instead of a number


@dataclass(frozen=True, eq=False)
class Explained:
    """Attribution with its pieces; `source` ends with </s>, `prefix` begins with <s> and is as long as `target`."""

    run: Run
    source: tuple[str, ...]
    prefix: tuple[str, ...]
    target: tuple[str, ...]
    attribution: Attribution
    in_document: bool = False  # with the sentences before it, which are not attributed to

    @property
    def words(self) -> list[str]:
        """Explained word of each row."""
        return [self.target[position] if position >= 0 else "(sentence)" for position in self.attribution.positions]

    @property
    def constants(self) -> list[str]:
        """Descriptions of other embeddings that a mechanism reads, by side and position (from 1)."""
        elsewhere = {side: f"elsewhere on the {side}" for side in ("source", "target")}
        if self.in_document:
            elsewhere["source"] = "in the sentences before"
        return [
            f"{constant.side} position {constant.position + 1}"
            if constant.position is not None
            else elsewhere[constant.side]
            for constant in self.attribution.constants
        ]


def explain(
    run: Run,
    test: str,
    sentence: int,
    forced: tuple[str, str] = ("own", ""),
    method: str = "integrated_gradients",
    baseline: str = "zero",
    word: int | str | None = WHOLE,
) -> Explained:
    """Attribute log P of a translation of a sentence to its source and prefix words; raises RunError.

    forced: which translation (`forced_decoding.TARGETS`), and the text of a typed one. word: its number from 1, or
    "sentence"; None for one row for each word of the translation and a last one for the sentence.
    """
    trace = trace_sentence(run, test, sentence, *forced)
    positions = (*range(len(trace.target)), -1) if word is None else (_word_index(run, trace.target, word),)
    words = run.translations(test).test_set.sources[sentence], trace.before, trace.target
    attribution = _attribute(run.reference, stamp(run), *words, positions, method, baseline)
    prefix = ("<s>", *trace.target[:-1])
    return Explained(run, trace.source, prefix, trace.target, attribution, trace.before is not None)


def _word_index(run: Run, target: Sequence[str], word: int | str) -> int:
    if isinstance(word, str):
        return -1
    if not 1 <= word <= len(target):
        raise RunError(f"word {word!r}: {run.name} has the words 1 to {len(target)} here, or take {WHOLE}")
    return word - 1


@lru_cache(maxsize=64)
def _attribute(
    reference: str,
    weights: tuple[float, int],
    source: str,
    before: ContextSentences | None,
    target: tuple[str, ...],
    positions: tuple[int, ...],
    method: str,
    baseline: str,
) -> Attribution:
    from core_models.decoding.inputs import EncodedInputs
    from core_models.inspection.attribution import attribute

    translator, lock = opened(reference, weights)
    vocabularies = translator.source_vocabulary, translator.target_vocabulary
    inputs = EncodedInputs(translator.context, vocabularies, [source], **as_arguments(before))
    finished = target[-1] == "</s>"
    words = _piece_ids(translator.target_vocabulary, target[: len(target) - finished])
    with lock:
        return attribute(
            translator.systems[0],
            inputs.pieces[0],
            words,
            finished,
            positions,
            method,  # type: ignore[arg-type]
            baseline,  # type: ignore[arg-type]
            context=inputs.batch([0]).context,
        )


def _piece_ids(vocabulary: Vocabulary, pieces: Sequence[str]) -> list[int]:
    piece_numbers = {piece: number for number, piece in enumerate(vocabulary.pieces(range(len(vocabulary))))}
    return [piece_numbers[piece] for piece in pieces]


def sums(explained: Sequence[Explained], names: Mapping[str, str]) -> pd.DataFrame:
    """Completeness of the attributions, one row for each explained word.

    Columns: system, word, log_prob, baseline_log_prob, difference, sum, error (nats), steps, complete (True if the
    error is under 1 % of max(|difference|, 0.5 nat)).
    """
    import pandas as pd

    return pd.concat(
        [
            pd.DataFrame(
                {
                    "system": names[item.run.name],
                    "word": item.words,
                    "log_prob": item.attribution.log_prob,
                    "baseline_log_prob": item.attribution.baseline_log_prob,
                    "difference": item.attribution.difference,
                    "sum": item.attribution.difference + item.attribution.error,
                    "error": item.attribution.error,
                    "steps": item.attribution.steps,
                    "complete": item.attribution.complete,
                }
            )
            for item in explained
        ],
        ignore_index=True,
    )


def shared_words(
    runs: Sequence[Run], test: str, sentence: int, forced: tuple[str, str], names: Mapping[str, str]
) -> list[str]:
    """Words as drawn of the runs' translations by position, up to the shortest; one label if all runs agree."""
    targets = [token_texts(trace_sentence(run, test, sentence, *forced).target) for run in runs]
    return [
        " / ".join(
            dict.fromkeys(
                word if len(set(words)) == 1 else f"{word} ({names[run.name]})"
                for run, word in zip(runs, words, strict=True)
            )
        )
        for words in zip(*targets, strict=False)
    ]
