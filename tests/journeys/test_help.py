"""Help texts of the command line."""

import io
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from glassformer import cli
from glassformer.cli.options import GROUPS, RARE
from glassformer.corpora.pair_formats import PAIR_FORMATS
from glassformer.corpora.terms import PATTERNS
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.tasks.causal_lm import DEFAULT_MAX_NEW_TOKENS, LanguageModel
from glassformer.tasks.summarization import MAX_SUMMARY, Summarizer
from glassformer.train_config import TrainConfig
from tests.journeys.conftest import ENVIRONMENT


def help_of(*arguments: str) -> str:
    environment = {**ENVIRONMENT, "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-m", "glassformer", *arguments], capture_output=True, encoding="utf-8", env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_of_train_fits_two_screens_and_help_all_lists_every_option():
    short, full = help_of("train", "--help"), help_of("train", "--help-all")
    assert short.count("\n") <= 72
    options = {f"--{name.replace('_', '-')}" for name in TrainConfig.model_fields}
    assert {*re.findall(r"--[a-z][a-z0-9-]*", full)} >= options
    assert not {f"--{name.replace('_', '-')}" for name in RARE} & {*re.findall(r"│ (--[a-z0-9-]+)", short)}


def test_every_option_of_train_is_in_one_group():
    names = " ".join(GROUPS.values()).split()
    assert sorted(names) == sorted(TrainConfig.model_fields)


def test_help_of_an_option_names_what_it_accepts_and_what_each_task_has_by_default():
    descriptions = {name: str(field.description) for name, field in DecodeConfig.model_fields.items()}
    for task, names in ((LanguageModel, "language models"), (Summarizer, "summaries")):
        for option, value in task.decoding_defaults.items():
            assert re.search(rf"Default: .*\b({value} for {names}|for {names} {value})\b", descriptions[option])
    for number in (DEFAULT_MAX_NEW_TOKENS, MAX_SUMMARY):
        assert f" {number}" in descriptions["max_length"]
    assert all(name in descriptions["protect"] for name in PATTERNS)
    assert all(name in str(TrainConfig.model_fields["format"].description) for name in PAIR_FORMATS)
    page = help_of("complete", "--help")
    assert "Default: 4." not in page
    assert "[choices: auto, cpu, cuda]" in page


def test_commands_are_grouped_and_each_has_a_sentence_of_its_own():
    page = help_of("--help")
    assert [group for group in ("Train", "Use", "Evaluate", "Inspect", "Convert") if f"─ {group} ─" in page] == [
        "Train", "Use", "Evaluate", "Inspect", "Convert",
    ]  # fmt: skip
    sentences = re.findall(r"│ [a-z-]+ +([A-Z][^│]+)", page)
    assert len(sentences) == len({*sentences})


def test_versions_for_a_report_of_a_defect():
    shown = dict(line.split(None, 1) for line in help_of("--version", "--verbose").splitlines())
    assert shown["glassformer"] == help_of("--version").strip()
    assert {"python", "system", "processor", "kernels", "threads", "cache", "numpy", "torch"} <= shown.keys()


def test_a_package_that_is_not_installed_is_named(capsys, monkeypatch):
    def missing(arguments):
        raise ModuleNotFoundError("No module named 'sacrebleu'", name="sacrebleu.metrics.bleu")

    monkeypatch.setattr(cli, "app", missing)
    with pytest.raises(SystemExit) as end:
        cli.main(["evaluate", "m"])
    assert end.value.code == 2
    assert "`glassformer evaluate` needs sacrebleu" in (err := capsys.readouterr().err)
    assert "pip install 'glassformer[eval]'" in err


def test_output_is_utf8_whatever_the_locale(monkeypatch):
    for environment, expected in (({}, "Привет é\n".encode()), ({"PYTHONIOENCODING": "cp1252"}, b"?????? \xe9\r\n")):
        data = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(data, encoding="cp1252", errors="replace", newline="\r\n"))
        monkeypatch.setattr(cli.os, "environ", environment)
        cli.write_utf8()
        print("Привет é", flush=True)
        assert data.getvalue() == expected
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # as where Python code redirects it
    cli.write_utf8()


def test_a_damaged_installation_and_a_wrong_variable_do_not_hide_the_versions(monkeypatch, capsys):
    monkeypatch.setattr("importlib.metadata.distributions", lambda: [SimpleNamespace(name=None, version=None)])
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    cli.main(["--version", "--verbose"])
    assert "python" in capsys.readouterr().out
    monkeypatch.setattr("glassformer.kernels.library.implementation", wrong_variable)
    with pytest.raises(SystemExit) as end:
        cli.main(["--version", "--verbose"])
    assert (end.value.code, capsys.readouterr().err) == (2, "error: GLASSFORMER_KERNELS: unknown\n")


def no_home():
    raise RuntimeError("Could not determine home directory.")


def wrong_variable():
    raise ConfigError("GLASSFORMER_KERNELS: unknown")


def test_the_server_is_refused_on_windows(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit):
        cli.main(["serve", "en-fr"])
    assert "not available on Windows" in capsys.readouterr().err
