"""Text: from files of sentences to batches of piece numbers.

files -> parallel.py -> vocabulary.py (vocabulary_training.py) -> documents.py -> binary.py (arrays.py) -> plan.py ->
batches.py; imports.py brings sets by name, and controlled/ writes the corpus whose truth is known. Each
imports only what stands before it.
"""
