"""LaTeX that a TeX compiles as it is: every table and snippet, with names that hold what TeX takes for its own."""

import re
import shutil
import subprocess
from dataclasses import replace

import pandas as pd
import pytest

from tests.workbench.export.test_files import TOKENS, figure_of
from tests.workbench.export.test_latex import SCORES, TESTS
from tests.workbench.papers.written_runs import written_run
from workbench.export.bundle import write_bundle
from workbench.export.latex import beside_latex, case_latex, score_table_latex
from workbench.export.tex import comment, document, packages, remarks, tex_text
from workbench.figures.from_spec import DrawnFigure
from workbench.figures.request import Request
from workbench.figures.spec import Recipe
from workbench.papers.comparison import compared, origins
from workbench.papers.load import library
from workbench.papers.our_results import our_results

NAMES = [r"a_b%c&d#e", r"$x^2$~\y", "{gdr--bow}", "<s>|</s>", "``l'' ?`!`", "λ→0.5 ≥ Δ−1 ∗"]
ACCENTS = "Čeština für ąłß…"  # set in fonts that pdftotext cannot always read back


def test_each_character_is_escaped_once():
    assert tex_text(r"a\b_{50%} <s>") == r"a\textbackslash{}b\_\{50\%\} \textless{}s\textgreater{}"
    assert tex_text("a--b ---{}") == r"a-{}-b -{}-{}-\{\}"
    assert tex_text("one\n\ntwo\x00") == "one two "
    assert tex_text("λ ≥ 2 我们x") == r"$\lambda$ $\geq$ 2 \begin{CJK*}{UTF8}{gbsn}我们\end{CJK*}x"


def test_packages_and_what_pdflatex_cannot_set_are_named():
    assert packages(r"\toprule" + tex_text("我")) == ["booktabs", "CJKutf8"]
    assert remarks("plain é") == []
    assert remarks(tex_text("हिन्दी и"))[0].startswith("% ")
    assert "и" in remarks(tex_text("и"))[0]
    assert comment("a\nb") == "% a b"


def _set(folder, source: str, program: str = "pdflatex") -> str:
    """What can be read, without spaces, in what a TeX makes of a document; skips where there is no TeX."""
    for needed, package in ((program, "texlive-latex-recommended"), ("pdftotext", "poppler-utils")):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed (package {package})")
    for name in re.findall(r"\\usepackage\{(\w+)\}", source):
        if subprocess.run(["kpsewhich", f"{name}.sty"], capture_output=True).returncode:
            pytest.skip(f"the TeX that is installed has no package {name}")
    (folder / "all.tex").write_text(source, encoding="utf-8")
    options = ["-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run([program, *options], cwd=folder, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-1500:]
    read = subprocess.run(["pdftotext", "-layout", "all.pdf", "-"], cwd=folder, capture_output=True, check=True)
    # Scalable T1 fonts name one sign for Delta and increment, and the quotes that ` and ' are set as.
    typed = str.maketrans({"\N{INCREMENT}": "Δ", "‘": "`", "’": "'"})
    return "".join(read.stdout.decode().translate(typed).split())


def _scores(names: list[str]) -> pd.DataFrame:
    rows = [(name, metric, 20.0 + place) for place, name in enumerate(names) for metric in ("BLEU", "METEOR (a_b)")]
    scores = pd.DataFrame(rows, columns=["system", "metric", "score"])
    return scores.assign(low=scores["score"] - 1, high=scores["score"] + 1, signature="a|b%c")


@pytest.mark.parametrize("names", [[*NAMES, ACCENTS], ["基线 (我们)", "new"]], ids=["signs", "Chinese"])
def test_a_score_table_shows_names_as_typed(names, tmp_path):
    made = _scores(names)
    tests = made.assign(delta=made["score"] - 20.0, p_holm=0.01, method="sign test")
    shown = _set(tmp_path, document(score_table_latex(made, tests, names[0]), score_table_latex(SCORES, TESTS)))
    for name in (name for name in names if name != ACCENTS):
        assert "".join(name.split()) in shown
    assert f"{20 + len(names) - 1}.00" in shown


def test_a_translation_case_is_set_with_its_words_as_typed(tmp_path):
    texts = {"source": "我喜欢 50 % & mehr", "reference": "I like a_b", "sys_1": r"I {like} \x", "sys_2": ""}
    shown = _set(tmp_path, document(case_latex(texts, "reference")))
    for text in ("50%&mehr", "Ilikea_b", r"I{like}\x", "sys_1", "(empty)"):
        assert text in shown


@pytest.mark.slow
def test_the_document_that_a_bundle_names_sets_its_snippets(tmp_path):
    caption = " ".join([*NAMES, ACCENTS, "我喜欢。"])
    drawn = replace(figure_of(TOKENS), caption=caption, width="page", name="a_map")
    write_bundle([DrawnFigure(Recipe(drawing="attention"), Request(()), drawn)], tmp_path)
    readme = (tmp_path / "README.txt").read_text(encoding="utf-8")
    _, begin, rest = readme.partition(r"\documentclass")
    inside, end, _ = rest.partition(r"\end{document}")
    shown = _set(tmp_path, "\n".join(line.strip() for line in (begin + inside + end).splitlines()))
    assert all("".join(name.split()) in shown for name in NAMES)
    assert "我喜欢。" in shown


def test_the_table_of_a_paper_is_set(prepared, tmp_path):
    run = written_run(tmp_path / "runs", "mine", "future-cost-2:preset=tiny", prepared, spoiled=5)
    table = library()["duan-2020"].table("table-1")
    found = our_results(table, [run], "test", tmp_path)  # a folder without results of experiments
    shown = _set(tmp_path, document(beside_latex(compared(table, found), origins(found))))
    assert "+ModelII" in shown
    assert f"Ours:{found['data'].item()},test" in shown
    assert f"{found['score'].item():.2f}[" in shown
