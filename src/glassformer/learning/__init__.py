"""Objectives: what the training of each task needs, from examples to losses and validation metrics."""
