"""Attribution: what each source word and each word written before adds to the log-probability of an output word."""

from workbench.app import frame
from workbench.app.components import empty_states, figure_view, forced_decoding_controls, sentence_texts
from workbench.figures.options import ForcedOptions
from workbench.store.runs import short_names
from workbench.views.attribution import controls
from workbench.views.attribution.figures import WordAttributionOptions
from workbench.views.attribution.measure import shared_words

frame.heading(
    "Attribution",
    "What each source word and each word written before adds to the log-probability of an output word, in nats.",
)
here = empty_states.require_runs()
sentence_texts.show(here)
able = forced_decoding_controls.with_models(here)
translation = forced_decoding_controls.target()
with frame.errors_as_messages():
    words = shared_words(
        able, here.view.test, here.view.sentence, ForcedOptions(**translation).forced, short_names(here.tested)
    )
    options = controls.options(words, translation)
    request = here.request(able, **options.model_dump())
    figure_view.show("attribution" if isinstance(options, WordAttributionOptions) else "attribution-matrix", request)
    controls.completeness(request, options)
