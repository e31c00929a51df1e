"""Tables of analyses by name, ours and those of other packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.figures.request import Request
from workbench.store.runs import RunError

if TYPE_CHECKING:
    import pandas as pd

Analysis = Callable[[Request], "pd.DataFrame"]


ANALYSES: dict[str, Analysis] = {}


def analysis(name: str, *options: str) -> Callable[[Analysis], Analysis]:
    """Adds a function to the analyses; a request with other options than these is refused."""

    def add(function: Analysis) -> Analysis:
        def checked(request: Request) -> pd.DataFrame:
            unknown = [option for option in request.options if option not in options]
            if unknown:
                raise RunError(f"there is no option {unknown[0]!r}; there is {', '.join(options) or 'none'}")
            return function(request)

        checked.__doc__ = function.__doc__
        ANALYSES[name] = checked
        return function

    return add
