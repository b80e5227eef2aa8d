"""Building blocks, tensors to tensors. They know no text and no files."""
