"""Commands of ours as processes in the background: which may be started, their queue, their state."""
