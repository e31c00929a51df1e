"""Translation, tracing, forced decoding and scoring of test sets by runs; expensive results are kept beside the run."""
