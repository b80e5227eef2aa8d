"""HTTP server for model folders: a process that answers requests, and a process that computes."""
