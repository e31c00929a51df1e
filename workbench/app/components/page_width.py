"""How wide the page is: the browser says so, and figures are laid out for it. Knows no figure.

Until the browser has spoken a page is taken to be as wide as the last one that it opened, or of usual width; only a
page that is not costs a second run.
"""

from __future__ import annotations

import streamlit as st

from workbench.plotting.screen_layout import DEFAULT_WIDTH

# Few widths, so that moving the edge of a window does not run the page again and again.
WIDTHS = [*range(280, DEFAULT_WIDTH, 40), DEFAULT_WIDTH, 960, 1200, 1600]
_KEY, _WIDTH = "_ruler", "_page_width"
_COOKIE = "nmt_workbench_page_width"  # of the browser's session: it holds a number and goes to nobody but the app
_MEASURE = """
export default function ({ parentElement, data, setStateValue }) {
  const page = document.querySelector('[data-testid="stMainBlockContainer"]')
  if (!page) return
  parentElement.said ??= data.width
  const measure = () => {
    const style = getComputedStyle(page)
    const room = page.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)
    const width = data.widths.findLast((one) => one <= room) ?? data.widths[0]
    if (room <= 0) return
    document.cookie = `${data.cookie}=${width}; path=/; samesite=strict`
    if (width === parentElement.said) return
    parentElement.said = width
    setStateValue("width", width)
  }
  let waiting
  const observer = new ResizeObserver(() => {
    clearTimeout(waiting)
    waiting = setTimeout(measure, 250)
  })
  observer.observe(page)
  return () => {
    clearTimeout(waiting)
    observer.disconnect()
  }
}
"""
_ruler = st.components.v2.component("nmt_workbench_ruler", js=_MEASURE)


def measure() -> None:
    """Ask the browser; it answers with another run where the page has another width than thought."""
    # A tuple: of a list Streamlit asks pandas what it is, and the first page would wait for that import.
    thought = page_width()
    data = {"widths": tuple(WIDTHS), "width": thought, "cookie": _COOKIE}
    found = _ruler(key=_KEY, data=data, default={"width": thought}, on_width_change=_heard)
    st.session_state[_WIDTH] = int(found.get("width", thought))


def page_width() -> int:
    """The pixels of the page beside the sidebar, rounded down to one of `WIDTHS`."""
    return st.session_state.get(_WIDTH) or remembered(st.context.cookies.get(_COOKIE, ""))


def remembered(cookie: str) -> int:
    """The width that a cookie says, the usual one where it says none of `WIDTHS`."""
    return next((width for width in WIDTHS if str(width) == cookie), DEFAULT_WIDTH)


def _heard() -> None:
    """Streamlit asks for a callback; the run that follows reads the width."""
