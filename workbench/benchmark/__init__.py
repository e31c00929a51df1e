"""Benchmarks: systems of the catalogue and other engines on the same workload, one after the other, in rounds."""
