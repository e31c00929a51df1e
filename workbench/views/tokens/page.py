"""Page Tokens: probability, entropy and rank of each word of a translation, and the prediction of each layer."""

from workbench.app.components import (
    empty_states,
    figure_view,
    forced_decoding_controls,
    sentence_texts,
    shadings,
)
from workbench.app.frame import heading

heading("Tokens", "Each word of a translation under forced decoding, by the output and by every layer of the decoder.")
frame = empty_states.require_runs()
frame, compatible_runs = forced_decoding_controls.with_models(frame)
sentence_texts.show(frame, shadings.attended(frame))
translation = forced_decoding_controls.target()
figure_view.show("token-probabilities", frame.request(compatible_runs, **translation))
figure_view.show("layer-lens", frame.request(compatible_runs, **translation))
