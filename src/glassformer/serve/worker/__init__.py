"""The model process: loads models, and computes requests of the server."""
