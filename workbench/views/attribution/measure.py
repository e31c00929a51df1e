"""Attribution live: a run's own output, the reference or a typed text of a sentence, explained by the words it is read
from. What was found is kept a while.

Knows runs and the translator, no figure and no Streamlit; torch and captum come with the first look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench.evaluation.document_context import ContextSentences, as_arguments
from workbench.evaluation.forced_decoding import opened, stamp
from workbench.evaluation.live_trace import trace_sentence
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
WHOLE = "sentence"  # in place of a word's number


@dataclass(frozen=True, eq=False)
class Explained:
    """One attribution with its pieces; `source` ends with </s>, `prefix` begins with <s> and is as long as `target`."""

    run: Run
    source: tuple[str, ...]
    prefix: tuple[str, ...]
    target: tuple[str, ...]
    found: Attribution
    in_document: bool = False  # with the sentences before it, which are not attributed to

    @property
    def words(self) -> list[str]:
        """What each row explains."""
        return [self.target[place] if place >= 0 else "(sentence)" for place in self.found.chosen]

    @property
    def constants(self) -> list[str]:
        """The embeddings that a mechanism reads beside the words' own, said by their side and place (from 1)."""
        elsewhere = {side: f"elsewhere on the {side}" for side in ("source", "target")}
        if self.in_document:
            elsewhere["source"] = "in the sentences before"
        return [
            f"{one.side} position {one.position + 1}" if one.position is not None else elsewhere[one.side]
            for one in self.found.constants
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
    """Attribute a translation of a sentence. Raises RunError for what is not there.

    forced: which translation (`forced_decoding.TARGETS`), and the text of a typed one. word: its number from 1, or
    "sentence"; None for one row for each word of the translation and a last one for the sentence.
    """
    looked = trace_sentence(run, test, sentence, *forced)
    chosen = (*range(len(looked.target)), -1) if word is None else (_place(run, looked.target, word),)
    words = run.translations(test).test_set.sources[sentence], looked.before, looked.target
    found = _attributed(run.reference, stamp(run), *words, chosen, method, baseline)
    prefix = ("<s>", *looked.target[:-1])
    return Explained(run, looked.source, prefix, looked.target, found, looked.before is not None)


def _place(run: Run, target: Sequence[str], word: int | str) -> int:
    if isinstance(word, str):
        return -1
    if not 1 <= word <= len(target):
        raise RunError(f"word {word!r}: {run.name} has the words 1 to {len(target)} here, or take {WHOLE}")
    return word - 1


@lru_cache(maxsize=64)
def _attributed(
    reference: str,
    weights: tuple[float, int],
    source: str,
    before: ContextSentences | None,
    target: tuple[str, ...],
    chosen: tuple[int, ...],
    method: str,
    baseline: str,
) -> Attribution:
    from core_models.decoding.inputs import EncodedInputs
    from core_models.inspection.attribution import attribute

    translator, lock = opened(reference, weights)
    vocabularies = translator.source_vocabulary, translator.target_vocabulary
    read = EncodedInputs(translator.context, vocabularies, [source], **as_arguments(before))
    finished = target[-1] == "</s>"
    words = _numbers(translator.target_vocabulary, target[: len(target) - finished])
    with lock:
        return attribute(
            translator.systems[0],
            read.pieces[0],
            words,
            finished,
            chosen,
            method,  # type: ignore[arg-type]
            baseline,  # type: ignore[arg-type]
            context=read.batch([0]).context,
        )


def _numbers(vocabulary: Vocabulary, pieces: Sequence[str]) -> list[int]:
    known = {piece: number for number, piece in enumerate(vocabulary.pieces(range(len(vocabulary))))}
    return [known[piece] for piece in pieces]


def sums(explained: Sequence[Explained], names: Mapping[str, str]) -> pd.DataFrame:
    """A row for each explained word: system, word, log_prob, baseline_log_prob, difference, sum, error (nats), steps,
    complete (is the error under 1 % of max(|difference|, 0.5 nat)?)."""
    import pandas as pd

    return pd.concat(
        [
            pd.DataFrame(
                {
                    "system": names[one.run.name],
                    "word": one.words,
                    "log_prob": one.found.log_prob,
                    "baseline_log_prob": one.found.baseline_log_prob,
                    "difference": one.found.difference,
                    "sum": one.found.difference + one.found.error,
                    "error": one.found.error,
                    "steps": one.found.steps,
                    "complete": one.found.complete,
                }
            )
            for one in explained
        ],
        ignore_index=True,
    )


def shared_words(
    runs: Sequence[Run], test: str, sentence: int, forced: tuple[str, str], names: Mapping[str, str]
) -> list[str]:
    """What stands at each place of the runs' translations, as far as all of them reach: one name where they agree."""
    targets = [trace_sentence(run, test, sentence, *forced).target for run in runs]
    return [
        " / ".join(
            dict.fromkeys(
                word if len(set(words)) == 1 else f"{word} ({names[run.name]})"
                for run, word in zip(runs, words, strict=True)
            )
        )
        for words in zip(*targets, strict=False)
    ]
