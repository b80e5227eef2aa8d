"""Every command of the README, run as written."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.conftest import ENVIRONMENT

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\| `(glassformer [^`]+)`", README, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory) -> Path:
    """A folder with the files that the README names, and `glassformer` on the path."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("train", "test"):
        for language in ("en", "fr"):
            shutil.copy(corpus / f"{name}.{language}", folder)
    rows = [f"a {word} film {n},{label}" for n in range(40) for word, label in (("lovely", "good"), ("dull", "bad"))]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return folder


def run(command: str, folder: Path, timeout: float = 280) -> subprocess.CompletedProcess:
    path = f"{Path(sys.executable).parent}:{ENVIRONMENT['PATH']}"
    return subprocess.run(
        command, shell=True, cwd=folder, env={**ENVIRONMENT, "PATH": path}, capture_output=True, encoding="utf-8",
        timeout=timeout,
    )  # fmt: skip


def test_the_readme_names_every_command():
    from glassformer import cli

    assert {command.split()[1] for command in COMMANDS} == set(cli.COMMANDS)


@pytest.mark.slow
def test_commands_of_the_table_work_in_their_order(folder):
    for command in COMMANDS:
        if command != "glassformer demo":
            done = run(command, folder)
            assert done.returncode == 0, f"{command}: {done.stderr}"
    lines = (folder / "out.fr").read_text(encoding="utf-8").count("\n")
    assert lines == (folder / "test.en").read_text(encoding="utf-8").count("\n")
    assert (folder / "cleaned" / "train.en").exists()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_reaches_95_bleu_and_translates_the_reference_sentence(tmp_path):
    done = run("glassformer demo", tmp_path, timeout=590)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"BLEU on 500 held-out sentences: ([\d.]+)", done.stdout).group(1)) >= 95
    assert "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis." in done.stdout


@pytest.mark.slow
def test_the_python_lines_work(folder):
    code = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL).group(1).replace('out="en-fr"', 'out="py-en-fr"')
    done = run(f"{sys.executable} -c '{code}'", folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_knows_the_two_commands_of_the_readme():
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_tree_of_the_readme_names_what_is_there():
    tree = README.split("src/glassformer/\n")[1].split("```")[0]
    for name in re.findall(r"^  ([\w/.]+)", tree, flags=re.MULTILINE):
        assert (ROOT / "src" / "glassformer" / name).exists(), name
