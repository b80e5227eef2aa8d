"""Exchanges between processes, here threads with a common store, and the conditions of joining a group."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from glassformer.errors import ConfigError, UserError
from glassformer.train_config import TrainConfig
from glassformer.training import distributed
from glassformer.training.distributed import Processes, joined


def config(**options) -> TrainConfig:
    return TrainConfig(src=("a",), out="run", device="cpu", **options)


def in_all(size: int, function, timeout_s: float = 20.0) -> list:
    """Results, or errors, of a function of Processes in a group of threads."""
    store = dist.HashStore()

    def call(rank: int):
        try:
            return function(Processes(rank, size, rank, size, timeout_s, store))
        except BaseException as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(call, range(size)))


@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_the_parts_of_a_batch_are_disjoint_and_complete(n):
    parts = [Processes(rank, 3).part(np.arange(n)) for rank in range(3)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_rank_0_works_and_all_get_the_result():
    workers = []
    results = in_all(3, lambda group: group.lead(lambda: workers.append(group.rank) or {"score": 0.1}))
    assert results == [{"score": 0.1}] * 3
    assert workers == [0]


def test_the_others_follow_rank_0():
    order = []

    def body(group):
        with group.rank_0_first():
            order.append(group.rank)

    in_all(3, body)
    assert order[0] == 0
    assert sorted(order) == [0, 1, 2]


def test_an_error_of_rank_0_ends_the_others_with_its_exit_code():
    def fail():
        raise ConfigError("wrong")

    first, *others = in_all(3, lambda group: group.lead(fail))
    assert isinstance(first, ConfigError)
    assert [(type(error), error.code) for error in others] == [(SystemExit, 2)] * 2


def test_a_rank_0_that_hangs_is_named(monkeypatch):
    def body(group):
        return group.lead(dict) if group.rank else None

    error = in_all(2, body, timeout_s=0.2)[1]
    assert isinstance(error, UserError)
    assert str(error).startswith("rank 0: ended, or has not answered for 0.2 s")


def test_work_of_rank_0_may_take_longer_than_the_time_limit():
    import threading

    pause = threading.Event()
    results = in_all(2, lambda group: group.lead(lambda: {"waited": pause.wait(0.5)}), timeout_s=0.2)
    assert results == [{"waited": False}] * 2


def test_the_first_difference_between_processes_is_named_with_its_rank():
    errors = in_all(3, lambda group: group.check_same({"--lr": "2" if group.rank == 2 else "1", "--seed": "1"}))
    assert all(isinstance(error, ConfigError) for error in errors)
    assert {str(error).split("\n")[0] for error in errors} == {"--lr: 2 in rank 2, 1 in rank 0."}
    assert in_all(2, lambda group: group.check_same({"--lr": "1"})) == [None, None]


def test_an_error_of_all_is_raised_once_and_an_error_of_one_names_its_rank(monkeypatch):
    monkeypatch.setattr(distributed, "GRACE_S", 0.2)

    def body(group, is_common):
        with group.errors_reported_once():
            if is_common or group.rank:
                raise UserError("wrong")

    first, other = in_all(2, lambda group: body(group, True))
    assert str(first) == "wrong"
    assert isinstance(other, SystemExit)
    assert str(in_all(2, lambda group: body(group, False))[1]) == "rank 1: wrong"


@pytest.mark.parametrize(
    "message",
    ["[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:9", "Application"
     " timeout caused pair closure", "Timed out waiting 3000ms for recv operation to complete"],
)  # fmt: skip
def test_a_connection_error_becomes_the_rank_that_does_not_report(monkeypatch, message):
    monkeypatch.setattr(distributed, "GRACE_S", 0.2)

    def body(group):
        if group.rank != 1:
            with group.errors_reported_once():
                raise RuntimeError(message)

    first, _, last = in_all(3, body)
    assert str(first).startswith("rank 1: ended, or has not answered")
    assert isinstance(last, SystemExit)


def test_an_error_that_is_not_of_a_connection_stays(monkeypatch):
    monkeypatch.setattr(distributed, "GRACE_S", 0.2)
    with (
        pytest.raises(RuntimeError, match="shapes"),
        Processes(0, 2, 0, 2, 1.0, dist.HashStore()).errors_reported_once(),
    ):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_one_process_initializes_nothing(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined(config()) as processes:
        assert (processes.rank, processes.size) == (0, 1)
        assert processes.gather([3.0, 4.0]).tolist() == [[3, 4]]
        assert not dist.is_initialized()


def refusal(environment: dict[str, str], monkeypatch, **options) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as error, joined(config(**options)):
        pass
    return str(error.value)


GROUP_OF_TWO = {
    "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost",
    "MASTER_PORT": "1",
}  # fmt: skip


def test_a_world_size_without_a_group_is_an_error(monkeypatch):
    message = refusal({"WORLD_SIZE": "2"}, monkeypatch)
    assert message.startswith("WORLD_SIZE is 2, but RANK, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT are")


def test_shards_need_several_processes(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert "--devices N" in refusal({}, monkeypatch, shard=True)


def test_more_processes_than_gpus_are_an_error(monkeypatch):
    monkeypatch.setattr(distributed, "pick_device", lambda name: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert refusal(GROUP_OF_TWO, monkeypatch).startswith("2 processes need 2 GPUs; this machine has 1.")


def test_windows_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert "Windows" in refusal(GROUP_OF_TWO, monkeypatch)


def test_another_number_of_devices_than_the_launcher_started_is_an_error(monkeypatch):
    assert refusal(GROUP_OF_TWO, monkeypatch, devices=3).startswith("--devices 3: the launcher started 2 processes")


def test_processes_get_no_variable_of_an_option_and_all_others(monkeypatch):
    from glassformer.training.launch import environment_of_processes

    monkeypatch.setenv("GLASSFORMER_LR", "1")
    monkeypatch.setenv("GLASSFORMER_KERNELS", "avx2")
    with environment_of_processes(2):
        assert "GLASSFORMER_LR" not in os.environ
        assert os.environ["GLASSFORMER_KERNELS"] == "avx2"
    assert os.environ["GLASSFORMER_LR"] == "1"


@pytest.mark.parametrize(
    ("exit_codes", "expected"),
    [([-signal.SIGPIPE, -signal.SIGKILL], 1), ([1, -signal.SIGSEGV], 1), ([-signal.SIGTERM, 2], 1), ([1, 1], 0)],
)
def test_of_processes_that_end_in_the_same_second_the_cause_is_the_one_that_did_not_follow(exit_codes, expected):
    from glassformer.training.launch import cause

    failures = {rank: ProcessFailure(rank, 99, code, "") for rank, code in enumerate(exit_codes)}
    for failure in failures.values():
        failure.timestamp = 5
    assert cause(failures) == (expected, failures[expected])
    failures[1 - expected].timestamp = 4
    assert cause(failures)[0] == 1 - expected
