"""Messages about the state of the server to the service manager, by the protocol of sd_notify: systemd waits for them
where a unit has Type=notify and WatchdogSec.

Without the environment variable NOTIFY_SOCKET, no message is sent.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable

log = logging.getLogger("glassformer.serve")


def notify(message: str) -> None:
    """Send a message to the service manager: READY=1, WATCHDOG=1 or STOPPING=1."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # abstract: a name that is not in the file system
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(message.encode(), address)
    except OSError as error:
        log.warning("warning: %s was not sent to NOTIFY_SOCKET: %s", message, error)


def watchdog_s() -> float | None:
    """Seconds within which the service manager expects WATCHDOG=1; None if it does not expect it from this process.

    Environment: WATCHDOG_USEC, in microseconds, and WATCHDOG_PID.
    """
    microseconds, process = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not microseconds.isdecimal() or process not in ("", str(os.getpid())):
        return None
    return int(microseconds) / 1e6 or None


async def keep_alive(is_alive: Callable[[], bool]) -> None:
    """Send WATCHDOG=1 twice in each period of the watchdog, if `is_alive`. Without a watchdog, it returns at once."""
    seconds = watchdog_s()
    while seconds:
        if is_alive():
            notify("WATCHDOG=1")
        await asyncio.sleep(seconds / 2)
