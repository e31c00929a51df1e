"""Inspection of a trained system: attribution, logit lens, probes."""
