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
)


@app.command()
def demo(
    systems: Annotated[
        list[str] | None,
        typer.Argument(help="Others by its recipe, such as em-routing or coverage:form=neural; none: its own three"),
    ] = None,
    root: RunsRoot = Path("runs"),
    device: Device = "cpu",
    processes: Annotated[int, typer.Option(min=1, help="They share its systems, and a CPU's processors")] = 1,
) -> None:
    """Train, translate and trace the demo's systems on the controlled corpus; what is there already stays."""
    from workbench.demo import build, grids_of

    for file in grids_of(systems, root) if systems else [None]:
        with bar("demo") as show:
            build(root, say=typer.echo, show=show, device=device, processes=processes, file=file)


@app.command("app")
def app_command(
    root: RunsRoot = Path("runs"),
    port: int = 8501,
    host: Annotated[
        str, typer.Option(help="There is no login: anything but the loopback address lets others in")
    ] = "127.0.0.1",
    allow: Annotated[
        list[str] | None, typer.Option(help="With --host 0.0.0.0: a name or address under which others open it")
    ] = None,
    demo: Annotated[bool, typer.Option(help="Build the demo first where there is no run yet")] = False,
    at_once: Annotated[
        int, typer.Option("--jobs", envvar="WORKBENCH_JOBS", help="Jobs of pages that run at once; more wait", min=1)
    ] = 1,
) -> None:
    """Open the workbench in the browser."""
    from workbench import jobs
    from workbench.demo import build
    from workbench.runs import list_runs

    if demo and not list_runs(root):
        with bar("demo") as show:
            build(root, say=typer.echo, show=show)
    names = list(dict.fromkeys(("localhost", "127.0.0.1", host, *(allow or ()))))
    if host not in ("127.0.0.1", "localhost", "::1"):
        typer.echo(f"warning: listening on {host}; everybody who reaches this address can use the workbench", err=True)
        typer.echo(f"It answers to these names alone, others are given by --allow: {', '.join(names)}", err=True)
    typer.echo(f"The workbench is at http://{host}:{port}")
    hosts = [part for name in names for part in ("--server.allowedHosts", name)]
    arguments = [
        sys.executable,
        "-m",
        "workbench.serving",
        "run",
        str(app_file()),
        "--server.address",
        host,
        "--server.port",
        str(port),
        *hosts,
        "--browser.gatherUsageStats",
        "false",
        "--server.headless",
        "false" if _has_display() else "true",
        "--server.showEmailPrompt",
        "false",
        "--server.fileWatcherType",
        "none",
    ]
    os.environ |= {"WORKBENCH_RUNS": str(root.resolve()), jobs.AT_ONCE: str(at_once)}
    jobs.go_on(root)
    os.execve(sys.executable, arguments, os.environ)


def _has_display() -> bool:
    """Is there a desktop on which a browser can be opened?"""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def app_file() -> Path:
    """app.py: beside this package in the wheel, at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "app.py"
    return inside if inside.is_file() else package.parent / "app.py"
