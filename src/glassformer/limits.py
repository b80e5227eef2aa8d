"""Hard limits of input sizes. Larger inputs are rejected or reported before they are read into memory."""

MAX_LINE_BYTES = 1 << 20
"""Maximum length of a line of a corpus or of standard input, in bytes."""

MAX_UNBROKEN_BYTES = 64 << 20
"""Maximum number of bytes without a line end; longer input is not text, but a device or a binary file."""

MAX_PIPE_WAIT_S = 10.0
"""Maximum number of seconds to wait until another program opens a named pipe for writing."""

MAX_FILE_BYTES = 64 << 30
"""Maximum size of a corpus file after decompression, in bytes."""

MAX_GZIP_RATIO = 1000
"""Maximum compression ratio of a .gz file beyond its first megabyte; a larger ratio indicates a decompression bomb."""

MAX_JSON_BYTES = 256 << 20
"""Maximum size of config.json, manifest.json and tokenizer.json of a model folder, in bytes."""

MAX_DOCUMENT_BYTES = 256 << 20
"""Maximum size of a file that is read at once, such as a catalogue, after decompression, in bytes."""

MAX_TOKENS = 8192
"""Maximum value of `max_len`, in tokens."""
