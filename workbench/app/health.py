"""The health of this machine: packages, processors, disk, device. Never imports torch."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from core_models.resources import processors

PACKAGES = ("nmt-workbench", "torch", "streamlit", "plotly", "matplotlib", "sacrebleu", "pandas", "numpy")


@dataclass(frozen=True)
class Health:
    """One requirement on the machine: its value on this machine, and advice if it is missing."""

    name: str
    value: str
    advice: str = ""


def health() -> list[Health]:
    """Device, fonts and versions, without loading PyTorch."""
    from workbench.plotting.fonts import families

    chinese = [
        family
        for family in families()
        if any(part in family for part in ("CJK", "WenQuanYi", "Han Sans", "PingFang", "YaHei", "SimHei"))
    ]
    advice = "Figures with Chinese words cannot be exported: install fonts-wqy-microhei or fonts-noto-cjk."
    fonts = f"{families()[0]}; Chinese: {chinese[0] if chinese else 'none'}"
    return [
        Health("Device", _device()),
        Health("Fonts", fonts, "" if chinese else advice),
        Health("Python", platform.python_version()),
        *(Health(name, installed) for name in PACKAGES if (installed := _version(name))),
    ]  # fmt: skip


def _device() -> str:
    processor = f"CPU, {processors()} cores"
    if "+cpu" in _version("torch") or not shutil.which("nvidia-smi"):
        return processor
    try:
        process = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{processor}; nvidia-smi does not answer"
    cards = [line.strip() for line in process.stdout.splitlines() if line.strip()] if process.returncode == 0 else []
    return f"{', '.join(cards)}; {processor}" if cards else processor


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
