"""Model to ids, over a protocol."""
