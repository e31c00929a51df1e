"""README and the pages below docs/, and what is found in their Markdown."""

from __future__ import annotations

import re

from tests.paths import ROOT

README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}

FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """What follows `workbench` in the lines of blocks and in spans of code, by whatever it is started."""
    joined = re.sub(r" \\\n +", " ", text)
    prose = FENCED.sub("", joined)
    blocks = re.findall(r"^ {4,}(\S.*)$", prose, flags=re.MULTILINE)
    fenced = [line for _, _, block in FENCED.findall(joined) for line in block.splitlines()]
    spans = re.findall(r"`([^`]+)`", prose)
    started = re.compile(r"(?:echo .* \| )?(?:\.venv/bin/)?workbench (?=\S)|torchrun .* -m workbench\.cli ")
    lines = [" ".join(line.split()) for line in (*blocks, *fenced, *spans)]
    return list(dict.fromkeys(line[begun.end() :] for line in lines if (begun := started.match(line))))


def python_blocks(text: str) -> list[str]:
    """The fenced blocks of Python, without what a list indents them by."""
    found = [(indent, block) for indent, kind, block in FENCED.findall(text) if kind == "python"]
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def links(text: str) -> list[str]:
    """Where links and pictures lead, those within a block of code left out."""
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", FENCED.sub("", text)))


def anchors(text: str) -> set[str]:
    """What headings are called in an address, as GitHub makes it."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def section(text: str, heading: str) -> str:
    """What stands between a heading and the next of its level or above; empty where there is no such heading."""
    level, _, _ = heading.partition(" ")
    found = re.search(rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""
