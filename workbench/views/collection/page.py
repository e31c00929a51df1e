"""Figure collection: the figures that were added, as they will look on paper, and all of them in one download."""

from workbench.app import frame
from workbench.app.components import empty_states
from workbench.views.collection import controls

frame.heading("Figure collection", "Figures added on any page: how they look on paper, their order, and one download.")
here = frame.current()
if not here.known:
    empty_states.require_runs()
with frame.errors_as_messages():
    controls.show(here)
