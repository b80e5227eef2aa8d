"""Group of processes that train together: joining it, agreement on numbers and files, and lost processes.

A launcher (`glassformer train --devices`, torchrun, or Slurm with the same variables) starts the processes. A single
process initializes nothing, and every exchange returns at once.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from glassformer.config import JsonObject
from glassformer.devices import pick_device
from glassformer.errors import ConfigError, UserError
from glassformer.train_config import TrainConfig

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables by which a launcher describes the group to each process."""

GRACE_S = 5.0
"""After a failed exchange, time for the other processes to report that they are alive."""

GLOO_ERRORS = re.compile("gloo|pair closure|closed by peer|reset by peer|broken pipe|timed out", re.IGNORECASE)
"""Words of the messages of gloo for a connection that has ended."""

POLL_S = 0.05
"""Longest interval between two looks for a result of another process."""


class LostProcessError(UserError):
    """Another process has ended or hangs."""

    def __init__(self, message: str, *, is_reported_here: bool) -> None:
        """
        Args:
            is_reported_here: this process is the first of those that are left.
        """
        super().__init__(message)
        self.is_reported_here = is_reported_here


@dataclass
class Processes:
    """The group of processes, seen from one of them. By default a group of one."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """Rank among the processes on the same machine."""
    local_size: int = 1
    timeout_s: float = 0.0
    store: Any = None
    """Key-value store of the group."""
    names: Iterator[int] = field(default_factory=count)
    """Numbers of the exchanges. All processes make the same exchanges in the same order."""

    # Numbers and tensors

    def gather(self, numbers: Sequence[float]) -> NDArray[np.float64]:
        """The numbers of all processes, one row for each."""
        return torch.stack(self.gather_tensor(torch.tensor(numbers, dtype=torch.float64))).numpy()

    def gather_tensor(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes, of equal shapes."""
        if self.size == 1:
            return [tensor]
        tensors = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(tensors, tensor)
        return tensors

    def average_(self, tensor: Tensor) -> None:
        """Replace a tensor by its average over all processes."""
        if self.size > 1:
            dist.all_reduce(tensor)
            tensor /= self.size

    def part(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The part of a batch for this process. Rows are sorted by length, so that the parts have similar lengths."""
        return indices[self.rank :: self.size]

    # Work of rank 0

    def lead(self, work: Callable[[], JsonObject]) -> JsonObject:
        """Do work in rank 0 only, and return its result in all processes.

        Raises:
            UserError: rank 0 has ended or hangs. An error of the work is raised in rank 0; the others exit with its
                exit code.
        """
        name = f"lead/{next(self.names)}"
        if self.rank:
            return self.wait_for(name, 0)
        with self.publishing(name) as publish:
            result = work()
            publish(result)
        return result

    @contextmanager
    def rank_0_first(self) -> Iterator[None]:
        """Run the body of the `with` statement in rank 0, then in the others. Errors are those of `lead`."""
        name = f"lead/{next(self.names)}"
        if self.rank:
            self.wait_for(name, 0)
            yield
            return
        with self.publishing(name) as publish:
            yield
            publish({})

    # Work that is shared

    def share(self, work: Callable[[], Any]) -> list[Any]:
        """Do work in each process, and return the results of all, as JSON-serializable data, in all.

        Raises:
            UserError: another process has failed, ended or hangs.
        """
        name = f"share/{next(self.names)}"
        with self.publishing(f"{name}/{self.rank}") as publish:
            own = work()
            publish(own)
        others = range(1, self.size)
        return self.lead(lambda: {"all": [own, *(self.wait_for(f"{name}/{rank}", rank) for rank in others)]})["all"]

    # Results in the store

    @contextmanager
    def publishing(self, name: str) -> Iterator[Callable[[Any], None]]:
        """Publish the result of the `with` statement or its failure, and meanwhile that this process is alive."""
        if self.size == 1:
            yield lambda result: None
            return
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(min(GRACE_S, self.timeout_s / 4)):
                self.store.add(f"{name}/heartbeat", 1)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield lambda result: self.store.set(name, json.dumps({"result": result}))
        except BaseException as error:
            message = {"error": str(error)} if isinstance(error, UserError) else {}
            self.store.set(name, json.dumps({"exit_code": exit_code(error), **message}))
            raise
        finally:
            ended.set()
            thread.join()

    def wait_for(self, name: str, rank: int) -> Any:
        """Wait for a result of a process, as long as that is alive."""
        beats, alive_s, interval_s = -1, time.monotonic(), 0.001
        while not self.store.check([name]):
            if (now := self.store.add(f"{name}/heartbeat", 0)) != beats:
                beats, alive_s = now, time.monotonic()
            if time.monotonic() - alive_s > self.timeout_s:
                raise self.lost([rank])
            time.sleep(interval_s)
            interval_s = min(POLL_S, 1.5 * interval_s)
        outcome = json.loads(self.store.get(name))
        if "exit_code" in outcome:
            if rank == 0:
                sys.exit(outcome["exit_code"])  # it reports its error
            raise UserError(outcome["error"]) if "error" in outcome else self.lost([rank])
        return outcome["result"]

    # Errors

    def check_same(self, fingerprint: Mapping[str, object]) -> None:
        """Check that all processes have the same values.

        Args:
            fingerprint: values by name, as they are to be called in the message.

        Raises:
            ConfigError: the first difference, with its rank.
        """
        if self.size == 1:
            return
        name = f"fingerprint/{next(self.names)}"
        self.store.set(f"{name}/{self.rank}", json.dumps(fingerprint, default=str))
        first, *others = (json.loads(self.read(f"{name}/{rank}", rank)) for rank in range(self.size))
        for rank, other in enumerate(others, 1):
            for key in first.keys() | other.keys():
                if first.get(key) != other.get(key):
                    raise ConfigError(
                        f"{key}: {other.get(key)} in rank {rank}, {first.get(key)} in rank 0.\n"
                        "  All processes need the same data, options and versions."
                    )

    def read(self, key: str, rank: int) -> bytes:
        """Value of a key that a process sets."""
        try:
            return self.store.get(key)
        except dist.DistError:
            raise self.lost([rank]) from None

    def lost(self, ranks: Sequence[int]) -> "LostProcessError":
        """The error for processes that no longer answer."""
        return LostProcessError(
            f"rank {', '.join(map(str, ranks))}: ended, or has not answered for {self.timeout_s:g} s (--timeout-s).\n"
            "  All processes end. The last checkpoint is intact: run the same command again to resume.",
            is_reported_here=self.rank == min(set(range(self.size)) - {*ranks}),
        )

    def silent_ranks(self) -> list[int]:
        """After a failed exchange: the ranks that do not report within GRACE_S that they are alive."""
        try:
            self.store.set(f"alive/{self.rank}", "")
            missing, end_s = list(range(self.size)), time.monotonic() + min(GRACE_S, self.timeout_s)
            while missing and time.monotonic() < end_s:
                missing = [rank for rank in missing if not self.store.check([f"alive/{rank}"])]
                time.sleep(POLL_S)
            return missing
        except dist.DistError:
            return [0]  # the store has ended, which is part of rank 0 or of the launcher

    @contextmanager
    def errors_reported_once(self) -> Iterator[None]:
        """Let one process report an error of all: rank 0, or for a lost process the first that is left.

        The others exit with its exit code. A connection error becomes the error for the lost process.
        """
        try:
            try:
                yield
            except RuntimeError as error:
                if is_connection_error(error) and (silent := self.silent_ranks()):
                    raise self.lost(silent) from error
                raise
        except SystemExit:
            raise
        except LostProcessError as error:
            if not error.is_reported_here:
                sys.exit(error.exit_code)
            raise
        except BaseException as error:
            with suppress(dist.DistError):
                self.store.set(f"error/{self.rank}", str(error))
                if self.rank:
                    self.store.wait(["error/0"], timedelta(seconds=GRACE_S))
                    if self.store.get("error/0").decode() == str(error):
                        sys.exit(exit_code(error))
            if self.rank and isinstance(error, UserError):
                error.args = (f"rank {self.rank}: {error}",)
            raise


def exit_code(error: BaseException) -> int:
    """Exit code of the command line after an error."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    signum = getattr(error, "signum", None)
    return getattr(error, "exit_code", 1) if signum is None else 128 + int(signum)


def is_connection_error(error: BaseException) -> bool:
    """Whether an exchange failed because another process has ended or hangs. Errors of gloo have no class."""
    return isinstance(error, dist.DistError) or (
        isinstance(error, RuntimeError) and GLOO_ERRORS.search(str(error)) is not None
    )


@contextmanager
def joined(config: TrainConfig) -> Iterator[Processes]:
    """Join the group that the environment variables describe, and leave it at the end of the `with` statement.

    Raises:
        ConfigError: the variables are incomplete, or this machine does not have the devices.
    """
    environment = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    size = int(environment.get("WORLD_SIZE", 1))
    if size == 1:
        if config.shard:
            raise ConfigError("--shard: there is one process only.\n  Start several: --devices N.")
        yield Processes()
        return
    if missing := [name for name in VARIABLES if name not in environment]:
        raise ConfigError(
            f"WORLD_SIZE is {size}, but {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set.\n"
            "  Start the processes with --devices N or torchrun, which set them, or unset WORLD_SIZE."
        )
    rank, local_rank, local_size = (int(environment[name]) for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    try:
        device = check_devices(config, local_size)
    except ConfigError as error:
        if local_rank:
            sys.exit(error.exit_code)
        raise
    if device.type == "cuda":
        torch.cuda.set_device(local_rank)
    timeout = timedelta(seconds=config.timeout_s)
    try:
        store, _, _ = next(rendezvous("env://", timeout=timeout))
        # torchrun keeps its store when it starts the processes again.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = PrefixStore(f"attempt-{attempt}", store)
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)
    except RuntimeError as error:
        address = f"{environment['MASTER_ADDR']}:{environment['MASTER_PORT']}"
        raise UserError(
            f"rank {rank}: the {size} processes did not meet at {address} within {config.timeout_s:g} s"
            f" (--timeout-s): {str(error).splitlines()[0]}\n"
            "  Check that all of them were started and that the address can be reached."
        ) from None
    store = PrefixStore("glassformer", store)
    processes = Processes(rank, size, local_rank, local_size, config.timeout_s, store)
    try:
        with processes.errors_reported_once():
            yield processes
    finally:
        dist.destroy_process_group()


def check_devices(config: TrainConfig, n: int) -> torch.device:
    """Check that `n` processes can train on this machine. Returns the type of their device.

    Raises:
        ConfigError: they cannot.
    """
    if sys.platform == "win32":
        raise ConfigError("training by several processes is not available on Windows.\n  Leave out --devices.")
    if config.devices not in (None, n):
        raise ConfigError(f"--devices {config.devices}: the launcher started {n} processes on this machine.")
    device = torch.device(pick_device(config.device))
    if device.type == "cuda" and torch.cuda.device_count() < n:
        raise ConfigError(
            f"{n} processes need {n} GPUs; this machine has {torch.cuda.device_count()}.\n"
            "  Start fewer processes, or use --device cpu."
        )
    return device
