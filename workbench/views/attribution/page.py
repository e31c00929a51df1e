"""Page Attribution: contributions of source words and previous target words to the log-probability of a word."""

from workbench.app.components import (
    empty_states,
    figure_view,
    forced_decoding_controls,
    sentence_texts,
    shadings,
)
from workbench.app.frame import errors_as_messages, heading
from workbench.figures.options import ForcedOptions
from workbench.store.runs import short_names
from workbench.views.attribution import controls
from workbench.views.attribution.figures import WordAttributionOptions
from workbench.views.attribution.measure import shared_words

heading(
    "Attribution",
    "What each source word and each word written before adds to the log-probability of an output word, in nats.",
)
frame = empty_states.require_runs()
frame, compatible_runs = forced_decoding_controls.with_models(frame)
sentence_texts.show(frame, shadings.attended(frame))
translation = forced_decoding_controls.target()
with errors_as_messages():
    words = shared_words(
        compatible_runs,
        frame.view.test,
        frame.view.sentence,
        ForcedOptions(**translation).forced_target,
        short_names(frame.tested),
    )
    options = controls.options(words, translation)
    request = frame.request(compatible_runs, **options.model_dump())
    figure_view.show("attribution" if isinstance(options, WordAttributionOptions) else "attribution-matrix", request)
    controls.completeness(request, options)
