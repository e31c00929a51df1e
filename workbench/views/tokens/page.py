"""Tokens: how probable, uncertain and highly ranked each word of a translation is, and what each layer would say."""

from workbench.app import frame
from workbench.app.components import empty_states, figure_view, forced_decoding_controls, sentence_texts

frame.heading(
    "Tokens", "Each word of a translation under forced decoding, by the output and by every layer of the decoder."
)
here = empty_states.require_runs()
sentence_texts.show(here)
able = forced_decoding_controls.with_models(here)
translation = forced_decoding_controls.target()
figure_view.show("token-probabilities", here.request(able, **translation))
figure_view.show("layer-lens", here.request(able, **translation))
