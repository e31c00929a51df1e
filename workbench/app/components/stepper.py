"""Buttons that step back and forth; clicks are counted in the browser, so that fast clicks are not lost.

Streamlit merges clicks that arrive while a page is drawn, and sends with each click the values of other widgets that
the browser still shows. So the browser sends the sum of all clicks, and the version of the number it last saw.

With each click Streamlit also starts a rerun in a thread of its own, and stops the previous one at its next use of
`st.session_state`, even in a callback. So a callback counts its clicks in a `_SteppedNumber`, at once and under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import streamlit as st

_BUTTONS = '<div class="steps"><button type="button"></button><button type="button"></button></div>'
_STYLE = """
.steps { display: flex; flex-wrap: wrap; gap: 0.5rem }
button { font: inherit; font-size: 0.875rem; color: inherit;
  background: var(--st-background-color); cursor: pointer; min-height: 2.5rem;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius); padding: 0.25rem 0.75rem }
button:hover:enabled, button:focus-visible { color: var(--st-primary-color); border-color: var(--st-primary-color) }
button:disabled { opacity: 0.4; cursor: not-allowed }
kbd { font: inherit; font-size: 0.75em; opacity: 0.6; margin-left: 0.5em }
"""
_SCRIPT = """
export default function ({ parentElement, data, setStateValue }) {
  const state = (parentElement.stepper ??= { mount: crypto.randomUUID?.() ?? `${Math.random()}`, clicks: 0, sum: 0 })
  const counted = data.mount === state.mount ? data.sum : 0
  const position = () => data.position + state.sum - counted
  const can = (by) => position() + by >= 0 && position() + by <= data.last
  const buttons = [...parentElement.querySelectorAll("button")].map((button, index) => ({ button, by: index ? 1 : -1 }))
  const step = (by) => {
    if (!can(by)) return
    state.clicks += 1
    state.sum += by
    show()
    setStateValue("clicks", { mount: state.mount, clicks: state.clicks, sum: state.sum, version: data.version })
  }
  const show = () => buttons.forEach(({ button, by }) => (button.disabled = !can(by)))
  buttons.forEach(({ button, by }, index) => {
    button.textContent = data.labels[index]
    if (data.keys[index]) {
      const key = document.createElement("kbd")
      key.textContent = data.keys[index].toUpperCase()
      key.ariaHidden = "true"
      button.append(key)
      button.setAttribute("aria-keyshortcuts", data.keys[index])
    }
    button.onclick = () => step(by)
  })
  show()
  const pressed = (event) => {
    const index = data.keys.indexOf(event.key.toLowerCase())
    const typing = event.composedPath()[0].closest?.("input, textarea, select, [contenteditable=true]")
    if (index < 0 || typing || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    step(buttons[index].by)
  }
  // Called again with new data, sometimes without its cleanup function in between: keep only one listener.
  document.removeEventListener("keydown", state.pressed)
  document.addEventListener("keydown", (state.pressed = pressed))
  return () => document.removeEventListener("keydown", pressed)
}
"""
_stepper = st.components.v2.component("nmt_workbench_stepper", html=_BUTTONS, css=_STYLE, js=_SCRIPT)


class _CountedClicks(NamedTuple):
    """The number of clicks of one pair of buttons that are already counted, and their sum."""

    clicks: int = 0
    sum: int = 0


@dataclass
class _SteppedNumber:
    """A number that buttons step: its value, how often it was set, and the clicks that are counted in it."""

    value: int = 0
    version: int = 0
    counted: dict[str, _CountedClicks] = field(default_factory=dict)  # by the mount of a pair of buttons

    def set_value(self, value: int) -> None:
        self.value = value
        self.version += 1

    def is_ahead(self, report: dict[str, Any]) -> bool:
        """Return True if the browser's report has clicks that are not counted yet."""
        return report["clicks"] > self.counted.get(report["mount"], _CountedClicks()).clicks

    def count(self, report: dict[str, Any], shown: int, step: Callable[[int, int], int]) -> None:
        """Step by the clicks of the browser's report that are not counted yet; none if a later rerun counted them.

        shown: the number as the browser sent it, outdated if the browser had not seen the newest version.
        """
        if not self.is_ahead(report):
            return
        counted = self.counted.get(report["mount"], _CountedClicks())
        self.counted[report["mount"]] = _CountedClicks(report["clicks"], report["sum"])
        self.set_value(step(self.value if report["version"] < self.version else shown, report["sum"] - counted.sum))


_LOCK = threading.Lock()  # for all stepped numbers; held only for an addition


def set_number(key: str, value: int) -> None:
    """Set the number of the widget with this key from a callback; it stays until the browser has seen it."""
    number = _stepped_number(key)
    with _LOCK:
        number.set_value(value)
    st.session_state[key] = value


def has_uncounted_clicks(widget_key: str, *names: str) -> bool:
    """Return True if clicks of the buttons for `widget_key`, or of those with other names, are not counted yet.

    For callbacks of other widgets: with a click the browser sends their earlier values, and Streamlit calls them first.
    """
    number = _stepped_number(widget_key)
    return any(number.is_ahead(report) for name in (widget_key, *names) if (report := _browser_report(f"step-{name}")))


def show(
    position: int,
    last: int,
    labels: tuple[str, str],
    step: Callable[[int, int], int],
    widget_key: str,
    keys: tuple[str, str] = ("", ""),
    name: str = "",
) -> None:
    """Two buttons that step the number of the widget `widget_key`, enabled from 0 to `last`.

    position: the present position. step(number, by): the number `by` positions further, backwards if negative. keys:
    keyboard shortcuts. name: distinguishes two pairs of buttons for the same number.
    """
    stepper_key, number = f"step-{name or widget_key}", _stepped_number(widget_key)
    mount = _browser_report(stepper_key).get("mount", "")
    data = {"mount": mount, "sum": number.counted.get(mount, _CountedClicks()).sum, "version": number.version}
    data |= {"position": position, "last": last, "labels": labels, "keys": keys}
    _stepper(key=stepper_key, data=data, on_clicks_change=lambda: _count(stepper_key, widget_key, step))


def _count(stepper_key: str, widget_key: str, step: Callable[[int, int], int]) -> None:
    report, number, shown = _browser_report(stepper_key), _stepped_number(widget_key), st.session_state[widget_key]
    if report:
        with _LOCK:
            number.count(report, shown, step)
        st.session_state[widget_key] = number.value


def _browser_report(stepper_key: str) -> dict[str, Any]:
    """The browser's last report: pair of buttons (`mount`), number of clicks, their sum, the version it saw."""
    return (st.session_state.get(stepper_key) or {}).get("clicks") or {}


def _stepped_number(widget_key: str) -> _SteppedNumber:
    return st.session_state.setdefault(f"_{widget_key}-place", _SteppedNumber())
