"""Every command of the README, run as written."""

import ast
import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import docx
import polib
import pytest
import safetensors.torch
import torch

from tests.forks import forking_python
from tests.journeys.conftest import ENVIRONMENT, write_lines
from tests.serve.models import running

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\| `(glassformer [^`]+)`", README, flags=re.MULTILINE)


N_LINES = {"train": 120, "test": 20}


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory) -> Path:
    """A folder with the files that the README names, and `glassformer` on the path."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("train", "test"):
        for language in ("en", "fr"):
            lines = (corpus / f"{name}.{language}").read_text(encoding="utf-8").split("\n")
            write_lines(folder / f"{name}.{language}", lines[: N_LINES[name]])
    for language in ("en", "fr"):
        lines = (corpus / f"train.{language}").read_text(encoding="utf-8").split("\n")
        write_lines(folder / f"dev.{language}", lines[N_LINES["train"] :][:120])
    (folder / "corpus").mkdir()
    (folder / "corpus/test.gz").write_bytes(gzip.compress((folder / "test.en").read_bytes()))
    write_lines(folder / "terms.tsv", ["cat\tmon chat", "dog|dogs\tchien|chiens"])
    manual = docx.Document()
    manual.add_paragraph("The cat slept.")
    manual.save(folder / "manual.docx")
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
    (folder / "messages.po").write_text(f'{header}\nmsgid "The cat slept."\nmsgstr ""\n', encoding="utf-8")
    corrected = f'{header}\nmsgid "The cat slept."\nmsgstr "Le chat dormait."\n'
    (folder / "messages-corrected.po").write_text(corrected, encoding="utf-8")
    rows = [f"a {word} film {n},{label}" for n in range(40) for word, label in (("lovely", "good"), ("dull", "bad"))]
    (folder / "reviews.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return folder


def run(command: str, folder: Path, timeout: float = 280) -> subprocess.CompletedProcess:
    path = f"{Path(forking_python()).parent}:{ENVIRONMENT['PATH']}"
    return subprocess.run(
        command, shell=True, cwd=folder, env={**ENVIRONMENT, "PATH": path}, capture_output=True,
        encoding="utf-8", timeout=timeout,
    )  # fmt: skip


def test_the_readme_names_every_command():
    from glassformer import cli

    assert {command.split()[1] for command in COMMANDS} == set(cli.COMMANDS)


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def check_training(out: list[str], err: str, folder: Path) -> None:
    records = [json.loads(line) for line in read_lines(folder / "en-fr" / "metrics.jsonl")]
    losses = [record["loss"] for record in records if "loss" in record]
    assert losses[-1] < 0.9 * losses[0]
    assert len(re.findall(r"dev loss [\d.]+", err)) >= 1
    assert "Model: transformer tiny" in err
    assert "20 epochs, 114 pairs" in err
    assert " to en-fr. Try: " in err


def check_sentiment(out: list[str], err: str, folder: Path) -> None:
    assert "Model: bert tiny" in err
    assert 0 <= float(re.search(r"accuracy (\d\.\d+) for the last checkpoint", err).group(1)) <= 1
    assert " to sentiment. Try: " in err


def check_run(out: list[str], err: str, folder: Path) -> None:
    assert len(out) == N_LINES["test"]
    assert all(line.strip() for line in out)
    write_lines(folder / "run.fr", out)


def check_translate(out: list[str], err: str, folder: Path) -> None:
    assert read_lines(folder / "out.fr") == read_lines(folder / "run.fr")


def check_files(out: list[str], err: str, folder: Path) -> None:
    assert not out
    assert len(docx.Document(folder / "translated" / "manual.docx").paragraphs) == 1
    (entry,) = polib.pofile(str(folder / "translated" / "messages.po"))
    assert entry.msgid == "The cat slept."
    assert entry.msgstr
    assert err.count("texts translated") == 2


def check_bulk(out: list[str], err: str, folder: Path) -> None:
    assert not out
    with gzip.open(folder / "done/test.gz", "rt", encoding="utf-8") as file:
        assert file.read().split("\n")[:-1] == read_lines(folder / "run.fr")


def check_control(out: list[str], err: str, folder: Path) -> None:
    sources = read_lines(folder / "test.en")
    assert len(out) == len(sources)
    for source, line in zip(sources, out, strict=True):
        text, alignment = line.split(" ||| ")
        assert re.search(r"\b[mM]on chat\b", text) or not re.search(r"\b[cC]at\b", source)
        n_source, n_target = len(source.split()), len(text.split())
        for pair in alignment.split():
            s, t = map(int, pair.split("-"))
            assert s < n_source
            assert t < n_target


def check_calibrate(out: list[str], err: str, folder: Path) -> None:
    assert re.fullmatch(r"en-fr: confidence fitted to [\d,]+ words of 120 lines\. Expected .*: 0\.\d+\.", out[0])


def bleu_of_output(folder: Path) -> float:
    import sacrebleu

    return sacrebleu.corpus_bleu(read_lines(folder / "out.fr"), [read_lines(folder / "test.fr")]).score


def check_shortlist(out: list[str], err: str, folder: Path) -> None:
    assert re.match(r"en-fr: vocabulary shortlist of \d+ source tokens, with \d+ target tokens each", out[0])
    done = run("echo The cat slept. | glassformer translate en-fr --precision int8 --shortlist", folder)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split("\n")) == 2


def check_evaluate(out: list[str], err: str, folder: Path) -> None:
    assert [line.split()[0] for line in out] == ["BLEU", "chrF2", "TER", "exact", "ECE"]
    score, level, low, high = numbers(out[0].replace("95%", "95.0"))[:4]
    assert score == pytest.approx(bleu_of_output(folder), abs=0.01)
    assert level == 95
    assert 0 <= low <= score <= high <= 100
    assert 0 <= numbers(out[1])[0] <= 100
    assert numbers(out[2])[0] >= 0
    assert 0 <= numbers(out[3])[0] <= 1
    assert 0 <= numbers(out[4])[0] <= 1


def check_compare(out: list[str], err: str, folder: Path) -> None:
    assert [line.split()[0] for line in out] == ["BLEU", "exact"]
    assert numbers(out[0])[0] == pytest.approx(bleu_of_output(folder), abs=0.0051)  # two digits are printed
    for line in out:
        first, second, difference, low, high, p_value = numbers(line)
        assert difference == pytest.approx(second - first, abs=0.0151)
        assert low <= difference <= high
        assert 0 <= p_value <= 1
        assert line.endswith("not significant" if p_value >= 0.05 else ": significant")


def check_score(out: list[str], err: str, folder: Path) -> None:
    assert len(out) == N_LINES["test"]
    assert all(float(line) < 0 for line in out)


def check_similar(out: list[str], err: str, folder: Path) -> None:
    cosines = [float(line.split()[0]) for line in out]
    assert len(cosines) == 10
    assert cosines == sorted(cosines, reverse=True)
    assert -1 <= cosines[-1] <= cosines[0] <= 1


def check_info(out: list[str], err: str, folder: Path) -> None:
    rows = dict(line.split(maxsplit=1) for line in out if len(line.split()) > 1)
    config = json.loads((folder / "en-fr" / "config.json").read_text(encoding="utf-8"))
    assert (rows["folder"], rows["task"], rows["n_pairs"]) == ("en-fr", "translation", "114")
    assert int(rows["vocab_size"].replace(",", "")) == config["vocab_size"]
    assert int(rows["parameters"].replace(",", "")) > config["vocab_size"] * config["d_model"]


def check_page(name: str, *parts: str):
    """A check that a page was written, with these parts in it."""

    def check(out: list[str], err: str, folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert f"-> {name} (" in err
        assert text.startswith("<!doctype html>")
        for part in parts:
            assert part in text

    return check


def check_trace(out: list[str], err: str, folder: Path) -> None:
    names = [line.split()[0] for line in out]
    assert names[0] == "name"
    assert {"embedding[0]", "encoder.0.self_attention.weights", "decoder.0.cross_attention.weights", "logits"} <= {
        *names
    }
    assert not any("NAN" in line for line in out)


def check_ablate(out: list[str], err: str, folder: Path) -> None:
    assert out[0].startswith("full model")
    assert out[0].endswith("(20 examples)")
    config = json.loads((folder / "en-fr" / "config.json").read_text(encoding="utf-8"))
    n_attentions = config["n_encoder_layers"] + 2 * config["n_decoder_layers"]
    assert len(out) == 1 + n_attentions * config["n_heads"]
    changes = [float(line.split()[-1]) for line in out[1:]]
    assert changes == sorted(changes, reverse=True)
    assert "-> en-fr-pruned" in err


def check_worked_example(out: list[str], err: str, folder: Path) -> None:
    assert out[0] == "The worked example"
    assert [line for line in out if re.match(r"\d+\. ", line)][:5] == [
        "1. Input", "2. Weight matrices", "3. Queries, keys and values", "4. Scaled scores", "5. Softmax",
    ]  # fmt: skip
    assert "6.33789383e-02" in "\n".join(out)
    assert "The worked example" in (folder / "worked.html").read_text(encoding="utf-8")


def check_export(out: list[str], err: str, folder: Path) -> None:
    config = json.loads((folder / "en-fr-hf" / "config.json").read_text(encoding="utf-8"))
    assert out[0].startswith(f"en-fr-hf: {config['architectures'][0]}. Load it with transformers' from_pretrained(")
    assert (folder / "en-fr-hf" / "tokenizer.json").exists()


def check_html(out: list[str], err: str, folder: Path) -> None:
    assert re.search(r"-> en-fr\.html \(\d\.\d MB\)", err)
    assert "<title>en-fr</title>" in (folder / "en-fr.html").read_text(encoding="utf-8")


def check_import(out: list[str], err: str, folder: Path) -> None:
    assert re.fullmatch(r"again: translation, \d\.\d M parameters, vocabulary of [\d,]+\.", out[0])
    before, after = (
        safetensors.torch.load_file(folder / name / "model.safetensors") for name in ("en-fr-small", "again")
    )
    # The channels are in another order there.
    before, after = (weights["embedding.weight"].sort(-1).values for weights in (before, after))
    torch.testing.assert_close(after, before)


def check_update(out: list[str], err: str, folder: Path) -> None:
    assert "1 correction, " in err
    assert out[0].startswith("Dev set: chrF ")
    assert read_lines(folder / "en-fr-2" / "corrections.tsv")[0] == "source\tcorrection\tbefore\tafter"


def check_distillation(out: list[str], err: str, folder: Path) -> None:
    assert "Teacher en-fr: " in err
    assert (folder / "en-fr-small" / "model.safetensors").exists()
    assert read_lines(folder / "en-fr-small" / "teacher" / "train.src")[0] in read_lines(folder / "train.en")


def check_doctor(out: list[str], err: str, folder: Path) -> None:
    assert out == ["120 pairs: 0 errors, 0 warnings."]
    assert "cleaned: 120 of 120 pairs kept, repaired: nothing." in err
    for name in ("train.en", "train.fr"):
        assert read_lines(folder / "cleaned" / name) == read_lines(folder / name)


CHECKS = [
    ("train train.en", check_training),
    ("train reviews.csv", check_sentiment),
    ("update en-fr", check_update),
    ("distill en-fr", check_distillation),
    ("run en-fr", check_run),
    ("translate en-fr", check_translate),
    ("translate en-fr", check_files),
    ("translate en-fr", check_bulk),
    ("translate en-fr", check_control),
    ("calibrate en-fr", check_calibrate),
    ("shortlist en-fr", check_shortlist),
    ("evaluate en-fr", check_evaluate),
    ("score en-fr", check_score),
    ("similar en-fr", check_similar),
    ("info en-fr", check_info),
    ("inspect en-fr", check_page("cat.html", "The cat slept.")),
    ("trace en-fr", check_trace),
    ("ablate en-fr", check_ablate),
    ("compare en-fr", check_compare),
    ("report en-fr", check_page("run.html", "glassformer train", "dev_bleu")),
    ("worked-example --html", check_worked_example),
    ("export en-fr-small", check_export),
    ("export en-fr", check_html),
    ("import en-fr-hf", check_import),
    ("doctor train.en", check_doctor),
]
"""Of each command of the table what it must print and write."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_commands_of_the_table_work_in_their_order_and_print_what_they_should(folder):
    commands = [command for command in COMMANDS if command.split()[1] not in ("demo", "serve")]
    assert [" ".join(command.split()[1:3]) for command in commands] == [name for name, _ in CHECKS]
    for command, (_, check) in zip(commands, CHECKS, strict=True):
        # A model of 20 updates may be worse after 20 more: test_correction has what happens then.
        done = run(f"{command} --max-drop 100" if command.startswith("glassformer update") else command, folder)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert "Traceback" not in done.stderr
        check(done.stdout.split("\n")[:-1], done.stderr, folder)


OFFLINE = "echo The cat slept. | glassformer translate en-fr --precision auto"


@pytest.mark.slow
def test_the_server_of_the_table_translates_and_classifies(folder):
    (command,) = (command for command in COMMANDS if command.startswith("glassformer serve"))
    with running(folder, models=tuple(command.split()[2:])) as server:
        found = server.post("/translate", {"q": "The cat slept.", "source": "en", "target": "fr"}).json
        assert found["translatedText"] == run(OFFLINE, folder).stdout.strip()
        assert server.post("/models/sentiment", {"inputs": "a lovely film"}).json[0][0]["label"] in ("good", "dull")
        assert server.post("/detect", {"q": "le chat et la table"}).json[0]["language"] == "fr"


@pytest.mark.slow
def test_the_python_lines_work(folder):
    code = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL).group(1)
    *lines, last = code.replace('out="en-fr"', 'out="py-en-fr"').replace("epochs=20", "epochs=2").strip().split("\n")
    program = folder / "lines.py"
    write_lines(program, [*lines, f"result = {last}", "print(repr(result))"])
    done = run(f"{forking_python()} {program}", folder)
    assert done.returncode == 0, done.stderr
    assert isinstance(ast.literal_eval(done.stdout), str)
    assert "2 epochs, 114 pairs" in done.stderr
    assert (folder / "py-en-fr" / "model.safetensors").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_knows_the_two_commands_of_the_readme():
    for target in re.findall(r"^make (\w+)", README, flags=re.MULTILINE):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_tree_of_the_readme_names_what_is_there():
    tree = README.split("src/glassformer/\n")[1].split("```")[0]
    for name in re.findall(r"^  ([\w/.]+)", tree, flags=re.MULTILINE):
        assert (ROOT / "src" / "glassformer" / name).exists(), name
