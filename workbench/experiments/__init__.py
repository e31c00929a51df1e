"""Grids of systems and seeds from a YAML file: running them in any number of processes, and tables of results."""
