"""Text to text: what a trained folder does for a user."""
