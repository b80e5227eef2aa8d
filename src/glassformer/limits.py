"""Every hard limit, in one table: what is larger is refused or reported, never read into memory blindly."""

MAX_LINE_BYTES = 1 << 20
"""One line of a corpus or of standard input, in bytes."""

MAX_UNBROKEN_BYTES = 64 << 20
"""Bytes without a line end after which input is no text: an endless device, or a binary file."""

MAX_PIPE_WAIT_S = 10.0
"""Seconds that a named pipe is waited for until a program opens it for writing."""

MAX_FILE_BYTES = 64 << 30
"""One corpus file after gunzip, in bytes."""

MAX_GZIP_RATIO = 1000
"""Bytes out per byte in of a .gz file, beyond its first megabyte: a larger ratio is a bomb, not text."""

MAX_JSON_BYTES = 256 << 20
"""config.json, manifest.json, tokenizer.json of a model folder, in bytes."""

MAX_TOKENS = 4096
"""Longest sequence any model is asked for, in tokens."""
