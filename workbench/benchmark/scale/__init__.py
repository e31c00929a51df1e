"""Time and memory for large data: a corpus of millions of pairs, a test set of many segments and systems.

Each measurement writes its own data, runs in a process of its own and returns a row for every stage.
"""
