"""Gold word alignments in Pharaoh format: one line per sentence, links such as `0-0 1-2 2?3` (source, then target).

`-` is a sure link, `?` or `p` a possible one. Words count from 0 or from 1, which is inferred from the links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analyses.alignment import Link

_LINK = re.compile(r"(\d+)([-?p])(\d+)")


@dataclass(frozen=True)
class GoldLinks:
    """Links of every sentence, counted from 0; `possible` includes the sure ones.

    base: what the file counts from; certain: False if no link of the file tells 0 from 1 and 0 is assumed.
    """

    sure: list[set[Link]]
    possible: list[set[Link]]
    base: int
    certain: bool

    @property
    def counting(self) -> str:
        """The base of the file in words."""
        return f"counted from {self.base}" + ("" if self.certain else " (taken; no link of the file tells)")


def parse(lines: Sequence[str], lengths: Sequence[tuple[int, int]] | None = None, name: str = "the links") -> GoldLinks:
    """Parse lines of links; `lengths` gives the number of source and target words of each sentence.

    A link to word 0 shows that the file counts from 0, a link to word n of n words that it counts from 1. Raises
    ValueError, with the line number, for a malformed link, a link outside its sentence, and a wrong number of lines.
    """
    if lengths is not None and len(lines) != len(lengths):
        raise ValueError(f"{name} has {len(lines)} lines for {len(lengths)} sentences: give one line for each.")
    links_by_line = [list(_links(line, f"{name}:{number}")) for number, line in enumerate(lines, start=1)]
    from_zero = any(0 in (i, j) for links in links_by_line for i, j, _ in links)
    at_end = lengths is not None and any(
        i == source or j == target
        for links, (source, target) in zip(links_by_line, lengths, strict=True)
        for i, j, _ in links
    )
    base = 1 if at_end and not from_zero else 0
    for number, (links, sizes) in enumerate(zip(links_by_line, lengths or [], strict=False), start=1):
        for i, j, _ in links:
            if i - base >= sizes[0] or j - base >= sizes[1]:
                raise ValueError(
                    f"{name}:{number}: link {i}-{j} is outside of its sentence: words are counted from {base}, and "
                    f"there are {sizes[0]} source and {sizes[1]} target words; mend the line, or give the file of "
                    "this test set."
                )
    return GoldLinks(
        [{(i - base, j - base) for i, j, sure in links if sure} for links in links_by_line],
        [{(i - base, j - base) for i, j, _ in links} for links in links_by_line],
        base,
        from_zero or at_end,
    )


def _links(line: str, where: str) -> Iterator[tuple[int, int, bool]]:
    for text in line.split():
        link = _LINK.fullmatch(text)
        if link is None:
            raise ValueError(f"{where}: {text!r} is no link: write 0-0 (sure) or 0?0 (possible), source word first.")
        yield int(link[1]), int(link[3]), link[2] == "-"
