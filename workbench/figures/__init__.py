"""What a figure is before it is drawn: the request for it, the registry of those that there are, and its origin."""
