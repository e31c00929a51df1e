"""Errors that commands and pages show to the user as one sentence. Imports nothing of the project."""


class RunError(ValueError):
    """An unusable run or part of a run; the message says what is wrong and what to do."""
