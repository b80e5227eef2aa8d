"""One script a claim: `python -m benchmarks.NAME`, or `make bench` for all that take minutes."""
