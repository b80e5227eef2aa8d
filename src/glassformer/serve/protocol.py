"""HTTP/1.1 with deadlines: uvicorn's protocol, with time limits for headers, bodies and slow readers."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from glassformer.serve.limits import (
    BODY_S,
    CLOSE_S,
    HEADERS_S,
    MAX_BODY_BYTES,
    MAX_CONNECTIONS,
    MAX_HEADER_BYTES,
    WRITE_BUFFER_BYTES,
    WRITE_S,
)


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed when its client is too slow, or sends too long headers."""

    timer: asyncio.TimerHandle | None = None
    write_timer: asyncio.TimerHandle | None = None
    in_head = True
    is_refused = False
    n_head_bytes = 0
    """Bytes of the head that have arrived, if it is not complete."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        if len(self.connections) > MAX_CONNECTIONS:
            self.refuse(503, "Service Unavailable", "retry-after: 5\r\n")
        else:
            self.limit(HEADERS_S)

    def limit(self, seconds: float | None) -> None:
        """Close the connection after so many seconds, unless this is called again. None: no limit."""
        if self.timer:
            self.timer.cancel()
        self.timer = self.loop.call_later(seconds, self.refuse, 408, "Request Timeout") if seconds else None

    def close_soon(self) -> None:
        """Close the connection of a request that was answered before its body arrived, unless it arrives soon."""
        self.limit(None)
        self.timer = self.loop.call_later(CLOSE_S, self.transport.abort)

    def refuse(self, status: int, reason: str, headers: str = "") -> None:
        """Answer a request that is not complete, and close the connection."""
        self.is_refused = True
        if not self.transport.is_closing():
            self.transport.write(
                f"HTTP/1.1 {status} {reason}\r\nconnection: close\r\n{headers}content-length: 0\r\n\r\n".encode()
            )
            self.transport.close()
        self.loop.call_later(CLOSE_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.in_head:
            self.n_head_bytes += len(data)
            if self.n_head_bytes > MAX_HEADER_BYTES:
                self.refuse(431, "Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head, self.n_head_bytes = True, 0
        self.limit(HEADERS_S)

    def on_headers_complete(self) -> None:
        self.in_head = False
        n_bytes = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if n_bytes > MAX_HEADER_BYTES and not self.is_refused:  # it has arrived in one piece
            self.refuse(431, "Request Header Fields Too Large")
        if self.is_refused:
            return
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"0")
        is_unknown = b"transfer-encoding" in headers or not length.isdigit()
        is_large = is_unknown or int(length) > MAX_BODY_BYTES
        self.limit(4 * BODY_S if is_large else BODY_S)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.is_refused:
            self.limit(None)
            super().on_message_complete()
            if self.cycle.response_complete:  # before the body had arrived: the connection waits for a request again
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )

    def pause_writing(self) -> None:
        """Called when the client does not read what was sent."""
        super().pause_writing()
        self.write_timer = self.write_timer or self.loop.call_later(WRITE_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.end_write_timer()

    def on_response_complete(self) -> None:
        # If the last request is not the one that is answered, its body has a time limit of its own.
        is_answered_early = self.cycle.more_body and self.cycle.response_complete
        super().on_response_complete()
        if is_answered_early:
            self.close_soon()
        if not self.transport.is_closing() and self.transport.get_write_buffer_size():
            self.write_timer = self.write_timer or self.loop.call_later(WRITE_S, self.abort_unread)

    def abort_unread(self) -> None:
        """Close the connection if the client has not read the answer."""
        self.write_timer = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def end_write_timer(self) -> None:
        """End the time limit of writing."""
        if self.write_timer:
            self.write_timer.cancel()
            self.write_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.limit(None)
        self.end_write_timer()
        super().connection_lost(exc)
