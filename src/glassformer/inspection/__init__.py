"""What happens inside a model, as data: recorded, explained, switched off, drawn."""
