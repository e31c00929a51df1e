"""What is measured over a test set of a run that reads the sentences before is what decoding its documents gives."""

import json
import shutil

import numpy as np
import pytest
import yaml

import core_models
from analyses.attention import joined, to_words
from workbench.evaluation import translate
from workbench.evaluation.forced_decoding import targets_of
from workbench.evaluation.result_cache import of_forced_references
from workbench.experiments.train import new_run, train
from workbench.figures.request import Request
from workbench.store.runs import RunError, open_run
from workbench.views.attention.alignment_error_figures import ComparedOptions, compared_table
from workbench.views.beam_size import measure as beam_sizes
from workbench.views.layer_routing import measure as routing
from workbench.views.past_future import measure as past_future
from workbench.views.past_future.probe import read_by_probe
from workbench.views.past_future_layers import measure as content_states
from workbench.views.reranking import measure as rescoring

HAN = {"hierarchical_attention": {}}
MADE = {
    "gdr": ("gdr", {"query_capsules": {"capsules": 2}}),
    "em-routing": ("em-routing", HAN),
    "pfrnn-loss": ("pfrnn-loss", {"hierarchical_attention": {"side": "encoder"}}),
    "concatenation": ("concatenation", None),
}


@pytest.fixture(scope="module")
def reading(demo_runs, tmp_path_factory):
    """Runs that read the sentences before and have what is measured: after one update, the test set translated."""
    folder, found = tmp_path_factory.mktemp("reading") / "demo", {}
    for name, (system, reader) in MADE.items():
        training = {"max_steps": 1, "warmup": 1, "batch_tokens": 300, "learning_rate": 0.05}
        data = demo_runs / "demo" / "data"
        run = new_run(folder / name, f"{system}:preset=tiny", data, training, {"max_length": 6, "beam": 2})
        if reader is not None:
            file = run.folder / "config.yaml"
            config = yaml.safe_load(file.read_text(encoding="utf-8"))
            config["model"]["mechanisms"].append(reader)
            file.write_text(yaml.safe_dump(config), encoding="utf-8")
        train(open_run(run.folder), device="cpu")
        run = open_run(run.folder)
        translate.translate_test(run, *translate.test_set(run, "test"))
        found[name] = run
    return found


@pytest.fixture
def run_of(reading, tmp_path):
    """A copy of one of the runs, to be measured beside; its test set without documents if that is asked for."""

    def copied(name, documents=True):
        folder = shutil.copytree(reading[name].folder, tmp_path / f"{name}-{documents}")
        if not documents:
            (folder / "translations" / "test" / "documents.txt").unlink()
        return open_run(folder)

    return copied


def in_documents(run, *names, documents=True):
    """The references of the whole test set forced with its documents, by the translator's own account."""
    test_set = run.translations("test").test_set
    ids = test_set.documents if documents else None
    return core_models.load(run.reference).score(test_set.sources, test_set.references, ids, trace=names)


@pytest.mark.parametrize("documents", [True, False])
def test_past_and_future(run_of, documents):
    run = run_of("gdr", documents)
    wanted = in_documents(run, past_future.MASS, past_future.CROSS, documents=documents)
    for one in past_future.measured(run, "test", "reference", 8):
        there = past_future.reduced(one.row, wanted[one.row].source_tokens, wanted[one.row].tokens,
                                    wanted[one.row].trace)  # fmt: skip
        np.testing.assert_allclose(one.mass, there.mass, atol=1e-5)
        np.testing.assert_allclose(one.attention, there.attention, atol=1e-5)


def test_what_is_measured_in_documents_is_not_what_is_measured_without(run_of):
    """And each is kept by itself."""
    for name, measure in (
        ("gdr", lambda run: np.concatenate([one.mass.ravel() for one in past_future.measured(run, "test", "own")])),
        ("em-routing", lambda run: routing.measured(run, "decoder", targets_of(run, "test", "own", None)).entropy),
        ("pfrnn-loss", lambda run: np.concatenate(
            [one["past.norm"] for one in content_states.measured(run, "test", "reference")])),
    ):  # fmt: skip
        run, alone = run_of(name), run_of(name, documents=False)
        without = measure(alone)
        shutil.copytree(alone.statistics, run.statistics, dirs_exist_ok=True)
        assert not np.allclose(measure(run), without, atol=1e-6), name


def test_a_trace_that_was_stored_with_documents_says_the_same(run_of):
    for name in ("gdr", "concatenation"):
        run = run_of(name)
        live = past_future.measured(run, "test", "own")
        shutil.rmtree(run.statistics)
        translate.trace_test(run, run.translations("test"), ["*.mass", "decoder.cross_attention"])
        for one, stored in zip(live, past_future.measured(run, "test", "own"), strict=True):
            assert (one.source, one.target) == (stored.source, stored.target)
            np.testing.assert_allclose(one.attention, stored.attention, atol=1e-3)
            np.testing.assert_allclose(one.mass, stored.mass, atol=1e-3)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_routing_of_layers(run_of, side):
    """The reader of translations reads the run's own."""
    run = run_of("em-routing")
    translations, translator = run.translations("test"), core_models.load(run.reference)
    test_set = translations.test_set
    contexts, outputs = translator.contexts(test_set.sources, test_set.documents, translations.hypotheses)
    name = f"em_routing.{side}.assignments"
    targets = targets_of(run, "test", "own", None)
    tokens = [detail["tokens"] for detail in translations.details]
    traces = translator.trace(test_set.sources, tokens, [name], contexts=contexts, context_outputs=outputs)
    wanted = routing.concatenate(routing.sentence_statistics(traces[row][name].values) for row in targets.pieces)
    np.testing.assert_allclose(routing.measured(run, side, targets).entropy, wanted.entropy, atol=1e-5)


@pytest.mark.parametrize("documents", [True, False])
def test_content_states(run_of, documents):
    run = run_of("pfrnn-loss", documents)
    wanted = in_documents(run, *content_states.NAMES, documents=documents)
    for own, there in zip(content_states.measured(run, "test", "reference"), wanted, strict=True):
        steps = content_states.steps_of(there.trace)
        assert set(own) == set(steps)
        for name in steps:
            np.testing.assert_allclose(own[name], steps[name], atol=1e-4)


def test_joined_sentences_are_measured_by_their_own_words(run_of):
    """Attention is of the sentence's own words, though more was read."""
    run = run_of("concatenation")
    wanted, test_set = in_documents(run, past_future.CROSS), run.translations("test").test_set
    longer = 0
    for one in past_future.measured(run, "test", "reference"):
        there = wanted[one.row]
        assert one.source == (*test_set.sources[one.row].split(), "</s>")
        read = joined(there.source_tokens)
        assert tuple(read[-len(one.source) :]) == one.source
        longer += len(read) > len(one.source)
        whole = np.stack([to_words(layer, there.tokens, there.source_tokens)
                          for layer in there.trace[past_future.CROSS].values.mean(1)])  # fmt: skip
        np.testing.assert_allclose(one.attention, whole[..., -len(one.source) :], atol=1e-5)
    assert longer
    (row,) = compared_table(Request((run,), "test"), ComparedOptions(links="truth")).itertuples()
    assert (row.n, 0 < row.percent < 100) == (len(test_set.sources), True)


def test_n_best_lists_are_scored_in_their_documents(reading, tmp_path):
    """Every hypothesis has the log P of its forced pass after the run's own translations; here the next sentence's
    translation stands in each list too."""
    run = open_run(shutil.copytree(reading["em-routing"].folder, tmp_path / "em-routing"))
    stored, file = run.translations("test"), run.folder / "translations" / "test" / "details.jsonl"
    others = zip(stored.hypotheses[1:], stored.details[1:], strict=True)
    scored = {"score": -1.0, "log_prob": -1.0}
    lists = [{"text": text, "tokens": detail["tokens"], **scored} for text, detail in others]
    lists.append({"text": "", "tokens": ["</s>"], **scored})
    lines = [{**detail, "n_best": [one]} for detail, one in zip(stored.details, lists, strict=True)]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    rescoring.measure(run, "test")
    found, every = rescoring.read(run, "test"), rescoring.lists_of(run, "test")
    translations, translator = run.translations("test"), core_models.load(run.reference)
    test_set = translations.test_set
    contexts, outputs = translator.contexts(test_set.sources, test_set.documents, translations.hypotheses)
    wanted, alone = (
        [
            trace["log_prob"].values.sum()
            for row, lists in enumerate(every)
            for trace in translator.trace(
                [test_set.sources[row]] * len(lists), [one["tokens"] for one in lists], ["log_prob"],
                contexts=[contexts[row]] * len(lists) if read else None,
                context_outputs=[outputs[row]] * len(lists) if read else None,
            )
        ]
        for read in (True, False)
    )  # fmt: skip
    main = found.values[:, found.parts.index("main")]
    np.testing.assert_allclose(main, wanted, atol=1e-4)
    assert np.abs(main - alone).max() > 1e-3


def test_beam_sizes_are_measured_in_their_documents(reading, tmp_path):
    """Beams and the exact search of two words at most, by hand with the sentences before and the widest beam's
    translations of them."""
    run = open_run(shutil.copytree(reading["em-routing"].folder, tmp_path / "em-routing"))
    config = run.folder / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("max_length: 6", "max_length: 2"), encoding="utf-8")
    run, test_set = open_run(run.folder), reading["em-routing"].translations("test").test_set
    beam_sizes.measure(run, test_set, [1, 2], short_words=12, most_short=6, most_nodes=1000, length_penalty=0.0)
    said, translator = beam_sizes.read(run, "test"), core_models.load(run.reference)
    assert said["decided"] == said["short"] == 6
    lines, search = (test_set.sources, test_set.documents), {"length_penalty": 0.0}
    written = {size: translator.translate(*lines, beam=size, **search) for size in (1, 2)}
    contexts, outputs = translator.contexts(test_set.sources, test_set.documents, [one.text for one in written[2]])
    errors, changed = {1: 0, 2: 0}, 0
    for row in [row for row, line in enumerate(test_set.sources) if len(line.split()) <= 12][:6]:
        best = translator.exact(test_set.sources[row], context=contexts[row], context_output=outputs[row])
        changed += abs(best.log_prob - translator.exact(test_set.sources[row]).log_prob) > 1e-3
        for size in errors:
            (beam,) = translator.translate([test_set.sources[row]], beam=size, **search,
                                           contexts=[contexts[row]], context_outputs=[outputs[row]])  # fmt: skip
            errors[size] += not beam.finished or best.log_prob > beam.log_prob + 1e-3
    assert changed
    assert [row["errors"] for row in said["sizes"]] == list(errors.values())
    for size, row in zip(written, said["sizes"], strict=True):
        assert row["empty"] == [one.text for one in written[size]].count("")


@pytest.mark.slow
def test_a_probe_reads_the_states_of_the_document(reading, tmp_path):
    """With no documents its answers are others; joined sentences are refused with a reason."""
    answers = []
    for documents in (True, False):
        run = open_run(shutil.copytree(reading["gdr"].folder, tmp_path / f"gdr-{documents}"))
        if not documents:
            (run.folder / "translations" / "test" / "documents.txt").unlink()
        answers.append(read_by_probe(run, "test", range(4), lessons=60))
    assert np.abs(answers[0][2] - answers[1][2]).max() > 1e-4
    with pytest.raises(RunError, match="reads the sentences before and the sentence as one text"):
        read_by_probe(reading["concatenation"], "test", range(2), lessons=20)


def test_what_forced_references_depend_on_has_the_documents_that_a_run_reads(run_of, demo_runs, tmp_path):
    """Of a run that reads no sentence but its own it has the texts alone."""
    plain = open_run(shutil.copytree(demo_runs / "demo" / "transformer", tmp_path / "plain"))
    for run, reads in ((run_of("gdr"), True), (plain, False)):
        before = of_forced_references(run, "test")
        documents = run.folder / "translations" / "test" / "documents.txt"
        documents.write_text("all of one\n" * 30, encoding="utf-8")
        assert (of_forced_references(open_run(run.folder), "test") != before) == reads
