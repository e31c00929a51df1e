"""Looking inside a trained system: attribution, logit lens, probes."""
