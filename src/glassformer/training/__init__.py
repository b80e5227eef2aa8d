"""Training: from corpus files to a model folder."""
