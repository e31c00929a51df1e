"""The controlled corpus: parallel documents, English to German-like, whose truth is known.

`generate` writes the documents, `write` the files, `oracles` the figures that say how hard the corpus is.

A truth record, one a sentence; positions are those of `str.split()`, from 0, source positions i, target positions j:

    alignment     [[i, j], ...]; the rest is in unaligned_source [i, ...] and unaligned_target [j, ...]
    pronouns      [{target: j, source: i, antecedent: {sentence: -k, word: i}, gender: m|f|n,
                  alternatives: [form, ...]}]
                  the antecedent stands k sentences back; alternatives are the forms of the other genders
    address       [{target: j, source: i, cue: {sentence: -k, word: i} | null, form: polite|familiar,
                  alternatives: [form], swap: [[j, word], ...]}]
                  the last cue in reach; swap makes the sentence right in the other form of address
    commitments   [{target: j, chosen: word, alternatives: [word, ...], forces: [j, ...],
                  continuations: {word: [word, ...]}}]
                  the first word that settles a choice, and the later words that it, or an alternative, forces;
                  no alternatives where the only right verb opens a bracket that has to be closed
    repetitions   [[i, ...], ...]: the places of every noun, adjective and number that stands more than once
    phenomena     [tag, ...]
"""

from core_models.text.controlled.corpus import ControlledCorpus, ControlledSplit, generate, write
from core_models.text.controlled.oracles import format_oracles, oracles

__all__ = ["ControlledCorpus", "ControlledSplit", "format_oracles", "generate", "oracles", "write"]
