"""Limits of control groups, in both versions of their files."""

import pytest

from glassformer import cgroups, threads

VERSION_2 = {
    "memory.max": "max",
    "service/memory.max": "3000",
    "service/memory.current": "1000",
    "service/memory.stat": "anon 5\ninactive_file 200",
    "service/own/memory.max": "2500",
    "service/own/memory.current": "100",
    "cpu.max": "max 100000",
    "service/cpu.max": "150000 100000",
}
VERSION_1 = {
    "memory/memory.limit_in_bytes": "9223372036854771712",
    "memory/memory.usage_in_bytes": "5",
    "memory/job/memory.limit_in_bytes": "2000",
    "memory/job/memory.usage_in_bytes": "700",
    "memory/job/memory.stat": "cache 9\ntotal_inactive_file 50",
    "cpu/job/cpu.cfs_quota_us": "400000",
    "cpu/job/cpu.cfs_period_us": "100000",
    "cpu/cpu.cfs_quota_us": "-1",
    "cpu/cpu.cfs_period_us": "100000",
}


@pytest.fixture
def limits(monkeypatch, tmp_path):
    """Makes the files of control groups, and says to which of them the process belongs."""

    def made(files, membership):
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        (tmp_path / "membership").write_text(membership)
        monkeypatch.setattr(cgroups, "ROOT", tmp_path / "cgroup")
        monkeypatch.setattr(cgroups, "MEMBERSHIP", tmp_path / "membership")
        return cgroups.free_bytes(), cgroups.n_cpus()

    return made


@pytest.mark.parametrize(
    ("files", "membership", "expected"),
    [
        (VERSION_2, "0::/service/own\n", (2200, 2)),  # the service has used more than its part
        (VERSION_2, "0::/\n", (None, None)),
        ({"memory.max": "4096", "cpu.max": "50000 100000"}, "0::/\n", (4096, 1)),  # as a container sees itself
        (VERSION_1, "4:memory:/job\n2:cpu,cpuacct:/job\n1:name=systemd:/\n0::/\n", (1350, 4)),
        ({}, "0::/gone\n", (None, None)),
        ({"memory.max": "100", "memory.current": "300"}, "0::/\n", (0, None)),
    ],
)
def test_the_least_of_all_groups_counts(limits, files, membership, expected):
    assert limits(files, membership) == expected


def test_without_control_groups_there_is_no_limit(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroups, "MEMBERSHIP", tmp_path / "none")
    assert (cgroups.free_bytes(), cgroups.n_cpus()) == (None, None)


def test_threads_are_as_many_as_a_quota_suffices_for(monkeypatch):
    monkeypatch.setattr(threads.os, "environ", {})
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda pid: {10_000, 10_001, 10_002}, raising=False)
    count = threads.n_cores.__wrapped__
    monkeypatch.setattr(threads, "n_cores", count)
    for allowed, expected, variable in ((None, 3, None), (2, 2, "2"), (6, 3, "3"), (8, 3, None)):
        monkeypatch.setattr(cgroups, "n_cpus", lambda allowed=allowed: allowed)
        threads.heed_quota()
        assert (count(), threads.os.environ.pop(threads.VARIABLE, None)) == (expected, variable)
    threads.os.environ[threads.VARIABLE] = "7"
    monkeypatch.setattr(cgroups, "n_cpus", lambda: 1)
    threads.heed_quota()
    assert threads.os.environ == {threads.VARIABLE: "7"}
