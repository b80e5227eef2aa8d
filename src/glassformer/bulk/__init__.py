"""Processing of many files of lines in chunks, which are kept: a run that was interrupted goes on."""
