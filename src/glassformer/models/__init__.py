"""Families of models, made of the blocks in nn."""
