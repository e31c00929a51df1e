"""What a run is made of, validated: model, training, search; and where its files lie. Builds nothing.

Knows no torch; how settings are read and refused, `settings` knows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from core_models.config_format import FORMAT, upgraded
from core_models.foreign_config import ForeignModel
from core_models.settings import Section, parse, read_yaml

CONFIG = "config.yaml"  # the file that makes a folder a run
WEIGHTS = "weights.safetensors"
TRAINING_LOG = "training.jsonl"
# Numbers above these are slips or attacks: what reads them would overflow before memory ends.
LARGEST = (1 << 31) - 1  # of a number that counts: libraries in C count no further
MOST_UNITS = 1 << 20  # of anything that a tensor has an axis of
MOST_PARTS = 1 << 10  # layers, heads


# A recurrent decoder takes `d_model` as its hidden size.
PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 64, "encoder_layers": 1, "decoder_layers": 2, "heads": 2, "ffn_dim": 256, "embedding": 64},
    "demo": {"d_model": 128, "encoder_layers": 2, "decoder_layers": 2, "heads": 4, "ffn_dim": 512, "embedding": 128},
    "small": {
        "d_model": 256,
        "encoder_layers": 3,
        "decoder_layers": 3,
        "heads": 4,
        "ffn_dim": 1024,
        "embedding": 256,
    },
    "base": {
        "d_model": 512,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "heads": 8,
        "ffn_dim": 2048,
        "embedding": 512,
    },
    "big": {
        "d_model": 1024,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "heads": 16,
        "ffn_dim": 4096,
        "embedding": 512,
    },
    # The recurrent systems of Zheng 2018; Table 6 counts them with 30,000 words a side.
    "paper-pfrnn": {
        "backbone": "rnnsearch",
        "d_model": 1024,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "heads": 16,
        "ffn_dim": 4096,
        "embedding": 512,
        "attention_width": 2048,
        "tie_embeddings": "none",
    },
}
# What only a recurrent backbone reads.
RECURRENT = ("rnn_cell", "encoder", "deep_layers", "attention_width", "summary", "decoder_init")


class ModelConfig(Section):
    """A system: a backbone and its mechanisms. A preset fills the sizes that are not given."""

    former_names: ClassVar = {
        "width": "d_model", "feed_forward": "ffn_dim", "tied": "tie_embeddings", "positions": "position_embedding",
        "cell": "rnn_cell", "first_state": "decoder_init",
    }  # fmt: skip

    backbone: Literal["transformer", "rnnsearch", "foreign", "foreign_decoder"] = Field(
        "transformer", description="foreign, foreign_decoder: of opened models alone"
    )
    preset: Literal["tiny", "demo", "small", "base", "big", "paper-pfrnn"] | None = Field(
        "small", description="fills in the sizes that are not given"
    )
    d_model: int = Field(gt=0, le=MOST_UNITS, description="width of the model; of a recurrent decoder its hidden size")
    embedding: int = Field(gt=0, le=MOST_UNITS, description="width of word embeddings; a Transformer's equal d_model")
    encoder_layers: int = Field(gt=0, le=MOST_PARTS, description="layers of the encoder")
    decoder_layers: int = Field(gt=0, le=MOST_PARTS, description="layers of the decoder")
    heads: int = Field(gt=0, le=MOST_PARTS, description="attention heads of a layer; they divide d_model")
    ffn_dim: int = Field(gt=0, le=MOST_UNITS, description="inner width of a Transformer's feed-forward layers")
    norm: Literal["pre", "post"] = Field("pre", description="layer norm before or after each sublayer")
    tie_embeddings: Literal["all", "target", "none"] = Field(
        "all",
        description="all: source, target and output share one table, which needs a joint vocabulary; target: target "
        "and output do",
    )
    position_embedding: Literal["sinusoidal", "learned"] = Field("sinusoidal", description="of a Transformer")
    max_positions: int = Field(1024, gt=0, le=MOST_UNITS, description="number of learned positions")
    dropout: float = Field(0.1, ge=0, lt=1, description="of embeddings and of what each sublayer adds")
    attention_dropout: float = Field(0.1, ge=0, lt=1, description="of a Transformer's attention weights")
    activation_dropout: float = Field(0.0, ge=0, lt=1, description="inside a Transformer's feed-forward layers")
    activation_function: Literal["relu", "gelu", "silu"] = Field(
        "relu", description="of a Transformer's feed-forward layers"
    )
    rnn_cell: Literal["gru", "lstm"] = Field(
        "gru", description="of a recurrent system's encoder and decoder; PAST and FUTURE layers are GRUs with either"
    )
    encoder: Literal["recurrent", "transformer"] = Field("recurrent", description="of a recurrent decoder")
    deep_layers: int = Field(
        0, ge=0, le=MOST_PARTS, description="layers above a recurrent decoder's first, without attention"
    )
    attention_width: int | None = Field(
        None, gt=0, le=MOST_UNITS, description="of a recurrent system's attention; its width"
    )
    summary: Literal["mean", "end_states"] = Field("mean", description="what summarises the source (D5)")
    decoder_init: Literal["summary", "zero"] = Field("summary", description="of a recurrent decoder (D6)")
    mechanisms: tuple[dict[str, dict[str, Any]], ...] = Field((), description="names with their options")

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        given = cls.by_current_names(given)
        if not isinstance(given, Mapping):
            return given
        preset = given.get("preset", None if PRESETS["small"].keys() <= given.keys() else "small")
        # A preset that is none is refused by its field; the sizes of another keep that refusal alone.
        known = preset if isinstance(preset, str) and preset in PRESETS else "small"
        sizes = {} if preset is None else PRESETS[known]
        return {
            **sizes,
            **{key: value for key, value in given.items() if value is not None},
            "preset": preset,
        }

    @model_validator(mode="after")
    def _consistent(self) -> ModelConfig:
        if self.backbone == "transformer" and self.d_model % self.heads:
            raise ValueError(f"heads: {self.heads} does not divide d_model {self.d_model}")
        if self.backbone == "transformer" and self.d_model % 2:
            raise ValueError(f"d_model: {self.d_model} must be even (sine and cosine positions)")
        if self.backbone == "transformer":
            for name in RECURRENT:
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name}: only backbone rnnsearch reads it; leave it out, or take that backbone")
        if self.encoder == "transformer":
            self._check_mixed()
        for mechanism in self.mechanisms:
            if len(mechanism) != 1:
                raise ValueError(f"mechanisms: each entry is one name with its options, not {mechanism!r}")
        return self

    @property
    def learned_positions(self) -> float:
        """The number of learned positions; infinity with sinusoids."""
        return self.max_positions if self.position_embedding == "learned" else math.inf

    @property
    def room(self) -> tuple[float, float]:
        """The learned positions that a source and a target have to fit, with EOS; infinity where there are none."""
        encoder = "transformer" in (self.backbone, self.encoder)
        learned = self.learned_positions
        return learned if encoder else math.inf, learned if self.backbone == "transformer" else math.inf

    def _check_mixed(self) -> None:
        """A recurrent decoder on a Transformer's encoder."""
        if self.embedding != self.d_model or self.d_model % self.heads or self.d_model % 2:
            raise ValueError(
                f"encoder: a transformer needs embeddings as wide as itself, an even d_model and heads that divide it; "
                f"here are embedding {self.embedding}, d_model {self.d_model} and {self.heads} heads"
            )
        if self.summary == "end_states":
            raise ValueError("summary: a transformer encoder has no end states; take mean")


Decay = Annotated[float, Field(ge=0, lt=1)]


class EarlyStopping(Section):
    metric: Literal["loss", "bleu", "chrf", "adequacy"] = Field(
        "loss", description="score of the dev set; the weights of the best validation are the run's"
    )
    patience: int = Field(10, gt=0, le=LARGEST, description="validations without a better score before training stops")


class AdequacyLearning(Section):
    """Policy gradients towards adequate translations beside the likelihood (Kong 2019, "aol"), of any system.

    Not a faithful reproduction: of the paper its abstract is known here, and what Zheng 2019 says of it.
    """

    weight: float = Field(
        0.0, ge=0, description="of a sentence's expected reward beside its loss in nats; 0: it is not trained towards"
    )
    samples: int = Field(1, gt=0, le=LARGEST, description="translations that are drawn of each sentence, and rewarded")

    @model_validator(mode="after")
    def _read(self) -> AdequacyLearning:
        if self.samples != 1 and not self.weight:
            raise ValueError("samples: does nothing without a weight; leave it out, or give adequacy.weight")
        return self


class TrainingConfig(Section):
    former_names: ClassVar = {
        "clip": "max_grad_norm", "normalise": "loss_normalization", "train": "trainable_params",
        "init_only": "init_params",
    }  # fmt: skip

    seed: int = Field(1, ge=0, lt=1 << 63, description="of initial weights, batches and dropout")
    max_steps: int | None = Field(None, gt=0, le=LARGEST, description="updates")
    max_epochs: int | None = Field(
        None, gt=0, le=LARGEST, description="`workbench train …` takes 10 where neither this nor max_steps is given"
    )
    max_minutes: float | None = Field(None, gt=0, description="minutes that one call lasts; the run can be resumed")
    batch_tokens: int = Field(
        4096,
        gt=0,
        le=LARGEST,
        description="padded tokens of a batch, of one process: the larger of the two sides, and context",
    )
    count_context: bool = Field(
        True,
        description="batch_tokens counts context; false: systems that read it get the batches of those that do not",
    )
    accumulate: int = Field(1, gt=0, le=LARGEST, description="batches whose gradients are summed before a step")
    precision: Literal["auto", "float32", "bfloat16", "float64"] = Field(
        "auto",
        description="auto: bfloat16 autocast where timed steps are 1.2 times as fast as in float32; else float32",
    )
    tf32: bool = Field(
        True, description="on CUDA devices: products of float32 with 10 bits of mantissa, by tensor cores"
    )
    compile: bool | Literal["routing"] = Field(
        False,
        description="routing: compile the routing of layers and heads; true: Transformer blocks too, with batches "
        "of few shapes, for GPUs; needs a compiler",
    )
    optimizer: Literal["adamw"] = Field("adamw", description="Adam with decoupled weight decay")
    learning_rate: float = Field(
        7e-4, gt=0, le=10, description="peak, after warm-up; about as far as Adam moves a weight in a step"
    )
    schedule: Literal["inverse_sqrt", "fixed", "plateau", "cosine"] = Field(
        "inverse_sqrt",
        description="of the learning rate after warm-up; cosine: to the end of training; plateau: lowered where the "
        "dev set no longer gains",
    )
    warmup: int = Field(4000, ge=0, le=LARGEST, description="steps of linear warm-up")
    plateau_factor: float = Field(0.5, gt=0, lt=1, description="of schedule plateau: what the rate is multiplied by")
    plateau_patience: int = Field(
        3, ge=0, le=LARGEST, description="of schedule plateau: validations without a better score that it waits for"
    )
    minimum_learning_rate: float = Field(0.0, ge=0, description="lower limit of every schedule after its warm-up")
    betas: tuple[Decay, Decay] = Field((0.9, 0.98), description="of Adam")
    weight_decay: float = Field(0.0, ge=0, description="of Adam")
    max_grad_norm: float = Field(1.0, ge=0, description="largest gradient norm; 0 switches clipping off")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="probability that is taken from the right piece")
    loss_normalization: Literal["tokens", "sentences"] = Field(
        "tokens", description="what a batch's loss is divided by"
    )
    subword_alpha: float | None = Field(
        None,
        gt=0,
        description="of subword sampling: of a unigram vocabulary its sharpness, of BPE the share of merges left out, "
        "at most 1; off when missing",
    )
    context_sentences: int = Field(
        0,
        ge=0,
        le=LARGEST,
        description="0: what the system reads; another number must be the system's own context_sentences",
    )
    trainable_params: tuple[str, ...] = Field(
        (),
        description="patterns of the parameters that train, mechanisms.* for instance; the others stay as in init_from",
    )
    validate_every: int = Field(1000, gt=0, le=LARGEST, description="steps")
    save_every: int | None = Field(
        None, gt=0, le=LARGEST, description="steps between states to resume from, besides validations"
    )
    log_every: int = Field(50, gt=0, le=LARGEST, description="steps")
    keep_last: int = Field(2, ge=0, le=LARGEST, description="latest checkpoints kept for averaging")
    keep_every: int | None = Field(
        None, gt=0, le=LARGEST, description="steps between checkpoints that are kept while this setting stays"
    )
    early_stopping: EarlyStopping = EarlyStopping()
    adequacy: AdequacyLearning = AdequacyLearning()
    init_from: str | None = Field(None, description="RUN or RUN@STEP whose weights training begins from; `--init-from`")
    init_params: tuple[str, ...] = Field(
        (),
        description="patterns of the tensors that are taken from there, backbone.encoder* for instance; all that fit",
    )
    tensorboard: bool = Field(
        False, description="mirror the training log in TensorBoard; needs the extra `tensorboard`"
    )

    @model_validator(mode="after")
    def _ends(self) -> TrainingConfig:
        if not (self.max_steps or self.max_epochs):
            raise ValueError("training: give max_steps or max_epochs, else it never ends")
        if self.minimum_learning_rate > self.learning_rate:
            raise ValueError(
                f"minimum_learning_rate: {self.minimum_learning_rate:g} is above the learning_rate of "
                f"{self.learning_rate:g}; lower it"
            )
        if self.trainable_params and self.init_from is None:
            raise ValueError(
                "trainable_params: what does not train would stay as it was drawn; name the run it is from: init_from"
            )
        if self.init_params and self.init_from is None:
            raise ValueError("init_params: does nothing without init_from; name the run whose tensors these are")
        if self.compile is True and self.adequacy.weight:
            raise ValueError("compile: batches are filled up, and adequacy.weight samples for real sentences; drop one")
        if self.adequacy.weight and self.init_from is None:
            raise ValueError(
                "adequacy.weight: what an untrained system draws is noise, and of its rewards nothing can be learned; "
                "name a trained run to begin from: init_from"
            )
        return self

    def can_continue(self, step: int, epoch: int, without_gain: int) -> bool:
        """Return True if a run that has ended may continue, since its settings were raised.

        step, epoch: updates and whole epochs that are done. without_gain: validations since the best score.
        """
        steps = self.max_steps is None or step < self.max_steps
        epochs = self.max_epochs is None or epoch < self.max_epochs
        return steps and epochs and without_gain < self.early_stopping.patience


# What becomes of the distributions of PAST and FUTURE losses (D8): what the system's own test_loss says; they are left
# out; or they are averaged into the system's own at every step.
TestLoss = Literal["as_built", "none", "step_mean_prob"]


class SearchConfig(Section):
    former_names: ClassVar = {"finished": "finished_hypotheses"}
    former_values: ClassVar = {"finished_hypotheses": {"leave": "drop", "stay": "keep"}}

    beam: int = Field(4, gt=0, le=100_000, description="hypotheses kept at each step; 1 is greedy search")
    # At most 6: a million pieces to this power is in float32 yet.
    length_penalty: float = Field(0.6, ge=0, le=6, description="exponent of the length; 0: no penalty")
    penalty: Literal["gnmt", "power"] = Field(
        "power",
        description="the divisor of log P; power: length^length_penalty; gnmt: ((5 + length) / 6)^length_penalty",
    )
    penalty_offset: int = Field(
        0,
        ge=0,
        le=LARGEST,
        description="added to the length in that divisor: 1 for models whose forced language tag `generate` counts",
    )
    max_length: int = Field(256, gt=0, le=1_000_000, description="longest output, in pieces")
    length_factor: float = Field(
        2.0, gt=0, le=1000, description="an output is at most this many times its source plus length_offset"
    )
    length_offset: int = Field(20, ge=0, le=1_000_000, description="pieces")
    n_best: int = Field(
        1,
        gt=0,
        le=LARGEST,
        description="hypotheses that are stored of a sentence, at most: finished ones, or the best cut one",
    )
    finished_hypotheses: Literal["drop", "keep"] = Field(
        "drop",
        description="drop: they leave the beam; keep: they stay among its best, as in the papers' toolkits; a "
        "hypothesis cut at max_length may then rank first",
    )
    batch_tokens: int = Field(4096, gt=0, le=LARGEST, description="beam x length that are decoded together")
    precision: Literal["full", "bfloat16", "int8"] = Field(
        "full", description="of the products: as the weights are, bfloat16 autocast, or 8-bit integers (CPU)"
    )
    compile: bool = Field(
        False,
        description="batches of few shapes and a compiled step, whose shapes do not grow with the output; for GPUs: on "
        "CPUs it is slower",
    )
    test_loss: TestLoss = Field(
        "as_built",
        description="distributions of PAST and FUTURE losses; as_built: as the system's own test_loss says; none: left "
        "out; step_mean_prob: averaged into the system's own",
    )

    @model_validator(mode="after")
    def _enough(self) -> SearchConfig:
        if self.n_best > self.beam:
            raise ValueError(f"n_best: {self.n_best} hypotheses cannot come from a beam of {self.beam}")
        if self.compile and self.finished_hypotheses == "keep":
            raise ValueError("compile: a search that keeps finished hypotheses is not compiled; leave one of them out")
        return self

    def changed(self, changes: Mapping[str, Any]) -> SearchConfig:
        """The same search with these settings, by present or former names, where they are not None."""
        named = self.by_current_names({key: value for key, value in changes.items() if value is not None})
        return parse(SearchConfig, {**self.model_dump(), **named}, where="search")


class RunConfig(Section):
    """All that one trained system is made of."""

    format: Literal[4] = Field(FORMAT, description="of this file; older ones are read as what they meant")
    name: str
    system: str = Field("", description="catalogue name this configuration came from")
    data: str = Field(description="folder written by `workbench data prepare`, relative to the run or absolute")
    model: ModelConfig
    training: TrainingConfig
    search: SearchConfig = SearchConfig()
    foreign: ForeignModel | None = None

    @field_validator("data")
    @classmethod
    def _a_path(cls, data: str) -> str:
        if "\0" in data:
            raise ValueError("this is no path of a folder")
        return data

    vocabulary: dict[str, str] = Field({}, description="SHA-256 of the vocabularies, by side, written when it begins")

    def data_folder(self, run: Path) -> Path:
        """The prepared data of the run in folder `run`: a relative path is relative to it."""
        return Path(self.data) if Path(self.data).is_absolute() else (run / self.data).resolve()


def split_reference(reference: str | Path) -> tuple[Path, str]:
    """RUN or RUN@step as (folder, step): RUN@1250 is the checkpoint of a step, RUN@average-5 one by its name."""
    text = str(reference)
    folder, sign, step = text.rpartition("@")
    if not sign or "/" in step or os.path.exists(text):  # a step is a name, never a path
        return Path(text), ""
    return Path(folder), step


def weights_path(folder: Path, step: str = "") -> Path:
    """Where the weights of a run, or of one of its checkpoints, lie."""
    if not step:
        return folder / WEIGHTS
    name = f"step-{step.lstrip('0').zfill(6)}" if step.isdecimal() else step
    return folder / "checkpoints" / f"{name}.safetensors"


def read_config(folder: Path) -> RunConfig:
    """The configuration of a run folder; raises ConfigError naming the file and the key."""
    return as_config(read_yaml(folder / CONFIG), str(folder / CONFIG))


def as_config(content: Mapping[str, Any], where: str) -> RunConfig:
    """The configuration that a run's file says, of whatever format; raises ConfigError naming `where` and the key."""
    return parse(RunConfig, upgraded(content, where), where=where)
