"""Typed settings: a mapping, a YAML file or `key=value` text in, a validated section out.

Knows neither torch nor the meaning of the settings. Each error message names the field, the given value and the nearest
valid one.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from core_models.files.atomic_files import atomic_replace
from core_models.files.run_files import CONFIGURATION, read_bytes

MAX_ALIASES = 16  # in a YAML file: an alias may repeat a node with other aliases, so 100 could stand for 10^16 nodes
_ALIAS = re.compile(r"(?:^|[\s\[\]{},:?-])\*")  # possible start of an alias
MAX_LEVELS_IN_C = 500  # nesting of YAML that libyaml may read: far below the stack limit of any thread and of Python
# What fairseq, Hugging Face and others call a setting, where the most similar name here may be another one.
SYNONYMS = {
    "updates": "max_steps", "max_update": "max_steps", "max_updates": "max_steps", "steps": "max_steps",
    "iterations": "max_steps", "lr": "learning_rate", "min_lr": "minimum_learning_rate",
    "update_freq": "accumulate", "grad_accum": "accumulate", "clip_norm": "max_grad_norm",
    "gradient_clip": "max_grad_norm", "eval_steps": "validate_every", "save_steps": "save_every",
    "logging_steps": "log_every", "dtype": "precision", "fp16": "precision", "hidden_size": "d_model",
    "activation_fn": "activation_function", "activation": "activation_function",
    "d_ff": "ffn_dim", "intermediate_size": "ffn_dim", "attention_heads": "heads", "alpha": "length_penalty",
    "num_beams": "beam", "num_return_sequences": "n_best", "max_new_tokens": "max_length",
}  # fmt: skip


class ConfigError(ValueError):
    """A configuration that cannot be used; the message names field, value and remedy."""


class Section(BaseModel):
    """Base class of settings: unknown keys are rejected, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)
    former_names: ClassVar[Mapping[str, str]] = {}  # current name by former name
    former_values: ClassVar[Mapping[str, Mapping[str, str]]] = {}  # the same for values, by current name of the setting

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, given: Any) -> Any:
        return cls.by_current_names(given)

    @classmethod
    def by_current_names(cls, given: Any) -> Any:
        """Replace former names and values by the current ones; anything but a mapping is returned unchanged.

        Raises ConfigError if a setting is given by both names.
        """
        if not isinstance(given, Mapping):
            return given
        renamed = {cls.former_names.get(name, name): value for name, value in given.items()}
        if len(renamed) < len(given):
            former, name = next((old, new) for old, new in cls.former_names.items() if old in given and new in given)
            raise ConfigError(f"{former} is the former name of {name}; give one of them")
        for name in cls.former_values.keys() & renamed.keys():
            if isinstance(renamed[name], str):
                renamed[name] = cls.former_values[name].get(renamed[name], renamed[name])
        return renamed


Model = TypeVar("Model", bound=BaseModel)
MOST_MESSAGES = 5  # about the settings of one configuration


def parse(kind: type[Model], given: Mapping[str, Any], where: str = "configuration") -> Model:
    """Validate a mapping; raises ConfigError with a line for each of the first invalid settings."""
    non_text_keys = [key for key in given if not isinstance(key, str)]
    if non_text_keys:
        raise ConfigError(f"{where}: the key {_shortened(non_text_keys[0])} is not text; put quotes around it")
    try:
        section = kind.model_validate(dict(given))
    except ValidationError as error:
        messages = [_message(kind, problem, where) for problem in error.errors()]
        more = [f"{where}: and {len(messages) - MOST_MESSAGES} more"] if len(messages) > MOST_MESSAGES else []
        raise ConfigError("\n".join(messages[:MOST_MESSAGES] + more)) from None
    for path, value in _too_large(given):
        raise ConfigError(f"{where}: {path} does not fit into 64 bits (given: {_shortened(value)})")
    return section


def _too_large(given: object, path: str = "") -> Iterator[tuple[str, int]]:
    """The integers that do not fit into 64 bits, with their paths."""
    if isinstance(given, int):
        if not -(1 << 63) <= given < 1 << 63:
            yield path, given
    elif isinstance(given, Mapping):
        for name, value in given.items():
            yield from _too_large(value, f"{path}.{name}".lstrip("."))
    elif isinstance(given, list | tuple):
        for value in given:
            yield from _too_large(value, path)


def nearest(name: str, known: list[str] | tuple[str, ...]) -> str:
    """'did you mean x?', or all known names; `SYNONYMS` before similar names."""
    synonym = SYNONYMS.get(name)
    close = [synonym] if synonym in known else difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _message(kind: type[BaseModel], problem: Mapping[str, Any], where: str) -> str:
    path = [part for part in problem["loc"] if isinstance(part, str)]
    name = ".".join(path) or "(all)"
    if problem["type"] == "extra_forbidden":
        fields = _section_at(kind, path[:-1]).model_fields
        known = [field.alias or name for name, field in fields.items()]
        return f"{where}: unknown key {name!r}; {nearest(path[-1], known)}"
    if problem["type"] == "missing":
        return f"{where}: {name} is missing"
    message = problem["msg"].removeprefix("Value error, ")
    return (
        f"{where}: {name}: {message[0].lower()}{message[1:]} (given: {_shortened(problem.get('input'))})"
        if path
        else f"{where}: {message}"
    )


def _shortened(value: Any) -> str:
    """The repr of a value, shortened: a value may be of any size, also by nested aliases."""
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = brief.maxlong = 80
    return brief.repr(value)


def _section_at(kind: type[BaseModel], path: list[str]) -> type[BaseModel]:
    for part in path:
        field = kind.model_fields.get(part)
        inner = field.annotation if field else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            kind = inner
    return kind


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping; raises ConfigError with file and line."""
    try:
        text = read_bytes(path, CONFIGURATION).decode()
        _check_aliases(text)
        content = load_yaml(text)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file; check the path") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2020-13-45
        raise ConfigError(f"{path}: not readable as YAML: {_explain_yaml(error)}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must be a mapping of keys to values, not {type(content).__name__}")
    return content


def _check_aliases(text: str) -> None:
    if len(_ALIAS.findall(text)) <= MAX_ALIASES:
        return
    aliases = sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader))
    if aliases > MAX_ALIASES:
        raise ValueError(f"{aliases} aliases, but at most {MAX_ALIASES} are allowed; write out their values")


def load_yaml(text: str) -> Any:
    """Parse YAML into plain types; raises yaml.YAMLError, ValueError (an impossible date) or RecursionError.

    libyaml, if installed, is ten times as fast, but deep nesting overflows its stack and kills the process. So texts
    that may be nested deeply, and those that libyaml rejects, are parsed in Python, which raises exceptions.
    """
    fast = getattr(yaml, "CSafeLoader", None)
    # An upper bound: block style nests at most two levels per column, flow style one per bracket.
    levels = 2 * max(map(len, text.split("\n"))) + text.count("[") + text.count("{")
    if fast is not None and levels <= MAX_LEVELS_IN_C:
        with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):
            return yaml.load(text, fast)
    return yaml.safe_load(text)


def settings_in(text: str) -> list[str]:
    """Split `key=value,key=value` at its commas, except those within [brackets]."""
    return [part.strip() for part in re.split(r",(?![^\[\]]*\])", text) if part.strip()]


def read_value(text: str, where: str) -> Any:
    """A value of the command line, read as YAML; raises ConfigError. A lone "-" is a name, not a list of nothing."""
    try:
        return text if text.strip() == "-" else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: the value is not readable as YAML ({_explain_yaml(error)}); quote it") from None


def _explain_yaml(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())


def write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Write atomically, with the keys in their given order."""
    with atomic_replace(path) as unfinished:
        unfinished.write_text(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True), encoding="utf-8")
