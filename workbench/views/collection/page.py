"""Page Figure collection: previews of the collected figures on paper, and one download of all."""

from workbench.app.components import empty_states
from workbench.app.frame import current, errors_as_messages, heading
from workbench.views.collection import controls

heading("Figure collection", "Figures added on any page: how they look on paper, their order, and one download.")
frame = current()
if not frame.known:
    empty_states.require_runs()
with errors_as_messages():
    controls.show(frame)
