"""The app's server: Streamlit's own command line, in a process that has loaded what every page needs.

Streamlit would load it when the first browser asks, which then waits. Knows no page and no option.
"""

from __future__ import annotations

import sys

from streamlit.web.cli import main

import workbench.demo
import workbench.frame
import workbench.overview
import workbench.widgets.job_view  # noqa: F401

if __name__ == "__main__":
    sys.exit(main(prog_name="streamlit"))
