"""Buttons that step back and forth, each click counted in the browser: fast ones are as many steps as clicks.

Streamlit joins clicks that arrive while a page is drawn into one, and sends with each click what the browser still
shows of other widgets. So the browser sends the sum of all clicks, and which version of the place it has seen.

With each click Streamlit also begins a rerun in a thread of its own, and stops the one before at its next use of
`st.session_state`, in a callback too. So a callback counts its clicks in a `_Place`, at once and under a lock.
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
  const own = (parentElement.stepper ??= { mount: crypto.randomUUID?.() ?? `${Math.random()}`, clicks: 0, sum: 0 })
  const counted = data.mount === own.mount ? data.sum : 0
  const place = () => data.place + own.sum - counted
  const can = (by) => place() + by >= 0 && place() + by <= data.last
  const buttons = [...parentElement.querySelectorAll("button")].map((button, at) => ({ button, by: at ? 1 : -1 }))
  const step = (by) => {
    if (!can(by)) return
    own.clicks += 1
    own.sum += by
    show()
    setStateValue("clicks", { mount: own.mount, clicks: own.clicks, sum: own.sum, version: data.version })
  }
  const show = () => buttons.forEach(({ button, by }) => (button.disabled = !can(by)))
  buttons.forEach(({ button, by }, at) => {
    button.textContent = data.labels[at]
    if (data.keys[at]) {
      const key = document.createElement("kbd")
      key.textContent = data.keys[at].toUpperCase()
      key.ariaHidden = "true"
      button.append(key)
      button.setAttribute("aria-keyshortcuts", data.keys[at])
    }
    button.onclick = () => step(by)
  })
  show()
  const pressed = (event) => {
    const at = data.keys.indexOf(event.key.toLowerCase())
    const typing = event.composedPath()[0].closest?.("input, textarea, select, [contenteditable=true]")
    if (at < 0 || typing || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    step(buttons[at].by)
  }
  // This function is called again with new data, not always after what it returned: one listener at a time.
  document.removeEventListener("keydown", own.pressed)
  document.addEventListener("keydown", (own.pressed = pressed))
  return () => document.removeEventListener("keydown", pressed)
}
"""
_stepper = st.components.v2.component("nmt_workbench_stepper", html=_BUTTONS, css=_STYLE, js=_SCRIPT)


class _Counted(NamedTuple):
    """How many clicks of one pair of buttons are in the place, and their sum."""

    clicks: int = 0
    sum: int = 0


@dataclass
class _Place:
    """A number that buttons step: what it was set to last, how often it was set, and the clicks that it has in it."""

    value: int = 0
    version: int = 0
    counted: dict[str, _Counted] = field(default_factory=dict)  # by the mount of a pair of buttons

    def put(self, value: int) -> None:
        self.value = value
        self.version += 1

    def is_ahead(self, said: dict[str, Any]) -> bool:
        """Does what the browser `said` have clicks that are not counted?"""
        return said["clicks"] > self.counted.get(said["mount"], _Counted()).clicks

    def count(self, said: dict[str, Any], shown: int, step: Callable[[int, int], int]) -> None:
        """Step by what the browser `said` beyond what was counted; nothing where a later rerun has counted more.

        shown: the number as the browser sent it, older than ours where it had not seen the newest version.
        """
        if not self.is_ahead(said):
            return
        before = self.counted.get(said["mount"], _Counted())
        self.counted[said["mount"]] = _Counted(said["clicks"], said["sum"])
        self.put(step(self.value if said["version"] < self.version else shown, said["sum"] - before.sum))


_LOCK = threading.Lock()  # of all places: it is held for an addition


def put(key: str, value: int) -> None:
    """Set the number that a widget of this key shows, from a callback: it holds until the browser has seen it."""
    place = _place(key)
    with _LOCK:
        place.put(value)
    st.session_state[key] = value


def clicked(watched: str, *names: str) -> bool:
    """Do clicks wait to be counted, of the buttons that step `watched` or of those with another name? For callbacks of
    other widgets, which Streamlit calls first: with a click the browser sends what those showed before."""
    place = _place(watched)
    return any(place.is_ahead(said) for name in (watched, *names) if (said := _clicks(f"step-{name}")))


def show(
    place: int,
    last: int,
    labels: tuple[str, str],
    step: Callable[[int, int], int],
    watched: str,
    keys: tuple[str, str] = ("", ""),
    name: str = "",
) -> None:
    """Two buttons that step a number, the one of the widget `watched`; from 0 to `last` they are able.

    place: where they stand. step(number, by): the number so many places on, negative backwards. keys: letters on the
    keyboard that do the same. name: tells two pairs that watch one number apart.
    """
    own, kept = f"step-{name or watched}", _place(watched)
    mount = _clicks(own).get("mount", "")
    data = {"mount": mount, "sum": kept.counted.get(mount, _Counted()).sum, "version": kept.version}
    data |= {"place": place, "last": last, "labels": labels, "keys": keys}
    _stepper(key=own, data=data, on_clicks_change=lambda: _count(own, watched, step))


def _count(own: str, watched: str, step: Callable[[int, int], int]) -> None:
    said, place, shown = _clicks(own), _place(watched), st.session_state[watched]
    if said:
        with _LOCK:
            place.count(said, shown, step)
        st.session_state[watched] = place.value


def _clicks(own: str) -> dict[str, Any]:
    """What the browser said last: which pair of buttons (`mount`), how many clicks, their sum, the version it saw."""
    return (st.session_state.get(own) or {}).get("clicks") or {}


def _place(watched: str) -> _Place:
    return st.session_state.setdefault(f"_{watched}-place", _Place())
