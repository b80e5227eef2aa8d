"""A Python that starts in milliseconds: `python -m MODULE ...` as a fork of a process that has imported torch.

`forking_python()` is the path of a program that passes its arguments, folder, environment and standard streams to a
server. The fork of the server runs the module as a new interpreter would. The program passes signals on, and ends as
the fork ends; when it is killed, the fork is killed a moment later, so wait for the end of its output after a kill.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

MODULES = (
    *("torch._inductor.config", "torch.distributed.run", "sacrebleu"),
    *("torch.distributed.fsdp", "torch.distributed.tensor"),
    *("glassformer.cli", "glassformer.synthetic.monolingual", "glassformer.training.launch"),
)
"""What the server imports."""

PROGRAM = """#!{python} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)])
socket.send_fds(server, [request.encode()], [0, 1, 2])
for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"):
    signal.signal(signal.Signals[name], lambda number, frame: server.send(bytes([number])))
code = int(server.recv(8) or 1)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@functools.cache
def forking_python() -> str:
    """The path of the program, with a server that ends with this process. Elsewhere than on Linux: Python itself."""
    if not hasattr(os, "pidfd_open"):
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="forks-"))
    program, address = folder / "python", folder / "socket"
    program.write_text(PROGRAM.format(python=sys.executable, address=str(address)))
    (folder / "glassformer").write_text(f'#!/bin/sh\nexec {program} -m glassformer "$@"\n')
    for path in (program, folder / "glassformer"):
        path.chmod(0o755)
    command = [sys.executable, "-m", "tests.forks", program, address]
    server = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.stdout.read(1)  # it listens

    @atexit.register
    def end():
        server.stdin.close()
        server.wait()
        shutil.rmtree(folder)

    return str(program)


def serve(address: str) -> list[str]:
    """Answer requests until standard input ends. Returns in each fork: the arguments of Python."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen()
    os.write(1, b"1")
    while listener in select.select([0, listener], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return attend(connection)
        connection.close()
    os._exit(0)


def attend(connection: socket.socket) -> list[str]:
    """Start a process, pass signals to it, and report its end. Returns in that process: the arguments of Python."""
    request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    if (pid := os.fork()) == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        arguments, folder, environment = json.loads(request)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        return arguments
    for stream in streams:
        os.close(stream)
    process = os.pidfd_open(pid)
    while process not in select.select([connection, process], [], [])[0]:
        signals = connection.recv(1) or bytes([signal.SIGKILL])
        os.kill(pid, signals[0])
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):  # the program was killed
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def run(arguments: list[str]) -> None:
    """Run a module (`-m NAME`) or a script as a new interpreter would, and end without freeing memory, which would take
    a second."""
    is_module = "-m" in arguments
    first = arguments.index("-m") + 1 if is_module else next(i for i, x in enumerate(arguments) if x.endswith(".py"))
    sys.argv, code = arguments[first:], 0
    try:
        if is_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in MODULES:
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1  # a fork has no other threads
    sys.executable = sys.argv[1]  # also for the processes that a command starts
    gc.freeze()  # a collection would copy the memory that a fork shares
    run(serve(sys.argv[2]))
