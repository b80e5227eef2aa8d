"""Decoding: greedy search, beam search and sampling with any `Decodable` model."""
