"""Properties of the whole package."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from glassformer.cli import COMMANDS

HELP_COMMANDS = ["", "classify", *COMMANDS]
ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "glassformer"


def imported_after(code: str) -> set[str]:
    """Top-level modules in a fresh process after some code."""
    program = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


HELP = """
import contextlib, io, json, sys
from glassformer.cli import main

found = {}
for command in json.loads(sys.argv[1]):
    had_torch, page, code = "torch" in sys.modules, io.StringIO(), 0
    with contextlib.redirect_stdout(page):
        try:
            main([*command.split(), "--help"])
        except SystemExit as end:
            code = end.code or 0
    found[command] = code, page.getvalue(), "torch" in sys.modules and not had_torch
print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def help_pages() -> dict[str, tuple[int, str, bool]]:
    """Exit code and help text of each command, and whether printing it loaded torch, in one process."""
    commands = json.dumps(HELP_COMMANDS)
    done = subprocess.run([sys.executable, "-c", HELP, commands], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", HELP_COMMANDS)
def test_help_loads_no_torch(help_pages, command):
    code, page, loaded_torch = help_pages[command]
    assert code == 0
    assert f"Usage: glassformer {command}".rstrip() in page
    assert not loaded_torch


def test_importing_the_package_loads_no_torch():
    assert "torch" not in imported_after("import glassformer")


def test_text_modules_load_no_torch():
    assert "torch" not in imported_after(
        "import glassformer.corpora.doctor.diagnosis, glassformer.corpora.detect, glassformer.corpora.squad, "
        "glassformer.tokens.tokenizer, glassformer.tokens.wordpiece, glassformer.model_config, "
        "glassformer.metrics.significance"
    )


def test_using_a_model_imports_neither_its_objective_nor_the_training():
    """What the commands that apply models import, and all tasks."""
    code = (
        "import sys; "
        "from glassformer.tasks.registry import TASKS, task_class; "
        "import glassformer.cli.lines, glassformer.cli.evaluate, glassformer.pipelines; "
        "import glassformer.serve.worker.__main__; "
        "classes = [task_class(name) for name in TASKS]; "
        "print(*(name for name in sys.modules if name.startswith('glassformer.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    subpackages = {name.split(".")[1] for name in done.stdout.split()}
    assert "tasks" in subpackages
    assert not {"learning", "training"} & subpackages


def test_every_module_has_a_docstring():
    for path in SRC.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path


def test_files_of_text_have_the_same_line_breaks_on_all_systems():
    """Windows would write "\\r\\n": other bytes, and lines that `doctor` calls errors."""
    for path in SRC.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name, options = ast.unparse(call.func), {option.arg for option in call.keywords}
            arguments = [value.value for value in call.args if isinstance(value, ast.Constant)]
            is_stream = arguments[:1] in ([1], [2])  # standard output and standard error
            if name.endswith("write_text") or (name.endswith("open") and {"w", "a", "x"} & {*arguments}):
                assert "encoding" not in options or "newline" in options or is_stream, (path, call.lineno)


def test_the_documented_layers_are_those_of_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    documented = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    assert [layer.strip() for layer in documented.split(">")] == layers


@pytest.mark.parametrize("package", ["training", "learning", "bulk", "objectives", "nn", "data"])
def test_no_wall_clock_decides_what_is_computed(package):
    """A clock that is set while a run goes on has no effect: durations are those of a clock that only goes forward."""
    for path in sorted((SRC / package).rglob("*.py")):
        assert not re.search(r"\btime\.time\b|\btime_ns\(|datetime\.(now|today|utcnow)", path.read_text()), path
