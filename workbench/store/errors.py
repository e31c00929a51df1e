"""What commands and pages tell a reader in one sentence. Imports nothing of ours."""


class RunError(ValueError):
    """A run, or something it should hold, that cannot be used; the message says what is wrong and what to do."""
