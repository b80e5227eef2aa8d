"""Corpora: readers of all file formats, checks and repairs of parallel data, and a generated demo corpus."""
