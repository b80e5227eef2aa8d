"""Diagnosis and repair of parallel corpora."""
