"""Operations of models with several implementations: a module for each, and the selection in `operation`."""
