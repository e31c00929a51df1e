"""Workbench commands as background processes: permitted commands, queue, state."""
