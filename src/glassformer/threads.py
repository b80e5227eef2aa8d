"""The number of CPU threads that computations use: that of torch, where it is loaded."""

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from glassformer import cgroups

VARIABLE = "OMP_NUM_THREADS"
"""Environment variable that torch reads the number from when it is loaded."""


def n_threads() -> int:
    """Number of threads."""
    if torch := sys.modules.get("torch"):
        return int(torch.get_num_threads())
    with suppress(ValueError):
        if (n := int(os.environ.get(VARIABLE, "").split(",")[0])) > 0:
            return n
    return n_cores()


def set_n_threads(n: int) -> None:
    """Use another number of threads, also in torch if it is loaded later."""
    os.environ[VARIABLE] = str(n)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(n)


def heed_quota() -> None:
    """Let torch, if it is loaded later, use no more threads than a quota of processor time suffices for."""
    allowed = cgroups.n_cpus()
    if VARIABLE not in os.environ and allowed is not None and allowed < (os.cpu_count() or 1):
        os.environ[VARIABLE] = str(n_cores())


@cache
def n_cores() -> int:
    """Number of cores that this process may use. Two threads of one core count once, as in torch. Of a container or a
    service with a quota of processor time, as many as it suffices for."""
    allowed = cgroups.n_cpus() or os.cpu_count() or 1
    if not hasattr(os, "sched_getaffinity"):
        return min(allowed, os.cpu_count() or 1)
    processors = os.sched_getaffinity(0)
    cores = set()
    for i in processors:
        siblings = f"{i}"
        with suppress(OSError):
            siblings = Path(f"/sys/devices/system/cpu/cpu{i}/topology/thread_siblings_list").read_text()
        cores.add(siblings)
    return max(1, min(allowed, len(cores)))
