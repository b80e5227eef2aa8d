"""Ray's actors, with a stand-in for Ray, which is too large to install for the tests."""

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from glassformer.bulk import ray_actors
from glassformer.bulk.chunks import Chunk
from glassformer.bulk.ray_actors import Actors
from glassformer.cli import bulk
from glassformer.cli.jobs import Job
from glassformer.cli.options import BulkOptions
from glassformer.errors import ConfigError, UserError


class RayError(Exception):
    pass


class Ray(ModuleType):
    """What is used of Ray: actors answer when they are waited for, the last question first."""

    def __init__(self):
        super().__init__("ray")
        self.exceptions = SimpleNamespace(RayError=RayError)
        self.started, self.is_up, self.lost = [], None, False
        self.most_waiting = 0

    def init(self, address, **options):
        self.is_up = address

    def shutdown(self):
        self.is_up = None

    def remote(self, actor_class):
        return SimpleNamespace(options=lambda **options: SimpleNamespace(remote=lambda *a: self.start(actor_class(*a))))

    def start(self, actor):
        self.started.append(actor)
        handle = SimpleNamespace(ask=SimpleNamespace(remote=lambda value=None: Reference(actor, value)))
        return handle

    def wait(self, references):
        self.most_waiting = max(self.most_waiting, len(references))
        return references[-1:], references[:-1]

    def get(self, reference):
        if self.lost:
            raise RayError("the cluster has gone")
        return reference.actor.ask(reference.value)


class Reference:
    def __init__(self, actor, value):
        self.actor, self.value = actor, value


def open_answer():
    def answer(value):
        if isinstance(value, dict):
            return {"error": "no model", "exit_code": 2} if value.get("bad") else {}
        return {"texts": [item.upper() for item in value]}

    return answer


@pytest.fixture
def ray(monkeypatch):
    stand_in = Ray()
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    return stand_in


def actors(ray, job, address="local"):
    return Actors(address, 2, 1, open_answer, job)


def test_each_chunk_gets_its_own_outputs_in_whatever_order_they_come(ray):
    workers = actors(ray, {})
    chunks = [Chunk("a", i, [f"x{i}", f"y{i}"]) for i in range(11)]
    done = list(workers.process(iter(chunks)))
    assert sorted(chunk.index for chunk, _ in done) == list(range(11))
    assert [chunk.index for chunk, _ in done] != list(range(11))
    assert all(outputs.texts == [item.upper() for item in chunk.items] for chunk, outputs in done)
    assert len(ray.started) == 2
    assert ray.most_waiting == 4
    workers.close()
    assert ray.is_up is None


def test_actors_get_absolute_paths(ray, monkeypatch, tmp_path):
    """They have another working folder."""
    monkeypatch.chdir(tmp_path)
    jobs = []
    monkeypatch.setattr(bulk, "open_answer", lambda: lambda job: jobs.append(job) or {})
    options = {"beam": 2, "glossary": "terms.tsv", "memory": ("a.tmx", "b")}
    job = Job("translate", "en-fr", options, ensemble=("other",))
    with bulk.open_workers(job, BulkOptions(ray="local", cache=Path("c")), quiet=True):
        pass
    (found,) = jobs
    assert found["options"] == {
        "beam": 2, "glossary": f"{tmp_path}/terms.tsv", "memory": [f"{tmp_path}/a.tmx", f"{tmp_path}/b"]
    }  # fmt: skip
    assert (found["model"], found["ensemble"]) == (f"{tmp_path}/en-fr", (f"{tmp_path}/other",))
    assert found["cache"] == f"{tmp_path}/c"


def test_an_error_of_the_job_is_that_of_the_actor(ray):
    with pytest.raises(ConfigError, match="no model"):
        actors(ray, {"bad": True})


@pytest.mark.parametrize(
    ("variable", "file", "mode"), [(False, False, None), (True, False, "token"), (False, True, "token")]
)
def test_the_token_of_a_cluster_is_sent(ray, monkeypatch, tmp_path, variable, file, mode):
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)
    if variable:
        monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    if file:
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text("0" * 64)
    monkeypatch.setattr(ray_actors, "check_reachable", lambda address: None)
    with monkeypatch.context() as patched:
        patched.setattr(os, "environ", dict(os.environ))
        actors(ray, {}, "127.0.0.1:1").close()
        assert os.environ.get("RAY_AUTH_MODE") == mode


def test_a_cluster_that_goes_away_or_is_not_there_is_an_error(ray):
    workers = actors(ray, {})
    ray.lost = True
    with pytest.raises(UserError, match=r"--ray: the cluster has gone.\n.*The same command goes on"):
        list(workers.process(iter([Chunk("a", 0, ["x"])])))
    with pytest.raises(UserError, match=r"--ray: .*refused"):
        actors(ray, {}, "127.0.0.1:1")
