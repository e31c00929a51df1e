"""Atomic files and folders, marks of our files, and checked reading of run files."""
