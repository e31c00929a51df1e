"""Entry point of `python -m workbench.cli`, the same as `workbench`."""

from workbench.cli import main

main()
