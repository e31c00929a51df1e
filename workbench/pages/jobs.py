"""Jobs: commands that run in the background, how far they are, what they said, and what became of them."""

from workbench import frame, jobs
from workbench.widgets import job_table

frame.heading(
    "Jobs",
    "Commands that were started on a page. They go on when the page is reloaded or the app is closed; select a row to "
    "read its log.",
)
job_table.show(frame.current().root / jobs.FOLDER)
