"""Files to sentence pairs: readers, the data doctor, and the embedded corpus."""
