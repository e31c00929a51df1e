"""Files that appear whole or not at all, which files are ours, and the one door for reading those of runs."""
