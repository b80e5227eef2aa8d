"""Training text made by models: the answers of teachers, and translations of monolingual text."""
