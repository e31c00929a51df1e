"""Page Start: questions with figures of the runs at hand, findings in them, the ways to one's own text and runs."""

import shlex

from workbench.app.components import empty_states
from workbench.app.frame import current, heading
from workbench.views.start import sections

frame = current()
heading(
    "Look inside neural machine translation",
    "Compare systems, follow a sentence through the search, see what the mechanisms of five papers do, export figures.",
)
if frame.known:
    sections.gallery(frame)
    sections.own_text()
else:
    empty_states.empty_state(
        f"There is no run below {frame.root} yet. Build the demo, or train a system of your own:",
        f"workbench train transformer --data DATA --out {shlex.quote(str(frame.root))}/NAME",
    )
sections.own_model()
sections.own_runs(frame)
sections.machine()
sections.plugged_in()
