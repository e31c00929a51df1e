"""From runs to figures: one function a figure, the same for `workbench figure` and for the pages.

A request names runs, test set and sentence; a drawing gathers the tables (evaluation, analyses) and hands them to its
figure family. Pages compute nothing: they call `draw`. A module of this package is a theme.
"""
