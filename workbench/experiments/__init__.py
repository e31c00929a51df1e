"""Grids of systems and seeds from a YAML file: run them, anywhere and in any number of processes, and table them."""
