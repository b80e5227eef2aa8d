"""The connection between the processes: messages in JSON on a socket, each after its length in four bytes."""

import select
import socket
import struct
from collections.abc import Iterator

from pydantic import TypeAdapter

from glassformer.serve.limits import MAX_MESSAGE_BYTES
from glassformer.serve.messages import COMMANDS, Command, Message, ReadT, Reply, read

HEADER = struct.Struct(">I")


class MessageTooLong(ValueError):
    """A message is longer than `MAX_MESSAGE_BYTES`."""


def encode(message: Message) -> bytes:
    """The bytes of a message.

    Raises:
        MessageTooLong: the other process would refuse it.
    """
    data = message.model_dump_json().encode()
    if len(data) > MAX_MESSAGE_BYTES:
        raise MessageTooLong(f"message of {len(data)} bytes")
    return HEADER.pack(len(data)) + data


def decode(data: bytearray, messages: TypeAdapter[ReadT]) -> Iterator[ReadT]:
    """The complete messages at the beginning of received bytes, which are removed.

    Args:
        messages: those that are expected.

    Raises:
        ValueError: a message is too long or not expected.
    """
    while len(data) >= HEADER.size:
        (length,) = HEADER.unpack_from(data)
        if length > MAX_MESSAGE_BYTES:
            raise MessageTooLong(f"message of {length} bytes")
        end = HEADER.size + length
        if len(data) < end:
            return
        message = read(bytes(data[HEADER.size : end]), messages)
        del data[:end]
        yield message


class Channel:
    """The end of the model process, which waits for messages only as long as it has nothing to compute."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()

    def send(self, message: Reply) -> None:
        """Send a message.

        Raises:
            MessageTooLong: the other process would refuse it; nothing was sent.
            OSError: the other process has ended.
        """
        self.connection.sendall(encode(message))

    def receive(self, timeout_s: float) -> list[Command]:
        """The messages that have arrived, after waiting at most `timeout_s` seconds for the first.

        Raises:
            EOFError: the other process has ended.
            ValueError: a message is too long or not expected.
        """
        while select.select([self.connection], [], [], timeout_s)[0]:
            data = self.connection.recv(1 << 16)
            if not data:
                raise EOFError
            self.received += data
            timeout_s = 0
        return list(decode(self.received, COMMANDS))
