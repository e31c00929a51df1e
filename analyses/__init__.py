"""Measures over translations, truth records and trace arrays: pure functions from arrays to tidy tables.

Knows NumPy, SciPy, pandas and sacreBLEU; knows no model, no run folder and no figure. Import the module you need
(`from analyses import scores`): nothing heavy is loaded here.
"""
