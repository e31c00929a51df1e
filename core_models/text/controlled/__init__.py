"""The controlled corpus: generated parallel documents, English to German-like, with truth records.

`generate` generates the documents, `write` writes the files, `oracles` measures how hard the corpus is.

The truth record of a sentence; positions are those of `str.split()`, from 0, source positions i, target positions j:

    alignment     [[i, j], ...]; the rest is in unaligned_source [i, ...] and unaligned_target [j, ...]
    pronouns      [{target: j, source: i, antecedent: {sentence: -k, word: i}, gender: m|f|n,
                  alternatives: [form, ...]}]
                  the antecedent is k sentences back; alternatives are the forms of the other genders
    address       [{target: j, source: i, cue: {sentence: -k, word: i} | null, form: polite|familiar,
                  alternatives: [form], swap: [[j, word], ...]}]
                  the last cue in reach; swap converts the sentence to the other form of address
    commitments   [{target: j, chosen: word, alternatives: [word, ...], forces: [j, ...],
                  continuations: {word: [word, ...]}}]
                  the first word that decides a choice, and the later words that it, or an alternative, forces;
                  no alternatives if the only right verb opens a bracket that must be closed
    repetitions   [[i, ...], ...]: the positions of every noun, adjective and number that occurs more than once
    phenomena     [tag, ...]
"""

from core_models.text.controlled.corpus import ControlledCorpus, ControlledSplit, generate, write
from core_models.text.controlled.oracles import format_oracles, oracles

__all__ = ["ControlledCorpus", "ControlledSplit", "format_oracles", "generate", "oracles", "write"]
