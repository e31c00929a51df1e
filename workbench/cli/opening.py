"""workbench demo and app."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
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
def demo(root: RunsRoot = Path("runs"), device: Device = "cpu") -> None:
    """Train, translate and trace the demo's systems on the controlled corpus; what is there already stays."""
    from workbench.demo import build

    with bar("demo") as show:
        build(root, say=typer.echo, report=_over_all_systems(show), device=device)


def _over_all_systems(show: Callable[[int, int, str], None]) -> Callable[[str, int, int], None]:
    """What a bar is told of one system's training, as a share of the whole demo."""
    from workbench.demo import SYSTEMS

    return lambda name, done, total: show(SYSTEMS.index(name) * total + done, len(SYSTEMS) * total, name)


@app.command("app")
def app_command(
    root: RunsRoot = Path("runs"),
    port: int = 8501,
    host: Annotated[
        str, typer.Option(help="There is no login: anything but the loopback address lets others in")
    ] = "127.0.0.1",
    demo: Annotated[bool, typer.Option(help="Build the demo first where there is no run yet")] = False,
) -> None:
    """Open the workbench in the browser."""
    from workbench.demo import build
    from workbench.runs import list_runs

    if demo and not list_runs(root):
        with bar("demo") as show:
            build(root, say=typer.echo, report=_over_all_systems(show))
    if host != "127.0.0.1":
        typer.echo(f"warning: listening on {host}; everybody who reaches this address can use the workbench", err=True)
    typer.echo(f"The workbench is at http://{host}:{port}")
    hosts = [
        part for name in dict.fromkeys(("localhost", "127.0.0.1", host)) for part in ("--server.allowedHosts", name)
    ]
    arguments = [
        sys.executable,
        "-m",
        "streamlit",
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
    os.execve(sys.executable, arguments, {**os.environ, "WORKBENCH_RUNS": str(root.resolve())})


def _has_display() -> bool:
    """Is there a desktop on which a browser can be opened?"""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def app_file() -> Path:
    """app.py: beside this package in the wheel, at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "app.py"
    return inside if inside.is_file() else package.parent / "app.py"
