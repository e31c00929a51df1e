"""workbench demo and app."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.shared import (
    Device,
    RunsRoot,
    app,
    bar,
    refuse,
)
from workbench.cli.terminal import say


@app.command()
def demo(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            help="Systems to train by the demo's recipe, e.g. em-routing or coverage:form=neural; else its own three"
        ),
    ] = None,
    root: RunsRoot = Path("runs"),
    device: Device = "cpu",
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Number of processes that share a CPU's processors; one for each system by default",
        ),
    ] = None,
) -> None:
    """Train, translate and trace the demo's systems on the controlled corpus; what is there already stays."""
    from workbench.experiments.demo import build, grids_of

    for file in grids_of(systems, root) if systems else [None]:
        with bar("demo") as show:
            build(root, say=say, show=show, device=device, processes=processes, file=file)


@app.command("app")
def app_command(
    root: RunsRoot = Path("runs"),
    port: Annotated[int, typer.Option(help="Port to listen on", min=1, max=65_535)] = 8501,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; beyond the loopback address a token is asked for, printed at start"),
    ] = "127.0.0.1",
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Further address under which the app is opened: NAME, NAME:PORT or a proxy's https://NAME"),
    ] = None,
    login: Annotated[bool, typer.Option("--login", help="Ask for Streamlit's own login instead of a token")] = False,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only", envvar="WORKBENCH_READ_ONLY", help="Allow no jobs, uploads, ratings or figure collections"
        ),
    ] = False,
    demo: Annotated[bool, typer.Option(help="Build the demo first where there is no run and no exhibit")] = False,
    at_once: Annotated[
        int, typer.Option("--jobs", envvar="WORKBENCH_JOBS", help="Number of jobs that run at once; others wait", min=1)
    ] = 1,
) -> None:
    """Open the workbench in the browser."""
    from workbench.experiments.demo import build
    from workbench.jobs import queue
    from workbench.store.listing import listing

    if demo and read_only:
        refuse("--demo writes runs, and --read-only writes nothing: leave one of them out")
    if demo and not listing(root).runs:
        with bar("demo") as show:
            build(root, say=say, show=show)
    if not root.is_dir():
        say(f"there is no folder {root} yet, so no run of your own is shown", err=True)
    os.environ |= {"WORKBENCH_RUNS": str(root.resolve()), queue.PARALLEL_JOBS: str(at_once)}
    os.environ["WORKBENCH_READ_ONLY"] = "1" if read_only else ""
    from workbench.app import server  # takes Streamlit

    local_server = server.server(host, port, allow or (), login)
    queue.start_waiting(root)
    server.serve(app_file(), local_server, _has_display(), login)


def _has_display() -> bool:
    """Return True on a desktop, where a browser can be opened."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def app_file() -> Path:
    """The path of app.py, beside Streamlit's settings: in the wheel's package or at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_launcher" / "app.py"
    return installed if installed.is_file() else package.parent / "app.py"
