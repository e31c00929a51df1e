"""Buttons that step back and forth, each click counted in the browser: fast ones are as many steps as clicks.

Streamlit joins clicks that arrive while a page is drawn into one, and sends with each click what the browser still
shows of other widgets. So the browser sends the sum of all clicks, and which version of the place it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
  const own = (parentElement.stepper ??= { mount: crypto.randomUUID?.() ?? `${Math.random()}`, sum: 0 })
  const counted = data.mount === own.mount ? data.sum : 0
  const place = () => data.place + own.sum - counted
  const can = (by) => place() + by >= 0 && place() + by <= data.last
  const buttons = [...parentElement.querySelectorAll("button")].map((button, at) => ({ button, by: at ? 1 : -1 }))
  const step = (by) => {
    if (!can(by)) return
    own.sum += by
    show()
    setStateValue("clicks", { mount: own.mount, sum: own.sum, version: data.version })
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


def put(key: str, value: int) -> None:
    """Set the number that a widget of this key shows, from a callback: it holds until the browser has seen it."""
    st.session_state[key] = value
    st.session_state[_version(key)] = (st.session_state.get(_version(key), (0, 0))[0] + 1, value)


def clicked(name: str) -> bool:
    """Do clicks wait to be counted? For callbacks of other widgets, which Streamlit calls first."""
    clicks = _clicks(f"step-{name}")
    return bool(clicks) and clicks != st.session_state.get(_counted(f"step-{name}"))


def show(
    place: int,
    last: int,
    labels: tuple[str, str],
    step: Callable[[int], None],
    watched: str,
    keys: tuple[str, str] = ("", ""),
    name: str = "",
) -> None:
    """Two buttons that call `step` with how many places to go on, negative backwards; from 0 to `last` they are able.

    watched: the key of the number that `step` reads and sets (by `put`). keys: letters on the keyboard that do the
    same. name: tells two pairs that watch one number apart.
    """
    own = f"step-{name or watched}"
    counted = st.session_state.get(_counted(own), {"mount": "", "sum": 0})  # clicks that `place` has in it
    version = st.session_state.get(_version(watched), (0, 0))[0]
    data = {**counted, "place": place, "last": last, "labels": labels, "keys": keys, "version": version}
    _stepper(key=own, data=data, on_clicks_change=lambda: _clicked(own, watched, step))


def _clicked(own: str, watched: str, step: Callable[[int], None]) -> None:
    clicks = _clicks(own)
    if not clicks:
        return
    counted = st.session_state.get(_counted(own), {})
    before = counted["sum"] if counted.get("mount") == clicks["mount"] else 0
    st.session_state[_counted(own)] = clicks
    version, value = st.session_state.get(_version(watched), (0, 0))
    if clicks["version"] < version:  # the browser had not seen it yet, and sent what it showed before
        st.session_state[watched] = value
    if clicks["sum"] != before:
        step(clicks["sum"] - before)


def _clicks(own: str) -> dict[str, Any]:
    """What the browser said last: which pair of buttons (`mount`), the sum of its clicks, the version it had seen."""
    return (st.session_state.get(own) or {}).get("clicks") or {}


def _version(key: str) -> str:
    return f"_{key}-put"


def _counted(own: str) -> str:
    return f"_{own}-counted"
