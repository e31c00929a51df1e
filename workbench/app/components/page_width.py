"""Width of the page as reported by the browser, for the layout of figures. Knows no figure.

Before the first report the width of the last opened page is assumed, or the default; only a page of another width
costs a second run.
"""

from __future__ import annotations

import streamlit as st

from workbench.plotting.screen_layout import DEFAULT_WIDTH

# Few widths, so that moving the edge of a window does not run the page again and again.
WIDTHS = [*range(280, DEFAULT_WIDTH, 40), DEFAULT_WIDTH, 960, 1200, 1600]
_KEY, _WIDTH = "_ruler", "_page_width"
_COOKIE = "nmt_workbench_page_width"  # a session cookie with a number, sent only to the app
_MEASURE = """
export default function ({ parentElement, data, setStateValue }) {
  const page = document.querySelector('[data-testid="stMainBlockContainer"]')
  if (!page) return
  parentElement.sent ??= data.width
  const measure = () => {
    const style = getComputedStyle(page)
    const room = page.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)
    const width = data.widths.findLast((one) => one <= room) ?? data.widths[0]
    if (room <= 0) return
    document.cookie = `${data.cookie}=${width}; path=/; samesite=strict`
    if (width === parentElement.sent) return
    parentElement.sent = width
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
    """Ask the browser for the width; it triggers another run if the page has another width than assumed."""
    # A tuple, since Streamlit imports pandas to check a list, for which the first page would wait.
    assumed = page_width()
    data = {"widths": tuple(WIDTHS), "width": assumed, "cookie": _COOKIE}
    answer = _ruler(key=_KEY, data=data, default={"width": assumed}, on_width_change=_on_width)
    st.session_state[_WIDTH] = int(answer.get("width", assumed))


def page_width() -> int:
    """The pixels of the page beside the sidebar, rounded down to one of `WIDTHS`."""
    return st.session_state.get(_WIDTH) or remembered(st.context.cookies.get(_COOKIE, ""))


def remembered(cookie: str) -> int:
    """The width in a cookie, or the default if it is none of `WIDTHS`."""
    return next((width for width in WIDTHS if str(width) == cookie), DEFAULT_WIDTH)


def _on_width() -> None:
    """Required callback; the following run reads the width."""
