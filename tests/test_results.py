"""Files of benchmark results."""

import json

import pytest
from benchmarks import machine, results_page
from benchmarks.results_tables import TABLES


@pytest.fixture
def on(monkeypatch, tmp_path):
    """A function that makes this machine one with another processor."""
    monkeypatch.setattr(machine, "RESULTS", tmp_path)

    def use(processor):
        monkeypatch.setattr(machine, "describe", lambda command: {"command": command, "processor": processor})

    return use


def test_the_record_of_another_processor_is_kept(on):
    on("A")
    machine.save("speed", {"ratio": 2}, "first")
    on("B")
    assert machine.load_own("speed") == {}
    machine.save("speed", {"ratio": 3}, "second")
    assert {name: row["ratio"] for name, row in machine.load("speed").items()} == {"A": 2, "B": 3}
    assert machine.load_own("speed")["command"] == "second"


def test_the_record_of_the_same_processor_is_replaced(on):
    on("A")
    machine.save("speed", {"ratio": 2, "old": 1}, "first")
    machine.save("speed", {"ratio": 3}, "second")
    assert machine.load("speed") == {"A": {"command": "second", "processor": "A", "ratio": 3}}


def test_the_record_of_a_gpu_has_the_name_of_the_gpu(on):
    on("A")
    machine.save("speed", {"ratio": 2}, "first")
    machine.save("speed", {"ratio": 9, "device": "GPU"}, "second")
    assert list(machine.load("speed")) == ["A", "GPU"]
    assert machine.load_own("speed", "GPU")["ratio"] == 9


def test_every_committed_file_has_one_record_for_each_processor():
    for path in machine.RESULTS.glob("*.json"):
        for name, record in json.loads(path.read_text()).items():
            assert name == record.get("device", record["processor"]), path.name


@pytest.mark.parametrize("page", results_page.PAGES, ids=lambda page: page.name)
def test_the_tables_of_the_documentation_are_those_of_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert results_page.update(text) == text, "run: python -m benchmarks.results_page"


def test_the_pictures_are_those_of_the_results():
    for name, content in results_page.pictures().items():
        assert (machine.RESULTS / name).read_text(encoding="utf-8") == content, "run: python -m benchmarks.results_page"


def test_every_table_is_in_the_documentation():
    shown = [match[2] for page in results_page.PAGES for match in results_page.MARKED.finditer(page.read_text())]
    assert sorted(shown) == sorted([*TABLES, "contents", "measured", "presets"])
    assert {path.stem for path in machine.RESULTS.glob("*.json")} == {
        *(name for table in TABLES.values() for name in table.rows), "peak", "two_checkouts", "two_checkouts_serve",
    }  # fmt: skip


def test_a_changed_number_is_noticed(monkeypatch):
    page = results_page.PAGES[0].read_text()
    records = machine.load("train_speed")
    next(iter(records.values()))["ratio"]["base"] += 1
    monkeypatch.setattr(results_page, "load", lambda name: records if name == "train_speed" else machine.load(name))
    assert results_page.update(page) != page
