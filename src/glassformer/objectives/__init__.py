"""Training objectives: losses and input corruption."""
