"""The app's own pages: position in the menu, path in the URL, file. Imports no page.

Paths in the URL never change, since links were made with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.evaluation.document_context import READERS

VIEWS = Path(__file__).resolve().parents[1] / "views"


@dataclass(frozen=True)
class Page:
    """A page: `name` is its path in the URL, `icon` a Material symbol, `module` its file below `views`.

    mechanisms: the page shows runs with one of them; empty if it shows any run.
    """

    name: str
    title: str
    icon: str
    module: str
    mechanisms: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        return VIEWS / f"{self.module}.py"


MENU: dict[str, tuple[Page, ...]] = {
    "": (Page("start", "Start", "home", "start/page"),),
    "Compare": (
        Page("scores", "Scores", "leaderboard", "scores/page"),
        Page("lengths", "Buckets", "bar_chart", "buckets/page"),
        Page("words", "Words", "match_word", "words/page"),
        Page("sentences", "Sentences", "table_rows", "segments/page"),
        Page("documents", "Documents", "article", "documents/page"),
        Page("adequacy", "Adequacy", "fact_check", "adequacy/page"),
        Page("contrast", "Contrastive evaluation", "compare_arrows", "contrastive/page"),
        Page("rating", "Human rating", "how_to_vote", "human_evaluation/page"),
    ),
    "Search": (
        Page("translate", "Translate", "translate", "interactive/page"),
        Page("beam_trees", "Beam trees", "account_tree", "beam_search/page"),
        Page("beam_sizes", "Beam sizes", "stacked_line_chart", "beam_size/page"),
        Page("rescoring", "Reranking", "tune", "reranking/page"),
    ),
    "Inside": (
        Page("attention", "Attention", "grid_on", "attention/page"),
        Page("tokens", "Tokens", "segment", "tokens/page"),
        Page("attribution", "Attribution", "bar_chart_4_bars", "attribution/page"),
    ),
    "Mechanisms": (
        Page("future_cost", "Future cost", "query_stats", "future_cost/page", ("future_cost",)),
        Page("routing", "Routing", "hub", "layer_routing/page", ("em_routing", "dynamic_routing")),
        Page(
            "past_future", "Past and future", "swap_horiz", "past_future/page",
            ("guided_capsules", "past_future_layers", "coverage"),
        ),
        Page(
            "content_states",
            "Content states",
            "stacks",
            "past_future_layers/page",
            ("past_future_layers", "coverage"),
        ),
        Page("context", "Context", "history", "document_context/page", tuple(READERS)),
        Page("gallery", "Paper gallery", "auto_stories", "paper_gallery/page"),
    ),
}  # fmt: skip
LAST: dict[str, tuple[Page, ...]] = {  # after the pages of other packages
    "Workbench": (
        Page("runs", "Runs", "folder_open", "runs/page"),
        Page("testsets", "Test sets", "rule", "test_sets/page"),
        Page("curves", "Training curves", "show_chart", "training_curves/page"),
        Page("basket", "Figure collection", "collections_bookmark", "collection/page"),
        Page("jobs", "Jobs", "play_circle", "jobs/page"),
        Page("help", "Help", "help", "help/page"),
    ),
}
PAGES = {page.name: page for section in (*MENU.values(), *LAST.values()) for page in section}
# Paths beside a page's own: of pages that were joined with another, which old links lead to; and of the first page,
# whose own path is /.
FORMER = {"what_if": "translate", "start": "start"}
