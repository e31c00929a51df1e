"""The options of figures: models whose fields have a type, a default, bounds and a description.

Options come as text from a command line, as JSON values from a recipe, and as typed values from a page or a notebook:
`read` parses all of them. The fields also give the allowed values in words (`option_rows`) and the choices on a page
(`choices`). Knows no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from core_models.settings import Section
from workbench.store.runs import RunError

MAX_CELLS = 150_000  # of all maps of a figure


class FigureOptions(Section):
    """Base of the options of figures; also for figures without options."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    @field_validator("*", mode="before")
    @classmethod
    def _reject_booleans(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false where they are not allowed: Pydantic would convert true to 1."""
        if isinstance(value, bool) and not any(
            schema.get("type") == "boolean" for schema in _value_schemas(cls, info.field_name)
        ):
            raise ValueError(allowed(cls, str(info.field_name)))
        return value

    def test_sets(self, test: str) -> tuple[str, ...]:
        """The test sets that a figure shows: the one of its request, unless an option names others."""
        return (test,)


Model = TypeVar("Model", bound=FigureOptions)


def split_list(value: object) -> object:
    """Split a comma-separated text; a single value becomes a list of one, None or "" an empty list."""
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list | tuple) else [value]


Names = Annotated[tuple[str, ...], BeforeValidator(split_list)]
Places = Annotated[tuple[NonNegativeInt, ...], BeforeValidator(split_list)]
Sentences = PositiveInt | Literal["all"]
Limit = Literal["auto"] | Annotated[float, Field(gt=0, le=1)]
AUTO_LIMIT: Any = Field("auto", description="The weight that has the last color; auto: the largest, outliers left out")
MeanOrNumber = PositiveInt | Literal["mean"]


class CorpusOptions(FigureOptions):
    """The number of sentences of a test set in a figure."""

    sentences: Sentences = Field(200, description="How many sentences, the first ones of the test set")


class ForcedOptions(FigureOptions):
    """The translation of a sentence that is forced through the runs."""

    target: Literal["own", "reference", "typed"] = Field("own", description="The translation that is forced")
    text: str = Field("", description="The translation, where the target is typed")

    @property
    def forced_target(self) -> tuple[str, str]:
        """The kind of translation to be forced (`forced_decoding.TARGETS`), and the text if it is typed."""
        return self.target, self.text

    @property
    def target_text(self) -> str:
        """The forced translation in words."""
        return {"own": "the own output", "reference": "the reference", "typed": "a typed text"}[self.target]


def number(value: int | str) -> int | None:
    """The value of an option that is a number or a word such as mean or all; None for the word."""
    return None if isinstance(value, str) else value


def number_up_to(options: FigureOptions, option: str, last: int) -> int | None:
    """The `number` of an option by its name; raises RunError for a number beyond `last`."""
    value = number(getattr(options, option))
    if value is not None and value > last:
        raise RunError(f"{option} {value}: {allowed(type(options), option)} to {last}")
    return value


def read(model: type[Model], options: Mapping[str, Any], name: str) -> Model:
    """Parse the options of a figure or an analysis. Raises RunError for unknown options and invalid values."""
    unknown = sorted(set(options) - set(model.model_fields))
    if unknown:
        known = ", ".join(model.model_fields) or "none"
        raise RunError(f"there is no option {unknown[0]!r} of {name}; there is {known}")
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        problem = error.errors()[0]
        if not problem["loc"]:
            raise RunError(problem["msg"].removeprefix("Value error, ")) from None
        option = str(problem["loc"][0])
        has_own_message = problem["type"] == "value_error"
        message = problem["msg"].removeprefix("Value error, ") if has_own_message else allowed(model, option)
        raise RunError(f"{option} {options[option]!r}: {message}") from None


def changed_options(options: FigureOptions) -> dict[str, Any]:
    """The options with other values than their defaults, as JSON values."""
    return options.model_dump(mode="json", exclude_defaults=True)


def choices(model: type[FigureOptions], option: str) -> list[str]:
    """The allowed words of an option, in their order."""
    return [
        word
        for schema in _value_schemas(model, option)
        for word in (schema.get("enum") or [schema.get("const")])
        if word
    ]


def default(model: type[FigureOptions], option: str) -> Any:
    """The default of an option."""
    return model.model_fields[option].default


def values(model: type[FigureOptions], option: str) -> str:
    """The allowed values of an option in words."""
    descriptions = [description for schema in _value_schemas(model, option) if (description := _type_text(schema))]
    return ", or ".join(filter(None, [", ".join(choices(model, option)), *descriptions]))


def allowed(model: type[FigureOptions], option: str) -> str:
    """The allowed values of an option as an instruction for a message."""
    verb = "write" if any(map(_type_text, _value_schemas(model, option))) else "choose"
    return f"{verb} {values(model, option)}"


def option_rows(model: type[FigureOptions]) -> list[list[str]]:
    """A row for each option: name, allowed values, default and description."""
    return [
        [name, values(model, name), _default_text(field.default), field.description or ""]
        for name, field in model.model_fields.items()
    ]


def _default_text(value: object) -> str:
    """A default as written on the command line; a dash for none."""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
    return (text.lower() if isinstance(value, bool) else text) or "–"


@cache
def _schema(model: type[FigureOptions]) -> dict[str, Any]:
    return model.model_json_schema()["properties"]


def _value_schemas(model: type[FigureOptions], option: str | None) -> list[dict[str, Any]]:
    """The JSON Schemas of the types that a field accepts."""
    schema = _schema(model)[str(option)]
    return schema.get("anyOf", [schema])


def _type_text(schema: Mapping[str, Any]) -> str:
    """A type of value in words; "" for fixed words (see `choices`) and for null."""
    match schema.get("type"):
        case "boolean":
            return "true or false"
        case "integer" | "number":
            return f"a number{_bounds(schema)}"
        case "array":
            items = schema.get("prefixItems") or [schema["items"]]
            elements = "names" if items[0]["type"] == "string" else f"numbers{_bounds(items[0])}"
            return f"{'two ' if len(items) == 2 else ''}{elements}, with commas between"
        case "object":
            return "NAME=NUMBER with commas between"
        case "string" if "enum" not in schema and "const" not in schema:
            return "a text"
    return ""


def _bounds(schema: Mapping[str, Any]) -> str:
    """The bounds of a number in words. An exclusive minimum of 0 for integers becomes "from 1"."""
    names = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "up to", "exclusiveMaximum": "below"}
    if schema["type"] == "integer" and "exclusiveMinimum" in schema:
        schema = {"minimum": schema["exclusiveMinimum"] + 1}
    bounds = [f"{word} {schema[name]:g}" for name, word in names.items() if name in schema]
    return f" {', '.join(bounds)}" if bounds else ""
