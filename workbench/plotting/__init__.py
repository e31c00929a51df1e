"""The grammar of figures and its two renderers, Plotly and Matplotlib. Knows no run and no translation."""
