"""Start of several training processes on this machine with PyTorch's launcher."""

import logging
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from glassformer.config import ENVIRONMENT_PREFIX
from glassformer.errors import UserError
from glassformer.train_config import TrainConfig
from glassformer.training.distributed import check_devices


def is_requested(config: TrainConfig) -> bool:
    """Whether to start processes: the options ask for several, and no launcher started this one."""
    return (config.devices or 1) > 1 and "RANK" not in os.environ


def launch(config: TrainConfig, *, quiet: bool) -> None:
    """Train with `config.devices` processes, each of which is `glassformer train` with the same options.

    Raises:
        ConfigError: this machine does not have the devices.
        UserError: a process was killed.
        SystemExit: the training failed or was stopped; rank 0 has printed the reason.
    """
    n = config.devices
    assert n is not None
    check_devices(config, n)
    for name in logging.root.manager.loggerDict:
        if name.startswith("torch.distributed.elastic"):  # it logs with a traceback what the messages below say
            logging.getLogger(name).setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, environment_of_processes(n):
        options = Path(folder, "options.toml")
        options.write_text(config.to_toml(), encoding="utf-8", newline="\n")
        settings = LaunchConfig(
            min_nodes=1, max_nodes=1, nproc_per_node=n, max_restarts=0, run_id=uuid.uuid4().hex,
            rdzv_backend="c10d", rdzv_endpoint="localhost:0", local_addr="localhost",
        )  # fmt: skip
        command = ["-m", "glassformer", "train", "--config", str(options), *(["--quiet"] if quiet else [])]
        try:
            elastic_launch(settings, sys.executable)(*command)
        except ChildFailedError as error:
            rank, failure = cause(error.failures)
            if failure.exitcode > 0:
                sys.exit(failure.exitcode)
            raise UserError(
                f"rank {rank} (pid {failure.pid}) was ended by {signal.Signals(-failure.exitcode).name}.\n"
                "  All processes have ended. Run the same command again to resume from the last checkpoint."
            ) from None
        except SignalException as error:
            sys.exit(128 + error.sigval)


def cause(failures: Mapping[int, ProcessFailure]) -> tuple[int, ProcessFailure]:
    """The rank that ended first, and how. Times have whole seconds, so others may have ended at the same time.

    The others end because the first one did: with an error, by SIGPIPE, or by the launcher's SIGTERM.
    """
    consequences = (-signal.SIGTERM, -signal.SIGPIPE)

    def order(rank: int) -> tuple[int, bool, bool]:
        failure = failures[rank]
        return failure.timestamp, failure.exitcode in consequences, failure.exitcode > 0

    rank = min(failures, key=order)
    return rank, failures[rank]


@contextmanager
def environment_of_processes(n: int) -> Iterator[None]:
    """Inside this context, the environment is that of the processes to start.

    The cores are divided among them. The options are in a file, which variables of options would override.
    """
    before = dict(os.environ)
    n_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for name in TrainConfig.from_environment(before):
        del os.environ[ENVIRONMENT_PREFIX + name.upper()]
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, n_threads // n)))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
