"""Messages between the processes: JSON objects on a socket, each after its length in four bytes."""

import json
import select
import socket
import struct
from collections.abc import Iterator
from typing import Any

from glassformer.serve.limits import MAX_MESSAGE_BYTES

Message = dict[str, Any]
HEADER = struct.Struct(">I")


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    data = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()
    return HEADER.pack(len(data)) + data


def decode(data: bytearray) -> Iterator[Message]:
    """The complete messages at the beginning of received bytes, which are removed.

    Raises:
        ValueError: a message is too long or not an object.
    """
    while len(data) >= HEADER.size:
        (length,) = HEADER.unpack_from(data)
        if length > MAX_MESSAGE_BYTES:
            raise ValueError(f"message of {length} bytes")
        end = HEADER.size + length
        if len(data) < end:
            return
        message = json.loads(bytes(data[HEADER.size : end]))
        if not isinstance(message, dict):
            raise ValueError("message is not an object")
        del data[:end]
        yield message


class Channel:
    """The end of the model process, which waits for messages only as long as it has nothing to compute."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()

    def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            OSError: the other process has ended.
        """
        self.connection.sendall(encode(message))

    def receive(self, timeout_s: float) -> list[Message]:
        """The messages that have arrived, after waiting at most `timeout_s` seconds for the first.

        Raises:
            EOFError: the other process has ended.
        """
        while select.select([self.connection], [], [], timeout_s)[0]:
            data = self.connection.recv(1 << 16)
            if not data:
                raise EOFError
            self.received += data
            timeout_s = 0
        return list(decode(self.received))
