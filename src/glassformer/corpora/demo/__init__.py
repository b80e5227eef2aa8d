"""Generator of the English-French demo corpus: lexicon, inflection, grammar rules and sampling of sentence pairs."""
