"""One thread for each process: set here, before anything imports NumPy or PyTorch, and for what tests start."""

import os

for _library in ("OMP", "OPENBLAS"):  # two processes with two threads each are slower than two with one
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
