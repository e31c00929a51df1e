"""Attribution: what each source word and each word written before adds to the log-probability of an output word."""

from workbench.app import frame
from workbench.app.components import empty_states, figure_view, forced_decoding_controls, sentence_texts
from workbench.store.runs import short_names
from workbench.views.attribution import controls
from workbench.views.attribution.measure import shared_words

frame.heading(
    "Attribution",
    "What each source word and each word written before adds to the log-probability of an output word, in nats.",
)
here = empty_states.needs_runs()
sentence_texts.show(here)
able = forced_decoding_controls.with_models(here)
translation = forced_decoding_controls.target()
with frame.sentences_for_errors():
    shown, chosen = controls.options(
        shared_words(able, here.view.test, here.view.sentence, translation, short_names(here.tested))
    )
    request = here.request(able, **translation, **chosen)
    figure_view.show("attribution" if shown == "bars" else "attribution-matrix", request)
    controls.completeness(request, every_word=shown == "matrix")
