"""What a model is trained to do: (model, batch) to a summed loss."""
