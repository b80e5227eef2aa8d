"""Tokenized datasets and training batches."""
