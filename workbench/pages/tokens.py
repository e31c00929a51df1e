"""Tokens: how probable, uncertain and highly ranked each word of a translation is, and what each layer would say."""

from workbench import frame
from workbench.widgets import figure_view, inside_controls, sentence_texts

frame.heading(
    "Tokens", "Each word of a translation under forced decoding, by the output and by every layer of the decoder."
)
here = frame.needs_runs()
sentence_texts.show(here)
able = inside_controls.with_models(here)
translation = inside_controls.target()
figure_view.show("token-probabilities", here.request(able, **translation))
figure_view.show("layer-lens", here.request(able, **translation))
