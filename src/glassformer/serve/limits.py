"""Limits of the server. `glassformer serve --limits` prints them."""

MAX_TEXT_CHARACTERS = 20_000
"""Most characters of the texts of one request."""

MAX_TEXTS = 1_000
"""Most texts of one request."""

MAX_ALTERNATIVES = 15
"""Most alternatives to a translation."""

MAX_BEAM = 16
"""Largest beam size of a request."""

MAX_TERMS = 500
"""Most terms of a request."""

MAX_NEW_TOKENS = 1024
"""Most tokens that a request to continue a text generates."""

MAX_STOPS = 16
"""Most stop texts of a request."""

MAX_BODY_BYTES = 1 << 20
"""Largest body of a request."""

MAX_FIELDS = 1_100
"""Most fields of a form."""

MAX_DEPTH = 20
"""Most levels of a JSON value."""

MAX_FILE_BYTES = 4 << 20
"""Largest file."""

MAX_FILE_SEGMENTS = 20_000
"""Most lines or sentences of a file."""

MAX_HEADER_BYTES = 32 << 10
"""Most bytes of the request line and the headers."""

MAX_CONNECTIONS = 2_000
"""Most open connections."""

MAX_QUEUED = 20_000
"""Most texts that wait to be computed."""

HEADERS_S = 10.0
"""Seconds in which the headers of a request must arrive."""

BODY_S = 12.0
"""Seconds in which the body of a request must arrive, and a file in four times as many."""

CLOSE_S = 1.0
"""Seconds in which a client can read an answer before its connection is closed."""

WRITE_S = 12.0
"""Seconds in which a client must read what was sent to it."""

SEND_BUFFER_BYTES = 1 << 18
"""Bytes of an answer that the system keeps for a client that has not read them (Linux doubles it)."""

WRITE_BUFFER_BYTES = 1 << 14
"""Bytes of answers beyond these that a client has not read, after which its next request waits."""

DEADLINE_S = 15.0
"""Seconds in which a request must be answered; one that cannot is refused, with status 413 if it alone is too long."""

FILE_S = 3600.0
"""Seconds in which a file must be translated."""

START_S = 600.0
"""Seconds in which the model process must have loaded the models."""

SILENCE_S = 5.0
"""Seconds without a message after which the model process is restarted."""

IMPORT_S = 60.0
"""Seconds without a message in which the model process may import PyTorch, before the first inspection."""

ENCODE_S = 15.0
"""Seconds without a message in which the model process may encode a large answer."""

MAX_CRASHES = 2
"""A request that was being computed in this many crashes of the model process is refused."""

RESULT_S = 1800.0
"""Seconds for which a translated file or an inspection page can be fetched."""

MAX_RESULT_BYTES = 256 << 20
"""Most bytes of results that are kept; the oldest are removed."""

MAX_MESSAGE_BYTES = 64 << 20
"""Longest message between the processes, also the largest answer."""

STOP_S = 8.0
"""Seconds in which the requests that were begun can end when the server stops."""

MAX_SUGGESTIONS_BYTES = 64 << 20
"""Largest file of corrections."""
