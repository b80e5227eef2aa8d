"""What must hold of the package as a whole."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.cli import COMMANDS

SRC = Path(__file__).parents[1] / "src" / "glassformer"


def imported_after(code: str) -> set[str]:
    """Top-level modules in a fresh process after some code."""
    program = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("command", ["", "classify", *COMMANDS])
def test_help_loads_no_torch(command):
    arguments = [command, "--help"] if command else ["--help"]
    code = (
        f"sys.argv[1:] = {arguments!r}; import io, contextlib; from glassformer.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main()\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=True)
    assert "torch" not in {name.split(".")[0] for name in done.stdout.split()}


def test_importing_the_package_loads_no_torch():
    assert "torch" not in imported_after("import glassformer")


def test_text_modules_load_no_torch():
    assert "torch" not in imported_after(
        "import glassformer.corpora.doctor, glassformer.corpora.detect, glassformer.corpora.squad, "
        "glassformer.tokens.tokenizer, glassformer.tokens.wordpiece, glassformer.model_config, "
        "glassformer.metrics.significance"
    )


def test_every_module_says_what_it_is():
    for path in SRC.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path
