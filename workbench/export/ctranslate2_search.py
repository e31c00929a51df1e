"""Beam search of a run by CTranslate2: the same hypotheses faster, where nothing but the translations is wanted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.config import SearchConfig
from core_models.interface.search_state import penalty
from workbench.evaluation.translate import SearchEngine, Step
from workbench.export.ctranslate2 import ENGINE, check_quantization, export_ctranslate2
from workbench.export.plain_transformer import stored_positions
from workbench.store.runs import Run, RunError

if TYPE_CHECKING:
    from core_models.text.vocabulary import Vocabulary
    from core_models.translator import Translation, Translator

BATCH_TOKENS = 4096  # of sources; on CPUs it hardly matters
LINES_AT_ONCE = 2048  # between two reports of progress
QUANTIZATIONS = {"full": "float32", "int8": "int8"}  # our search precisions, and CTranslate2's names

Pieces = list[str]


class CTranslate2Search:
    """A run opened in CTranslate2, for one search.

    Raises RunError, with the reason, for a run or a search that CTranslate2 cannot do as the workbench does. Two rules
    of its search are others: see the README of an exported model.
    """

    def __init__(self, run: Run, search: SearchConfig, threads: int = 0, quantization: str = "") -> None:
        """threads: 0 means as many as PyTorch has; quantization: CTranslate2's name, by default the search's."""
        run.require_model()
        self.name, self.search = run.name, search
        self.positions = stored_positions(run.config.model, search)
        self._check_search()
        quantization = quantization or QUANTIZATIONS[search.precision]
        check_quantization(quantization)
        import ctranslate2
        import torch

        with tempfile.TemporaryDirectory() as folder:  # the model is read into memory
            out = export_ctranslate2(run, Path(folder) / "model", quantization)
            self._engine = ctranslate2.Translator(
                str(out), device="cpu", compute_type=quantization, intra_threads=threads or torch.get_num_threads()
            )

    def _check_search(self) -> None:
        search = self.search
        if search.penalty != "power":
            raise RunError(
                f"{self.name}: {ENGINE} divides by length^length_penalty, this search has penalty {search.penalty}; "
                "give --search penalty=power, or leave --engine out"
            )
        if search.penalty_offset:
            raise RunError(f"{self.name}: {ENGINE} adds nothing to the length; give --search penalty_offset=0")
        if search.finished_hypotheses != "drop":
            raise RunError(
                f"{self.name}: in {ENGINE} finished hypotheses leave the beam; give finished_hypotheses=drop"
            )
        if search.precision not in QUANTIZATIONS:
            raise RunError(f"{self.name}: {ENGINE} searches in {' or '.join(QUANTIZATIONS)}, not {search.precision}")

    def translate(self, translator: Translator, sources: Sequence[str], step: Step | None = None) -> list[Translation]:
        """Translate with the run's own translator at hand: log-probabilities are of its forced pass, in float32."""
        lists = list(self.hypotheses(translator.source_vocabulary, sources, step))
        counts = [len(hypotheses) for hypotheses in lists]
        repeated = [source for source, count in zip(sources, counts, strict=True) for _ in range(count)]
        scored = self._scored(translator, repeated, [tokens for hypotheses in lists for tokens in hypotheses])
        grouped = [[next(scored) for _ in range(count)] for count in counts]
        return [replace(best, n_best=others) for best, *others in grouped]

    def hypotheses(
        self, vocabulary: Vocabulary, sources: Sequence[str], step: Step | None = None
    ) -> Iterator[list[Pieces]]:
        """The n best hypotheses of each source in pieces, with </s> if they have ended."""
        for start in range(0, len(sources), LINES_AT_ONCE):
            pieces = [vocabulary.pieces(ids) for ids in vocabulary.encode(list(sources[start : start + LINES_AT_ONCE]))]
            self._check_lengths(pieces, start)
            results = self._engine.translate_batch(
                pieces,
                max_batch_size=BATCH_TOKENS,
                batch_type="tokens",
                beam_size=self.search.beam,
                num_hypotheses=self.search.n_best,
                length_penalty=self.search.length_penalty,
                patience=2,
                return_end_token=True,
                max_input_length=0,
                max_decoding_length=min(self.search.max_length, self.positions),
                min_decoding_length=0,
                suppress_sequences=[["<pad>"], ["<s>"]],
            )
            yield from (result.hypotheses for result in results)
            if step is not None:
                step(start + len(pieces), len(sources))

    def _check_lengths(self, pieces: list[Pieces], start: int) -> None:
        for number, row in enumerate(pieces, start):
            if len(row) >= self.positions:
                raise RunError(
                    f"{self.name}: sentence {number} has {len(row)} pieces, and in {ENGINE} this model has "
                    f"{self.positions} positions; leave --engine out"
                )

    def _scored(self, translator: Translator, sources: list[str], hypotheses: list[Pieces]) -> Iterator[Translation]:
        traces = translator.trace(sources, hypotheses, ["log_prob"])
        encoded = translator.source_vocabulary.encode(sources)
        for ids, tokens, trace in zip(encoded, hypotheses, traces, strict=True):
            log_probs = trace["log_prob"].values.tolist()
            total = sum(log_probs)
            yield replace(
                translator.hypothesis_decoder.given(ids, tokens),
                token_log_probs=log_probs,
                log_prob=total,
                score=total / penalty(len(tokens), self.search),
            )


def ctranslate2_engine(run: Run, device: str = "cpu") -> SearchEngine:
    """CTranslate2 as the engine that translates with a run; raises RunError for another device than the CPU."""
    if device not in ("cpu", "auto"):
        raise RunError(f"--engine ctranslate2 translates on the CPU, not on {device}; leave one of the two out")

    def translate(
        translator: Translator,
        sources: Sequence[str],
        documents: Sequence[str] | None = None,
        step: Step | None = None,
        record: bool = False,
        **changes: Any,
    ) -> list[Translation]:
        if record:
            raise RunError(f"{ENGINE} keeps no beam-search tree; leave --save-beams or --engine out")
        return CTranslate2Search(run, translator.search.changed(changes)).translate(translator, sources, step)

    return SearchEngine("ctranslate2", translate)
