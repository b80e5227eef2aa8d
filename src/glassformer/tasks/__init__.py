"""Tasks: models with their tokenizers and labels, from raw text to raw text."""
