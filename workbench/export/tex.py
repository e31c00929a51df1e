"""Text as TeX sets it: escaped, with the packages it needs and a smallest document that compiles.

pdfLaTeX is what the author kits of most venues ask for, so what comes out compiles with it, and with XeLaTeX too. It
knows characters, not tables or figures.
"""

from __future__ import annotations

import re
import unicodedata

_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "∗": r"$\ast$", "≥": r"$\geq$", "≤": r"$\leq$", "≠": r"$\neq$",
    "≈": r"$\approx$", "−": r"$-$", "→": r"$\rightarrow$", "⇒": r"$\Rightarrow$", "∞": r"$\infty$", "∩": r"$\cap$",
    "∪": r"$\cup$", "∈": r"$\in$", "▁": r"\rule{0.5em}{0.08em}",
}  # fmt: skip
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi _ pi rho varsigma sigma tau upsilon phi "
    "chi psi omega"
)
_SIGNS |= {chr(ord("α") + place): rf"$\{name}$" for place, name in enumerate(_GREEK.split()) if name != "_"}
_SIGNS |= {sign: rf"$\{unicodedata.name(sign).split()[-1].capitalize()}$" for sign in "ΓΔΘΞΠΣΦΨΩ"} | {"Λ": r"$\Lambda$"}
_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
_LIGATURE = re.compile("(?<=[-`',!?])(?=[-`',])")  # -- would be set as a dash, `` as a quote
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_CHINESE = "\u2e80-\u2fdf\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"  # and kana, wide signs
_CHINESE_RUN = re.compile(f"[{_CHINESE}]+")
# What LaTeX's own tables of Unicode set in its own fonts (T1, TS1), and what is handled here.
_OTHERS = re.compile(
    "[^\x00-\u0125\u0128-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u0165\u0168-\u017e‐-―‘-‚“-„†-•…‰‹›€№™←-↓␣"
    + _CHINESE
    + "]"
)
_NEEDS = {r"\toprule": "booktabs", r"\arraybackslash": "array", r"\includegraphics": "graphicx", "CJK*": "CJKutf8"}


def tex_text(text: str) -> str:
    """A text that TeX sets as typed; characters that pdfLaTeX cannot set stay as they are (`remarks` names them)."""
    plain = _CONTROL.sub(" ", unicodedata.normalize("NFC", " ".join(text.split())))
    apart = _LIGATURE.sub("\0", plain)
    signs = _SIGN.sub(lambda found: _SIGNS[found[0]], apart).replace("\0", "{}")
    return _CHINESE_RUN.sub(lambda found: rf"\begin{{CJK*}}{{UTF8}}{{gbsn}}{found[0]}\end{{CJK*}}", signs)


def packages(source: str) -> list[str]:
    """The packages that a piece of LaTeX needs."""
    return [name for mark, name in _NEEDS.items() if mark in source]


def remarks(source: str) -> list[str]:
    """What a reader of a piece of LaTeX must know, as lines of comment: packages, and what pdfLaTeX cannot set."""
    loaded = " ".join(map(_loaded, packages(source)))
    said = [comment(f"needs {loaded}")] if loaded else []
    if others := sorted(set(_OTHERS.findall(source))):
        said.append(comment(f"{' '.join(others)}: no font of pdfLaTeX; set it with XeLaTeX or LuaLaTeX and fontspec"))
    return said


def comment(text: str) -> str:
    """A line that TeX passes over, whatever is in the text."""
    return f"% {' '.join(_CONTROL.sub(' ', text).split())}"


def document(*parts: str, also: str = "") -> str:
    """The smallest document in which pieces of LaTeX compile as they are; `also` is what they read from files."""
    body = "\n\n".join(parts)
    loaded = [r"\usepackage[T1]{fontenc}", *map(_loaded, packages(body + also))]
    return "\n".join([r"\documentclass{article}", *loaded, r"\begin{document}", body, r"\end{document}", ""])


def _loaded(package: str) -> str:
    return rf"\usepackage{{{package}}}"
