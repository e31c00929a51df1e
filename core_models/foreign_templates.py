"""Templates: the plain text around a source that makes a decoder-only model of Hugging Face translate.

    English: {source}
    German:

`{source}` stands in it once. Spaces at its borders belong to the words behind them, as in running text. Template and
source are cut into pieces apart, so that the source has a place of its own in the prompt: where a tokenizer would join
a piece over a border (such as `.` with a line break), the prompt differs from the pieces of the whole text.
"""

from __future__ import annotations

from typing import Any

from core_models.settings import ConfigError
from core_models.text.foreign_vocabulary import continued

SOURCE = "{source}"


def parts_of(template: str) -> tuple[str, str]:
    """The text before and after the source; raises ConfigError for a template without the one, or with more."""
    if template.count(SOURCE) != 1:
        raise ConfigError(
            f"the template has {SOURCE} {template.count(SOURCE)} times; write it once, where the text to translate is "
            "to stand"
        )
    before, after = template.split(SOURCE)
    if not after.strip():
        raise ConfigError(
            f"the template has no words behind {SOURCE}; end it with words after which the translation begins, such as "
            "`German:`"
        )
    return before, after


def prompt_of(template: str, tokenizer: Any) -> tuple[list[int], list[int]]:
    """The pieces before and after the source, in the tokenizer's numbers, with what it puts before every text."""
    before, after = parts_of(template)
    bare, whole = (tokenizer("a", add_special_tokens=added)["input_ids"] for added in (False, True))
    place = next((k for k in range(len(whole)) if whole[k : k + len(bare)] == bare), 0)
    first = tokenizer(before.rstrip(" "), add_special_tokens=False)["input_ids"] if before.strip(" ") else []
    if first[:place] != whole[:place]:
        first = [*whole[:place], *first]
    return first, continued(tokenizer, "a", [after.rstrip(" ")])[0]


def special_words(model: Any, tokenizer: Any, template: str) -> tuple[int | None, int | None, int | None, int]:
    """Their numbers of <pad>, <unk> and <s> (None: there is none of its own), and of the end of a translation.

    Of several ends it is the one that the template has, else the tokenizer's, else the first.
    """
    settings = model.generation_config.eos_token_id
    settings = model.config.eos_token_id if settings is None else settings
    ends = settings if isinstance(settings, list) else [tokenizer.eos_token_id if settings is None else settings]
    named = [end for end in ends if end is not None and tokenizer.convert_ids_to_tokens(end) in template]
    end = next(iter([*named, *(end for end in ends if end == tokenizer.eos_token_id), *ends]))
    if end is None:
        raise ConfigError("the model does not say which word ends a text (eos_token_id), so it cannot be opened")
    taken, found = {end}, []
    for word in (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.bos_token_id):
        found.append(None if word in taken else word)
        taken.add(word)
    pad, unknown, begin = found
    return pad, unknown, begin, end
