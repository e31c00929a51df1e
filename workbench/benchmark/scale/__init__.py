"""What large data costs in time and memory: a corpus of millions of pairs, a test set of many segments and systems.

Each measurement writes its own data, runs in a process of its own and gives a row for every stage.
"""
