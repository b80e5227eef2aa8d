"""Model classes, built from the modules in nn."""
