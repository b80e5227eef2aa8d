"""Benchmarks, one script each: `python -m benchmarks.NAME`, or `make bench` for those that take minutes."""
