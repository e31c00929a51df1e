"""The part of a run's configuration that says which model of another library the run points at."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from core_models.settings import Section


class ForeignModel(Section):
    """A model folder of Hugging Face, which is not copied."""

    path: str = Field(description="folder of the model, absolute")
    model_type: str = Field(description="family, as in its config.json")
    digest: str = Field(description="SHA-256 over its configuration, tokenizer and weights")
    source_language: str = Field("", description="for a model of several languages, by its own code")
    target_language: str = Field("", description="for a model of several languages, by its own code")
    template: str = Field("", description="text around {source}, for a decoder-only model")
    dtype: Literal["float32", "bfloat16", "float16"] = Field("float32", description="type of the weights in memory")
