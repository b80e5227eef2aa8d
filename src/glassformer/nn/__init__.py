"""Neural network modules: attention, feed-forward, normalization, positions. Tensors in, tensors out."""
