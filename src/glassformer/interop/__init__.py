"""Models of other programs, both ways."""
