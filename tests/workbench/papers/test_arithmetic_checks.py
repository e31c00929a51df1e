"""Checks of printed numbers: arithmetic against hand-worked cases and Python's own, and what the papers' files say."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_models.settings import ConfigError
from workbench.papers.arithmetic_checks import check_table, evaluate
from workbench.papers.load import library
from workbench.papers.schema import Paper

# The section of the paper's specification (A to E) and the file that holds what is labelled so.
SECTIONS = {"A": "zheng-2019", "B": "dou-2019", "C": "duan-2020", "D": "zheng-2018", "E": "yang-2019"}
KNOWN = {"A13", "B2", "B3", "B4", "B5", "B6", "C8", "D10", "D11", "E14"}
NUMBERS = {"a/b/c": 4.0, "claim/x": -0.5}


@pytest.fixture(scope="module")
def checks():
    return check_table(library())


def test_every_check_comes_out_as_its_file_says(checks):
    surprises = checks[checks["agrees"] != checks["expected"]]
    assert surprises.empty, surprises[["paper", "id", "reported", "recomputed", "expected"]].to_string()
    assert checks["agrees"].sum() > 100
    assert (~checks["agrees"]).sum() > 20


def test_every_known_contradiction_is_among_them_in_its_paper(checks):
    labelled = checks[checks["known"] != ""]
    assert set(labelled["known"]) == KNOWN
    assert (labelled["paper"] == labelled["known"].str[0].map(SECTIONS)).all()
    assert not labelled["agrees"].any()


@pytest.mark.parametrize(
    ("paper", "name", "printed", "recomputed"),
    [
        ("zheng-2019", "delta-gdr", 0.75, 0.85),  # 44.91 - 44.06
        ("zheng-2019", "delta-gdr-bow", 1.42, 1.52),  # 45.58 - 44.06
        ("zheng-2019", "pfrnn-average", 37.85, 37.2233),  # (40.37 + 36.75 + 34.55) / 3
        ("zheng-2018", "average-of-tests-rnnsearch", 35.13, 34.9325),  # (36.84 + 37.16 + 34.17 + 31.56) / 4
        ("zheng-2018", "average-of-tests-coverage", 35.87, 35.695),  # (37.54 + 38.39 + 34.47 + 32.38) / 4
        ("zheng-2018", "delta-of-tests-pfrnn-loss", 2.71, 2.8975),  # 37.83 - 34.9325
        ("zheng-2018", "text-over-reduced", 11.8, 5.9),
        ("zheng-2018", "headline-deen", 1.7, 1.7),  # (1.5 + 1.9) / 2
    ],
)
def test_hand_worked_checks(checks, paper, name, printed, recomputed):
    found = checks.set_index(["paper", "id"]).loc[(paper, name)]
    assert found["reported"] == printed
    assert found["recomputed"] == pytest.approx(recomputed, abs=1e-4)
    assert found["difference"] == pytest.approx(printed - recomputed, abs=1e-4)


def test_every_average_of_table_2_is_that_of_five_sets_and_not_of_the_tests(checks):
    """Zheng 2018: the dev set is in what is printed, of all twelve rows."""
    found = checks[checks["paper"] == "zheng-2018"].set_index("id")
    rows = [row.key for row in library()["zheng-2018"].table("table-2").rows]
    assert len(rows) == 12
    for row in rows:
        assert found.loc[f"average-{row}", "agrees"]
        assert not found.loc[f"average-of-tests-{row}", "agrees"]
        assert 0.01 <= found.loc[f"average-of-tests-{row}", "difference"] <= 0.27


@pytest.mark.parametrize(
    ("printed", "decimals", "agrees"),
    [
        ("0.90", 2, True),  # 40 - 39.095 = 0.905: both 0.90 and 0.91 are roundings of it
        ("0.91", 2, True),
        ("0.89", 2, False),
        ("0.9", 1, True),
        ("1", 0, True),
        ("0.905", 3, True),
        ("0.904", 3, False),
    ],
)
def test_a_number_agrees_when_it_is_a_rounding_of_the_recomputed_one(printed, decimals, agrees):
    check = {"id": "c", "what": "w", "printed": float(printed), "recompute": "40 - 39.095", "decimals": decimals}
    heading = {"title": "T", "authors": ["A"], "year": 2020, "venue": "V", "name": "S"}
    paper = Paper.model_validate({"paper": heading, "check": [{**check, "agrees": True}]})
    assert check_table({"small": paper})["agrees"].tolist() == [agrees]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 ** 2", 19),
        ("(1 + 2) * 3 / -2", -4.5),
        ("2 ** 3 ** 2", 512),
        ("-[a/b/c] ** 2", -16),
        ("[claim/x] ** 2", 0.25),  # a negative reference is squared whole
        ("mean([a/b/c], [claim/x], 1)", 1.5),
        ("log(512)", 6.238325),  # nats, mechanisms of routing
        ("exp(1)", math.e),
        ("sqrt([a/b/c])", 2),
        ("round(37.2233, 2)", 37.22),
        ("round(2.6)", 3),
        ("min(3, [a/b/c]) + max(1, 2)", 5),
    ],
)
def test_hand_worked_arithmetic(expression, value):
    assert evaluate(expression, NUMBERS.__getitem__) == pytest.approx(value, abs=1e-6)


REFUSED = """
x
__import__
print(1)
__import__('os').system('true')
(1).real
[a/b/c].real
math.log(2)
log
log(2, 2)
log(x=2)
mean(*[a/b/c])
mean()
min(1)
'1' * 9
1 if 2 else 3
1 < 2
True
not 1
1 and 2
lambda: 1
(y := 1)
{1: 2}
1, 2
1j
~1
7 // 2
7 % 2
1 @ 2
1 << 9
9 ** 9 ** 9 ** 9
1e308 * 10
(-8) ** 0.5
1 / 0
log(0)
sqrt(-1)
1 +
1; 2
f'{1}'
""".strip().splitlines()


@pytest.mark.parametrize(
    "expression", [*REFUSED, "", "(" * 5000 + "1" + ")" * 5000, "-" * 50000 + "1"], ids=lambda text: repr(text)[:24]
)
def test_anything_but_arithmetic_is_refused(expression):
    with pytest.raises(ConfigError, match="cannot be worked out"):
        evaluate(expression, NUMBERS.__getitem__)


EXPRESSIONS = st.recursive(
    st.floats(0, 50, allow_subnormal=False).map(repr),
    lambda inner: (
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join)
        | inner.map("({})".format)
        | inner.map("-{}".format)
        | inner.map("({}) ** 2".format)
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
@settings(max_examples=60, deadline=None)
def test_arithmetic_is_pythons_own(expression):
    try:
        expected = eval(expression, {"__builtins__": {}})
    except ArithmeticError:
        with pytest.raises(ConfigError):
            evaluate(expression, NUMBERS.__getitem__)
        return
    if math.isfinite(expected):
        assert evaluate(expression, NUMBERS.__getitem__) == pytest.approx(expected, rel=1e-12)
