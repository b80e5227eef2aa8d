"""From a PyTorch model to the graph of its computation, for the runtime and for exports."""
