"""Task and corpus to a model folder."""
