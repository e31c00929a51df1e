"""Runs at work on a test set: translate, trace, force and score; what took long is kept beside the run."""
