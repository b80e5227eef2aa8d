"""Import and export of Hugging Face transformers models and tokenizers."""
