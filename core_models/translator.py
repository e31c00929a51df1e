"""Translation with a trained system, from text to text; scoring, tracing, n-best lists, prefixes and ensembles.

    translator = core_models.load("runs/transformer");  translator.translate(["the dog sleeps ."])[0].text

Splits text into batches that fit into memory; `decoding.inference` processes a batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from core_models.checkpoint import open_trained
from core_models.config import SearchConfig
from core_models.decoding import Exact, Hypothesis, SearchResult
from core_models.decoding.inference import Inference
from core_models.decoding.inputs import EncodedInputs, Texts
from core_models.decoding.memory_batching import Capacity, TooLarge, batches
from core_models.decoding.outputs import HypothesisDecoder, Translation, TranslatorError
from core_models.devices import usable
from core_models.system import System
from core_models.text.documents import ContextUse, context_entries
from core_models.text.vocabulary import Vocabulary
from core_models.traces import Trace

__all__ = ["Translation", "Translator", "TranslatorError", "load"]

COLDEST, HOTTEST = 1e-4, 1e4  # temperatures: beyond them scores overflow float32, or are all equal


class Translator:
    """Translates and scores with one system, or with several that share their vocabularies (an ensemble).

    Systems are used as they are: call `system.eval()` first, since in training mode dropout would change the scores.
    """

    def __init__(
        self,
        system: System | Sequence[System],
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        search: SearchConfig | None = None,
    ) -> None:
        self.systems = [system] if isinstance(system, System) else list(system)
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, target_vocabulary
        self.search = search or SearchConfig()
        self.hypothesis_decoder = HypothesisDecoder(source_vocabulary, target_vocabulary)
        try:
            self.context = ContextUse.of_ensemble([system.context for system in self.systems])
        except ValueError as error:
            raise TranslatorError(f"these systems cannot be an ensemble: {error}") from None
        self._inference, self._capacity = Inference(self.systems), Capacity()

    @property
    def device(self) -> torch.device:
        return self._inference.device

    def translate(
        self,
        sources: Sequence[str],
        documents: Sequence[str] | None = None,
        beam: int | None = None,
        length_penalty: float | None = None,
        n_best: int | None = None,
        max_length: int | None = None,
        prefix: Sequence[str] | None = None,
        trace: Sequence[str] = (),
        record: bool = False,
        contexts: Texts | None = None,
        context_outputs: Texts | None = None,
        **changes: Any,
    ) -> list[Translation]:
        """Translate sentences in the order of `sources`; defaults come from the run's configuration.

        documents: an id per sentence, for systems that read context; or contexts: for each sentence a list whose entry
        k is the sentence k + 1 before it (None: there is none), with context_outputs, their translations, if these are
        read; otherwise sentences have no context. prefix: the forced beginning of each translation, which may be longer
        than max_length. trace: names or patterns of trace arrays to record for the best hypothesis
        ("decoder.cross_attention", "*"); those that the system does not have are left out. record: store the search
        tree (not if `finished_hypotheses` is "keep"). Other keyword arguments change the SearchConfig. Raises, like all
        methods here, TranslatorError for a request that cannot be fulfilled or does not fit into memory, ConfigError
        for an invalid search, TextError for documents that are not contiguous or context sentences that are too long.
        """
        _check_one_each(
            sources, documents=documents, prefixes=prefix, contexts=contexts, context_outputs=context_outputs
        )
        search_changes = {
            "beam": beam,
            "length_penalty": length_penalty,
            "max_length": max_length,
            "n_best": n_best,
            **changes,
        }
        config = self.search.changed(search_changes)
        self._check_traceable(trace)
        read = self._read(sources, documents, contexts, context_outputs)
        prefixes = self.hypothesis_decoder.prefixes(prefix) if prefix is not None else None
        translations: list[Translation | None] = [None] * len(read)

        def search(rows: list[int]) -> list[SearchResult]:
            forced = [prefixes[row] for row in rows] if prefixes else None
            return self._inference.search(read.batch(rows), forced, config, record)

        for round_rows in itertools.chain(*read.groups(config.batch_tokens, config.beam)):
            for rows, results in self._each("translating", read, config, search, round_rows):
                for row, result in zip(rows, results, strict=True):
                    translations[row] = translation = self.hypothesis_decoder.translation(read.pieces[row], result)
                    read.add_output(row, translation.ids)
        whole = [translation for translation in translations if translation is not None]
        if trace:  # from the piece numbers of the search: the text might be segmented differently
            self._force_all(read, [translation.ids for translation in whole], whole, trace, config)
        return whole

    def batches(
        self, sources: Sequence[str], documents: Sequence[str] | None = None, **changes: Any
    ) -> list[list[int]]:
        """The batches of rows of `sources` that `translate` uses with the same changes to the search, longest first.

        One call per batch, with their `contexts` if there are any, gives bit-identical results to one call with all
        sentences. If earlier translations are read, a batch is several whole documents and needs their ids.
        """
        config = self.search.changed(changes)
        read = self._read(sources, documents)
        if read.is_sequential:
            groups = read.groups(config.batch_tokens, config.beam)
            return [sorted(itertools.chain(*rounds)) for rounds in groups]
        return batches(read.costs(config.beam), config.batch_tokens, config.beam)

    def translate_rows(
        self,
        rows: Sequence[int],
        sources: Sequence[str],
        documents: Sequence[str] | None = None,
        contexts: Texts | None = None,
        context_outputs: Texts | None = None,
        **settings: Any,
    ) -> list[Translation]:
        """Translate some of many sentences, one of `batches`, as `translate` does when it is given all.

        documents, contexts, context_outputs: of all the sentences; with contexts documents are not read. settings: as
        of `translate`; a prefix is of each chosen row.
        """

        def chosen(values: Sequence[Any] | None) -> list[Any] | None:
            return None if values is None else [values[row] for row in rows]

        return self.translate(
            [sources[row] for row in rows],
            chosen(documents) if contexts is None else None,
            contexts=chosen(contexts),
            context_outputs=chosen(context_outputs),
            **settings,
        )

    def contexts(
        self, sources: Sequence[str], documents: Sequence[str] | None, translations: Sequence[str] | None = None
    ) -> tuple[Texts | None, Texts | None]:
        """The contexts and context_outputs of each sentence in its document, so that any rows can be translated.

        Both None if no context is read, or if translations are read but not given.
        """
        reach, outputs = self.context.sentences, self.context.outputs
        if documents is None or not reach or (outputs and translations is None):
            return None, None
        contexts = context_entries(sources, documents, reach, self.context.after)
        if not outputs or translations is None:
            return contexts, None
        return contexts, context_entries(translations, documents, reach)

    def _read(
        self,
        sources: Sequence[str],
        documents: Sequence[str] | None = None,
        contexts: Texts | None = None,
        context_outputs: Texts | None = None,
    ) -> EncodedInputs:
        vocabularies = self.source_vocabulary, self.target_vocabulary
        return EncodedInputs(self.context, vocabularies, sources, documents, contexts, context_outputs)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        documents: Sequence[str] | None = None,
        trace: Sequence[str] = (),
        contexts: Texts | None = None,
        context_outputs: Texts | None = None,
    ) -> list[Translation]:
        """Force-decode given translations: their log-probabilities, token by token, with </s>.

        documents, contexts: as in `translate`; within documents, the context translations are the given ones.
        """
        _check_one_each(
            sources, translations=targets, documents=documents, contexts=contexts, context_outputs=context_outputs
        )
        read = self._read(sources, documents, contexts, context_outputs)
        target_ids = self.target_vocabulary.encode(list(targets))
        scored: list[Translation | None] = [None] * len(read)
        self._force_all(read, target_ids, scored, trace, self.search)
        return [translation for translation in scored if translation is not None]

    def trace(
        self,
        sources: Sequence[str],
        tokens: Sequence[Sequence[str]],
        names: Sequence[str],
        documents: Sequence[str] | None = None,
        contexts: Texts | None = None,
        context_outputs: Texts | None = None,
    ) -> list[Trace]:
        """Force translations given as pieces, `Translation.tokens`, and record arrays by name or pattern.

        Text is not enough: the search may have segmented it differently, or stopped before </s>.
        """
        _check_one_each(
            sources, translations=tokens, documents=documents, contexts=contexts, context_outputs=context_outputs
        )
        read = self._read(sources, documents, contexts, context_outputs)
        translations = [
            self.hypothesis_decoder.given(source, list(words))
            for source, words in zip(read.pieces, tokens, strict=True)
        ]
        self._force_all(read, [translation.ids for translation in translations], translations, names, self.search)
        return [translation.trace or {} for translation in translations]

    def sample(
        self,
        sources: Sequence[str],
        samples: int = 1,
        temperature: float = 1.0,
        top: int | None = None,
        seed: int = 1,
        documents: Sequence[str] | None = None,
        contexts: Texts | None = None,
        context_outputs: Texts | None = None,
    ) -> list[list[Translation]]:
        """Sample translations from the model's distribution, determined by the seed and by all sentences of the call.

        documents, contexts: as in `translate`; within documents, the context translations come from beam search. Always
        in full precision, whatever that of the search.
        """
        _check_one_each(sources, documents=documents, contexts=contexts, context_outputs=context_outputs)
        if samples < 1:
            raise TranslatorError(f"samples {samples}: draw at least one")
        if not COLDEST <= temperature <= HOTTEST:
            raise TranslatorError(f"temperature {temperature:g}: choose one from {COLDEST:g} to {HOTTEST:g}")
        if top is not None and top < 1:
            raise TranslatorError(f"top {top}: draw among at least one word")
        if not 0 <= seed < 1 << 63:
            raise TranslatorError(f"seed {seed}: choose one from 0 to 2^63 - 1")
        read = self._read(sources, documents, contexts, context_outputs)
        if read.is_sequential:
            for row, translation in enumerate(self.translate(sources, documents)):
                read.add_output(row, translation.ids)
        generator = torch.Generator(self.device).manual_seed(seed)
        drawn: list[list[Translation]] = [[] for _ in range(len(read))]

        def draw(rows: list[int]) -> list[list[Hypothesis]]:
            return self._inference.sample(read.batch(rows), self.search, samples, temperature, top, generator)

        room = self.search.model_copy(update={"beam": samples})  # a sample needs as much memory as a beam
        for rows, samples_by_row in self._each("sampling", read, room, draw):
            for row, hypotheses in zip(rows, samples_by_row, strict=True):
                drawn[row] = [
                    self.hypothesis_decoder.hypothesis(read.pieces[row], hypothesis.with_length_penalty(self.search))
                    for hypothesis in hypotheses
                ]
        return drawn

    def exact(
        self,
        source: str,
        bound: float = -math.inf,
        most_nodes: int = 10_000,
        context: Sequence[str | None] | None = None,
        context_output: Sequence[str | None] | None = None,
        **changes: Any,
    ) -> Exact:
        """The most probable translation of one sentence within the length limit, or proof that none exceeds `bound`.

        bound: in nats; log P of the same translation differs in its last bits between two passes, so a translation's
        own is a bound only with some 0.001 less. context, context_output: the preceding sentences, nearest first, and
        their translations. changes: of the SearchConfig, except its precision, which is always full.
        """
        contexts, outputs = ([sentences] if sentences is not None else None for sentences in (context, context_output))
        read, config = self._read([source], None, contexts, outputs), self.search.changed(changes)

        def search(rows: list[int]) -> Exact:
            return self._inference.exact(read.batch(rows), config, bound, most_nodes)

        ((_, exact),) = self._each("searching exactly", read, config, search)
        return exact

    def _each(
        self,
        work: str,
        read: EncodedInputs,
        config: SearchConfig,
        function: Callable[[list[int]], Any],
        rows: Sequence[int] | None = None,
        targets: Sequence[Sequence[int]] | None = None,
    ) -> Iterator[tuple[list[int], Any]]:
        """Call function(rows) for batches that fit into memory; raises TranslatorError if one sentence does not fit.

        targets: the outputs, where they are given; a batch is as long as the longer side.
        """
        numbers, costs = range(len(read)) if rows is None else rows, read.costs(config.beam)
        if targets is not None:
            costs = [max(cost, len(ids) + 1) for cost, ids in zip(costs, targets, strict=True)]
        lengths = [costs[row] for row in numbers]

        def run(indices: list[int]) -> Any:
            return function([numbers[index] for index in indices])

        try:
            for indices, results in self._capacity.run(work, lengths, config.batch_tokens, config.beam, run):
                yield [numbers[index] for index in indices], results
        except TooLarge as error:
            (text,) = self.source_vocabulary.decode([read.pieces[numbers[error.row]]])
            raise TranslatorError(
                f"out of memory while {work} one sentence alone, of {lengths[error.row]} pieces, with beam "
                f"{config.beam} and up to {config.max_length} pieces of output ({error.cause}): split the sentence, "
                f"take a smaller beam or max_length, or a device with more memory: {text[:60]!r}"
            ) from None

    def _force_all(
        self, read: EncodedInputs, targets: list[list[int]], into: list[Any], trace: Sequence[str], config: SearchConfig
    ) -> None:
        """Force all targets; fill in missing translations, and attach the traces to all."""
        self._check_traceable(trace)
        for row, ids in enumerate(targets):
            read.add_output(row, ids)

        def force(rows: list[int]) -> None:
            self._force_rows(rows, read, targets, into, trace, config)

        for _ in self._each("forcing", read, config, force, targets=targets):
            pass

    def _check_traceable(self, trace: Sequence[str]) -> None:
        if isinstance(trace, str):
            raise TranslatorError(f"trace: a list of names is needed, not one string: [{trace!r}]")
        if trace and len(self.systems) > 1:
            raise TranslatorError("an ensemble has no trace; trace each system by itself")

    def _force_rows(
        self,
        rows: list[int],
        read: EncodedInputs,
        targets: list[list[int]],
        into: list[Any],
        trace: Sequence[str],
        config: SearchConfig,
    ) -> None:
        # A hypothesis truncated at its length limit has no </s>: its trace ends with its tokens.
        ends = [len(into[row].tokens) if into[row] is not None else None for row in rows]
        forced = self._inference.force(read.batch(rows, [targets[row] for row in rows]), ends, trace, config.test_loss)
        for row, log_probs, traced in zip(rows, *forced, strict=True):
            if into[row] is None:
                log_prob = sum(log_probs)
                hypothesis = Hypothesis(targets[row], log_prob, log_prob, True, log_probs).with_length_penalty(config)
                into[row] = self.hypothesis_decoder.hypothesis(read.pieces[row], hypothesis)
            if trace:
                into[row].trace = traced


def load(path: str | Path | Sequence[str | Path], device: str = "cpu") -> Translator:
    """Open a run, RUN@step, or several runs as an ensemble, with the search settings of the first.

    device: cpu, cuda, cuda:N, or auto: cuda if there is one. Raises CheckpointError, ConfigError or TranslatorError.
    """
    paths = [path] if isinstance(path, str | Path) else list(path)
    if not paths:
        raise TranslatorError("no run to load: name one, or several as an ensemble")
    device = usable(device)
    opened = [open_trained(reference, device) for reference in paths]
    first = opened[0]
    for other in opened[1:]:
        if (other.source_vocabulary.digest, other.target_vocabulary.digest) != (
            first.source_vocabulary.digest,
            first.target_vocabulary.digest,
        ):
            raise TranslatorError(
                f"{other.folder} and {first.folder} have different vocabularies; an ensemble needs one: train both on "
                "the same prepared data"
            )
    systems = [trained.system for trained in opened]
    return Translator(systems, first.source_vocabulary, first.target_vocabulary, first.config.search)


def _check_one_each(sources: Sequence[str], **others: Sequence[Any] | None) -> None:
    for name, values in {"sources": sources, **others}.items():
        if isinstance(values, str):
            raise TranslatorError(f"{name}: a list of strings is needed, not one string: [{values[:60]!r}]")
    for name, values in others.items():
        if values is not None and len(values) != len(sources):
            raise TranslatorError(f"{len(sources)} sources and {len(values)} {name}: one each is needed")
