"""Attribution of an output word's log-probability to source words and words of the target prefix, in nats.

The explained function is log P of one forced word, or of the whole forced sentence, given the embeddings of the source
and the target words. Captum computes the attributions. Mechanisms may look up words too: lookups of the sentence's own
words through `spec.source_embedding` and `spec.target_embedding` are attributed, others are listed as constants. Works
on piece numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor, nn

from core_models.settings import ConfigError, nearest
from core_models.system import System
from core_models.text.batches import Context, collate
from core_models.text.vocabulary import PAD

Method = Literal["integrated_gradients", "gradient_x_input", "occlusion"]
Baseline = Literal["zero", "padding"]
METHODS: tuple[Method, ...] = get_args(Method)
BASELINES: tuple[Baseline, ...] = get_args(Baseline)

SENTENCE = -1  # instead of an output position: the whole sentence
FIRST_STEPS, MAX_STEPS = 16, 1024
TOLERANCE, MIN_SCALE_NATS = 0.01, 0.5  # errors below TOLERANCE x max(|difference|, MIN_SCALE_NATS) are accepted
POSITIONS_PER_PASS = 4096  # source and target positions in one forward and backward pass

Inputs = tuple[Tensor, Tensor]  # source [R, I, d] and target [R, T, d] embeddings
LogProbFunction = Callable[[Tensor, Tensor, Tensor], Tensor]  # source, target, positions [R] -> [R]


class Constant(NamedTuple):
    """An embedding lookup of a mechanism that is held constant, so nothing is attributed to it.

    position: from 0; None if the lookup is not of a position of the sentence.
    """

    side: Literal["source", "target"]
    position: int | None


class ForcedLogProb:
    """Log-probability of a forced sentence as a function of the embeddings of its words.

    While it runs, hooks on the tables replace the embeddings of the sentence's words by the given vectors. Source and
    target lookups are distinguished by the pass they occur in, so a tied table works too. Mechanisms that look up the
    same words get the same vectors; other lookups, such as context words, are listed in `constants`.
    """

    def __init__(
        self,
        system: System,
        source: Sequence[int],
        target: Sequence[int],
        finished: bool = True,
        context: Context | None = None,
    ) -> None:
        """Prepare the forced sentence: source, target are piece numbers without BOS and EOS.

        finished: the target ends with EOS; context: the context sentences, as in a batch of this sentence only. Raises
        ConfigError for a context if the system reads none or joins it to the source.
        """
        if context is not None and (system.context.joined or not system.context.sentences):
            raise ConfigError("a context was given to a system that reads none or joins it to the source; leave it out")
        self.system = system
        self.batch = replace(collate([list(source)], [list(target)]), context=context).to(system.device)
        self.length = len(target) + finished
        self.constants: set[Constant] = set()

    @property
    def _tables(self) -> tuple[nn.Embedding, nn.Embedding]:
        return self.system.backbone.source_table, self.system.backbone.target_table  # type: ignore[return-value]

    def inputs(self) -> Inputs:
        """The original embeddings: source [1, I, d] with EOS, target [1, T, d] of BOS and all words but the last."""
        source, target = self._tables
        words = self.batch.target_in[:, : self.length]
        return source(self.batch.source).detach(), target(words).detach()

    def baseline(self, kind: Baseline) -> Inputs:
        """Baseline embeddings in the shapes of `inputs`: zero vectors, or the embedding of padding."""
        if kind not in BASELINES:
            raise ConfigError(f"there is no baseline {kind!r}; {nearest(kind, list(BASELINES))}")
        source, target = self.inputs()
        if kind == "zero":
            return torch.zeros_like(source), torch.zeros_like(target)
        rows = [table.weight[PAD].detach() for table in self._tables]
        return rows[0].expand_as(source).clone(), rows[1].expand_as(target).clone()

    def __call__(self, source: Tensor, target: Tensor, positions: Tensor) -> Tensor:
        """Log-probability [R] of the words at `positions` [R], SENTENCE: all, given embeddings [R, I, d], [R, T, d]."""
        rows = len(source)
        parts = ("source", "source_mask", "target_in", "target_mask", "target")
        words = {name: getattr(self.batch, name).expand(rows, -1) for name in parts}
        words.update({name: words[name][:, : self.length] for name in parts[2:]})
        batch = type(self.batch)(
            **words,
            indices=self.batch.indices.expand(rows),
            context=_repeat_context(self.batch.context, rows),
            source_tokens=rows * self.batch.source_tokens,
            target_tokens=rows * self.length,
        )
        with self._replaced_embeddings("source", batch.source, source):
            encoded = self.system.encode(batch)
        with self._replaced_embeddings("target", batch.target_in, target):
            forced = self.system(encoded, batch.target_in, batch.target_mask)
        log_probs = self.system.token_log_probs(forced, batch.target)["main"]
        log_prob = log_probs.gather(1, positions.clamp(min=0)[:, None])[:, 0]
        return torch.where(positions == SENTENCE, log_probs.sum(1), log_prob)

    @contextmanager
    def _replaced_embeddings(self, side: Literal["source", "target"], words: Tensor, vectors: Tensor) -> Iterator[None]:
        """Make the tables return `vectors` for lookups of `words`."""
        # A context sentence may be equal to the source: then only the storage tells them apart.
        check_storage = side == "source" and self.batch.context is not None

        def replace_vectors(table: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
            if inputs[0].shape != words.shape or (check_storage and not _same_storage(inputs[0], words)):
                self.constants.add(Constant(side, None))
                return output
            matches = inputs[0] == words
            self.constants.update(Constant(side, position) for position in (~matches).any(0).nonzero()[:, 0].tolist())
            return torch.where(matches[..., None], vectors.to(output.dtype), output)

        hooks = [table.register_forward_hook(replace_vectors) for table in dict.fromkeys(self._tables)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def _same_storage(first: Tensor, second: Tensor) -> bool:
    return first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()


def _repeat_context(context: Context | None, rows: int) -> Context | None:
    """Repeat the context of one sentence for `rows` copies of it."""
    return None if context is None else context.changed(lambda value: value.expand(rows, *value.shape[1:]))


@dataclass(frozen=True)
class Attribution:
    """Attributions for the output positions in `positions` [R] (SENTENCE: for all together), in nats.

    source [R, I] and prefix [R, T] are sums over the embedding's width. `difference` is f(words) - f(baseline), `error`
    the deviation of the attributions' sum from it; `steps` is 0 for methods without steps.
    """

    method: Method
    baseline: Baseline
    positions: tuple[int, ...]
    source: np.ndarray
    prefix: np.ndarray
    log_prob: np.ndarray
    baseline_log_prob: np.ndarray
    steps: np.ndarray
    constants: tuple[Constant, ...] = ()

    @property
    def difference(self) -> np.ndarray:
        return self.log_prob - self.baseline_log_prob

    @property
    def error(self) -> np.ndarray:
        return self.source.sum(1) + self.prefix.sum(1) - self.difference

    @property
    def complete(self) -> np.ndarray:
        """True [R] where the error is below 1 % of max(|difference|, 0.5 nat)."""
        return np.abs(self.error) < TOLERANCE * np.maximum(np.abs(self.difference), MIN_SCALE_NATS)


def attribute(
    system: System,
    source: Sequence[int],
    target: Sequence[int],
    finished: bool = True,
    positions: Sequence[int] = (SENTENCE,),
    method: Method = "integrated_gradients",
    baseline: Baseline = "zero",
    max_steps: int = MAX_STEPS,
    context: Context | None = None,
) -> Attribution:
    """Attribute the log-probability of output positions to source words and preceding target words, in nats.

    source, target: piece numbers without BOS and EOS. positions: output positions from 0, EOS included, or SENTENCE.
    Integrated gradients (Sundararajan 2017) double their steps until the sum is complete or `max_steps` is reached.
    context: context sentences [1, K, C], held constant. Raises ConfigError for an unknown method or baseline, no
    position or one outside the target, no step, or a context that the system does not read.
    """
    if method not in METHODS:
        raise ConfigError(f"there is no attribution by {method!r}; {nearest(method, list(METHODS))}")
    function = ForcedLogProb(system, source, target, finished, context)
    outside = [position for position in positions if not SENTENCE <= position < function.length]
    if outside or not (function.length and positions):
        raise ConfigError(
            f"the target has {function.length} positions, from 0, </s> included; there is nothing to explain at "
            f"{', '.join(map(str, outside or positions)) or 'none'}"
        )
    if max_steps < 1:
        raise ConfigError(f"max_steps {max_steps}: at least one is needed")
    rows = torch.tensor(list(positions), device=system.device)
    results = attribute_rows(function, function.inputs(), function.baseline(baseline), rows, method, max_steps)
    source_nats, prefix_nats, log_prob, baseline_log_prob, steps = (part.cpu().double().numpy() for part in results)
    constants = tuple(
        sorted(function.constants, key=lambda constant: (constant.side, constant.position is None, constant.position))
    )
    return Attribution(
        method,
        baseline,
        tuple(positions),
        source_nats,
        prefix_nats,
        log_prob,
        baseline_log_prob,
        steps.astype(int),
        constants,
    )


def attribute_rows(
    function: LogProbFunction,
    inputs: Inputs,
    baseline: Inputs,
    positions: Tensor,
    method: Method,
    max_steps: int = MAX_STEPS,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Attributions for every row of `positions` [R]: source [R, I], prefix [R, T], f(words), f(baseline), steps [R].

    inputs, baseline: [1, I, d] and [1, T, d].
    """
    rows = len(positions)
    words, baseline_words = _repeat(inputs, rows), _repeat(baseline, rows)
    with torch.no_grad():
        log_prob, baseline_log_prob = (_evaluate(function, side, positions) for side in (words, baseline_words))
    steps = torch.zeros(rows, dtype=torch.long)
    if method == "integrated_gradients":
        source, prefix, steps = _integrated_gradients(
            function, inputs, baseline, positions, log_prob - baseline_log_prob, max_steps
        )
    else:
        compute = _gradient_x_input if method == "gradient_x_input" else _occlusion
        source, prefix = compute(function, words, baseline_words, positions)
    return source, prefix, log_prob, baseline_log_prob, steps


def _repeat(pair: Inputs, rows: int) -> Inputs:
    return pair[0].expand(rows, -1, -1).contiguous(), pair[1].expand(rows, -1, -1).contiguous()


def _rows_per_pass(inputs: Inputs) -> int:
    """The number of rows in one pass."""
    return max(1, POSITIONS_PER_PASS // (inputs[0].shape[1] + inputs[1].shape[1]))


def _evaluate(function: LogProbFunction, inputs: Inputs, positions: Tensor) -> Tensor:
    size = _rows_per_pass(inputs)
    return torch.cat(
        [function(*part) for part in zip(*(tensor.split(size) for tensor in (*inputs, positions)), strict=True)]
    )


def _integrated_gradients(
    function: LogProbFunction, inputs: Inputs, baseline: Inputs, positions: Tensor, difference: Tensor, max_steps: int
) -> tuple[Tensor, Tensor, Tensor]:
    from captum.attr import IntegratedGradients

    captum = IntegratedGradients(function)
    source, prefix = (difference.new_zeros(len(positions), embeddings.shape[1]) for embeddings in inputs)
    steps = torch.zeros(len(positions), dtype=torch.long)
    tolerance = TOLERANCE * difference.abs().clamp(min=MIN_SCALE_NATS)
    incomplete, n_steps = torch.arange(len(positions), device=positions.device), min(FIRST_STEPS, max_steps)
    while True:
        for part in incomplete.split(_rows_per_pass(inputs)):
            attributions = captum.attribute(
                _repeat(inputs, len(part)),
                _repeat(baseline, len(part)),
                additional_forward_args=(positions[part],),
                n_steps=n_steps,
                internal_batch_size=max(len(part), _rows_per_pass(inputs)),
            )
            source[part], prefix[part] = (embeddings.sum(-1).to(source.dtype) for embeddings in attributions)
        steps[incomplete.cpu()] = n_steps
        error = (source.sum(1) + prefix.sum(1) - difference).abs()
        incomplete = incomplete[(error >= tolerance)[incomplete]]
        if not len(incomplete) or 2 * n_steps > max_steps:
            return source, prefix, steps
        n_steps *= 2


def _gradient_x_input(
    function: LogProbFunction, words: Inputs, baseline_words: Inputs, positions: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradient at the words times (words - baseline): a first-order estimate of occlusion."""
    from captum.attr import Saliency

    size, saliency = _rows_per_pass(words), Saliency(function)
    gradients = [
        saliency.attribute(tuple(pair), abs=False, additional_forward_args=(rows,))
        for *pair, rows in zip(
            *(embeddings.requires_grad_().split(size) for embeddings in words), positions.split(size), strict=True
        )
    ]
    source, prefix = (
        (torch.cat(gradient) * (word.detach() - base)).sum(-1)
        for gradient, word, base in zip(zip(*gradients, strict=True), words, baseline_words, strict=True)
    )
    return source, prefix


def _occlusion(
    function: LogProbFunction, words: Inputs, baseline_words: Inputs, positions: Tensor
) -> tuple[Tensor, Tensor]:
    """The loss of log-probability when one word at a time is replaced by the baseline."""
    from captum.attr import Occlusion

    window = tuple((1, embeddings.shape[-1]) for embeddings in words)
    with torch.no_grad():
        losses = Occlusion(function).attribute(
            words,
            window,
            baselines=baseline_words,
            additional_forward_args=(positions,),
            perturbations_per_eval=max(1, _rows_per_pass(words) // len(positions)),
        )
    return losses[0].mean(-1), losses[1].mean(-1)  # captum repeats the loss over the embedding's width
