"""Escaping of text for TeX, the required packages, and a minimal document that compiles.

Most venues require pdfLaTeX, so the output compiles with it, and with XeLaTeX too. Knows characters, not tables or
figures.
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
# Characters outside of LaTeX's own Unicode tables (fonts T1, TS1) and of those handled here.
_OTHERS = re.compile(
    "[^\x00-\u0125\u0128-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u0165\u0168-\u017e‐-―‘-‚“-„†-•…‰‹›€№™←-↓␣"
    + _CHINESE
    + "]"
)
_NEEDS = {r"\toprule": "booktabs", r"\arraybackslash": "array", r"\includegraphics": "graphicx", "CJK*": "CJKutf8"}


def tex_text(text: str) -> str:
    """Escape a text so that TeX sets it as typed; characters unknown to pdfLaTeX stay (`remarks` names them)."""
    plain = _CONTROL.sub(" ", unicodedata.normalize("NFC", " ".join(text.split())))
    split_ligatures = _LIGATURE.sub("\0", plain)
    signs = _SIGN.sub(lambda match: _SIGNS[match[0]], split_ligatures).replace("\0", "{}")
    return _CHINESE_RUN.sub(lambda match: rf"\begin{{CJK*}}{{UTF8}}{{gbsn}}{match[0]}\end{{CJK*}}", signs)


def packages(source: str) -> list[str]:
    """The packages that a piece of LaTeX needs."""
    return [name for mark, name in _NEEDS.items() if mark in source]


def remarks(source: str) -> list[str]:
    """Comment lines for a piece of LaTeX: required packages, and characters that pdfLaTeX cannot set."""
    loaded = " ".join(map(_loaded, packages(source)))
    notes = [comment(f"needs {loaded}")] if loaded else []
    if unknown := sorted(set(_OTHERS.findall(source))):
        notes.append(comment(f"{' '.join(unknown)}: no font of pdfLaTeX; set it with XeLaTeX or LuaLaTeX and fontspec"))
    return notes


def comment(text: str) -> str:
    """A comment line of TeX, valid for any text."""
    return f"% {' '.join(_CONTROL.sub(' ', text).split())}"


def document(*parts: str, also: str = "") -> str:
    """A minimal document in which pieces of LaTeX compile; `also` is LaTeX that they input from files."""
    body = "\n\n".join(parts)
    loaded = [r"\usepackage[T1]{fontenc}", *map(_loaded, packages(body + also))]
    return "\n".join([r"\documentclass{article}", *loaded, r"\begin{document}", body, r"\end{document}", ""])


def _loaded(package: str) -> str:
    return rf"\usepackage{{{package}}}"
