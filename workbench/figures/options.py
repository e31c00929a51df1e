"""The options of figures: models whose fields have a type, a default, bounds and a description.

A command line gives text, a stored recipe what JSON has, a page and a notebook typed values: `read` makes one model of
all three. The same fields say what may be written (`described`) and what a page offers (`choices`). Knows no figure.
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

MOST_CELLS = 150_000  # of all maps of a figure


class FigureOptions(Section):
    """Options of a figure; one without any takes these."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    @field_validator("*", mode="before")
    @classmethod
    def _yes_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false where neither may be written: Pydantic would take true for 1."""
        if isinstance(value, bool) and not any(kind.get("type") == "boolean" for kind in _kinds(cls, info.field_name)):
            raise ValueError(allowed(cls, str(info.field_name)))
        return value

    def test_sets(self, test: str) -> tuple[str, ...]:
        """The test sets that a figure is of: the one of its request, unless an option names others."""
        return (test,)


Model = TypeVar("Model", bound=FigureOptions)


def listed(value: object) -> object:
    """The parts of a text with commas between; a single value is a list of one, nothing an empty one."""
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value if isinstance(value, list | tuple) else [value]


Names = Annotated[tuple[str, ...], BeforeValidator(listed)]
Places = Annotated[tuple[NonNegativeInt, ...], BeforeValidator(listed)]
Sentences = PositiveInt | Literal["all"]
Shade = Annotated[float, Field(gt=0, le=1)]
MeanOrNumber = PositiveInt | Literal["mean"]


class CorpusOptions(FigureOptions):
    """Of how many sentences of a test set a figure is."""

    sentences: Sentences = Field(200, description="How many sentences, the first ones of the test set")


class ForcedOptions(FigureOptions):
    """Which translation of a sentence is forced through the runs."""

    target: Literal["own", "reference", "typed"] = Field("own", description="The translation that is forced")
    text: str = Field("", description="The translation, where the target is typed")

    @property
    def forced(self) -> tuple[str, str]:
        """Which translation is forced (`forced_decoding.TARGETS`), and the text where it is a typed one."""
        return self.target, self.text

    @property
    def spoken(self) -> str:
        """Which translation is forced, in words."""
        return {"own": "the own output", "reference": "the reference", "typed": "a typed text"}[self.target]


def number(value: int | str) -> int | None:
    """The number of an option that is a number or a word, such as mean or all; None for the word."""
    return None if isinstance(value, str) else value


def up_to(options: FigureOptions, option: str, last: int) -> int | None:
    """The same, of an option by its name; raises RunError for a number beyond `last`."""
    found = number(getattr(options, option))
    if found is not None and found > last:
        raise RunError(f"{option} {found}: {allowed(type(options), option)} to {last}")
    return found


def read(model: type[Model], given: Mapping[str, Any], name: str) -> Model:
    """The options of a figure or an analysis. Raises RunError for one that it has not, and a value that will not do."""
    unknown = sorted(set(given) - set(model.model_fields))
    if unknown:
        there = ", ".join(model.model_fields) or "none"
        raise RunError(f"there is no option {unknown[0]!r} of {name}; there is {there}")
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        problem = error.errors()[0]
        if not problem["loc"]:
            raise RunError(problem["msg"].removeprefix("Value error, ")) from None
        option = str(problem["loc"][0])
        own = problem["type"] == "value_error"
        said = problem["msg"].removeprefix("Value error, ") if own else allowed(model, option)
        raise RunError(f"{option} {given[option]!r}: {said}") from None


def differing(options: FigureOptions) -> dict[str, Any]:
    """The options that are not as they are unless told, as JSON has them."""
    return options.model_dump(mode="json", exclude_defaults=True)


def choices(model: type[FigureOptions], option: str) -> list[str]:
    """The words that an option may be, in their order."""
    return [word for kind in _kinds(model, option) for word in (kind.get("enum") or [kind.get("const")]) if word]


def default(model: type[FigureOptions], option: str) -> Any:
    """What an option is unless told."""
    return model.model_fields[option].default


def values(model: type[FigureOptions], option: str) -> str:
    """What an option may be, in words."""
    others = [said for kind in _kinds(model, option) if (said := _said(kind))]
    return ", or ".join(filter(None, [", ".join(choices(model, option)), *others]))


def allowed(model: type[FigureOptions], option: str) -> str:
    """What may be written for an option, as an errand."""
    verb = "write" if any(map(_said, _kinds(model, option))) else "choose"
    return f"{verb} {values(model, option)}"


def described(model: type[FigureOptions]) -> list[list[str]]:
    """A row for each option: its name, what it may be, what it is unless told, and what it does."""
    return [
        [name, values(model, name), _written(field.default), field.description or ""]
        for name, field in model.model_fields.items()
    ]


def _written(value: object) -> str:
    """A default as the command line takes it; a dash for none."""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
    return (text.lower() if isinstance(value, bool) else text) or "–"


@cache
def _schema(model: type[FigureOptions]) -> dict[str, Any]:
    return model.model_json_schema()["properties"]


def _kinds(model: type[FigureOptions], option: str | None) -> list[dict[str, Any]]:
    """The kinds of value that a field takes, as JSON Schema says them."""
    schema = _schema(model)[str(option)]
    return schema.get("anyOf", [schema])


def _said(kind: Mapping[str, Any]) -> str:
    """A kind of value in words; nothing for a word that is said by itself, or for none."""
    match kind.get("type"):
        case "boolean":
            return "true or false"
        case "integer" | "number":
            return f"a number{_bounds(kind)}"
        case "array":
            items = kind.get("prefixItems") or [kind["items"]]
            what = "names" if items[0]["type"] == "string" else f"numbers{_bounds(items[0])}"
            return f"{'two ' if len(items) == 2 else ''}{what}, with commas between"
        case "object":
            return "NAME=NUMBER with commas between"
        case "string" if "enum" not in kind and "const" not in kind:
            return "a text"
    return ""


def _bounds(kind: Mapping[str, Any]) -> str:
    """From, above, to, below: the bounds of a number in words. Whole numbers above 0 are those from 1."""
    names = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "up to", "exclusiveMaximum": "below"}
    if kind["type"] == "integer" and "exclusiveMinimum" in kind:
        kind = {"minimum": kind["exclusiveMinimum"] + 1}
    found = [f"{word} {kind[name]:g}" for name, word in names.items() if name in kind]
    return f" {', '.join(found)}" if found else ""
