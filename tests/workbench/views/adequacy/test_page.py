"""The page Adequacy on the controlled corpus: besides proxies, what the truth says was left out and repeated."""

from tests.workbench.views.app_pages import axis_titles, charts, codes, open_page, texts


def test_both_measures_stand_on_the_page(with_demo):
    at = open_page("adequacy", runs=["demo/transformer", "demo/future-cost-1"])
    drawn = [code.split()[2] for code in codes(at) if code.startswith("workbench figure ")]
    assert drawn == ["adequacy", "true-choices", "true-adequacy", "true-adequacy"]
    assert any("best in CDR" in text and "lower is better" in text for text in texts(at))
    for chart, label in zip(charts(at)[2:], ("left out (%)", "repeated (%)"), strict=True):
        assert label in axis_titles(chart)
        assert {"transformer", "future-cost-1"} <= {trace.get("name") for trace in chart["data"]}
    assert not at.error
