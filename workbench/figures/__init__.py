"""Requests, options, registry and provenance of figures."""
