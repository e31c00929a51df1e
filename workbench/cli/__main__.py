"""`python -m workbench.cli` is `workbench`."""

from workbench.cli import main

main()
