"""Text: from files of sentences to batches of piece numbers.

files -> parallel.py -> vocabulary.py (vocabulary_training.py) -> documents.py -> prepared.py (mmap_arrays.py) ->
batch_plan.py, batches.py -> buckets.py -> batch_loader.py; imports.py loads sets by name, and controlled/ writes the
corpus with truth records. Each module imports only earlier ones.
"""
