"""Each mistake: one message with place and remedy, an exit code, no traceback, nothing lost."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from glassformer import checkpoint
from glassformer.cli import lines
from glassformer.manifest import sha256
from glassformer.tasks.registry import load
from tests.documents.test_tmx import memory, tuv
from tests.interop.ours import make
from tests.journeys.conftest import RARE, SMALL, glassformer, write_lines
from tests.tasks.test_terms import translator


def refused(done, code: int, *parts: str) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    flat = " ".join(done.stderr.split())
    for part in parts:
        assert part in flat, done.stderr


def train(corpus, out, *options, **sides):
    files = [sides.get("src", corpus / "train.en"), sides.get("tgt", corpus / "train.fr")]
    return glassformer("train", *files, "--out", out, "--steps", 2, *SMALL, *RARE, *options)


def test_missing_file(corpus, tmp_path):
    refused(train(corpus, tmp_path / "run", src=tmp_path / "none.en"), 1, "none.en: no such file", "Check the path")


def test_empty_file(corpus, tmp_path):
    empty = tmp_path / "empty.en"
    empty.touch()
    refused(train(corpus, tmp_path / "run", src=empty), 1, "empty.en: empty file")


def test_folder_for_a_file(corpus, tmp_path):
    refused(train(corpus, tmp_path / "run", src=tmp_path), 1, "is a folder")


def test_binary_file(corpus, tmp_path):
    (tmp_path / "b.en").write_bytes(b"text\n\x00\x01\x02\n")
    refused(train(corpus, tmp_path / "run", src=tmp_path / "b.en"), 1, "b.en:2: binary data")


def test_other_encoding_is_named_with_its_byte(corpus, tmp_path):
    (tmp_path / "l.fr").write_bytes("un été\n".encode("latin-1"))
    write_lines(tmp_path / "l.en", ["a summer"])
    done = train(corpus, tmp_path / "run", src=tmp_path / "l.en", tgt=tmp_path / "l.fr")
    refused(done, 1, "l.fr:1: not UTF-8: byte 0xe9 at byte 3", "iconv")


def test_unequal_counts_name_both(corpus, tmp_path):
    lines = (corpus / "train.fr").read_text().split("\n")[:-1]
    short = write_lines(tmp_path / "short.fr", lines[:100] + lines[101:])
    done = train(corpus, tmp_path / "run", tgt=short)
    refused(done, 1, "has 300 lines", "has 299", "add or remove the line")


def test_tsv_with_a_wrong_number_of_cells(tmp_path):
    bad = write_lines(tmp_path / "bad.tsv", ["a\tb", "a\tb\tc"])
    done = glassformer("train", bad, "--out", tmp_path / "run", *SMALL)
    refused(done, 1, "bad.tsv:2: expected 2 tab-separated columns (src, tgt), found 3", "The line begins")


def test_impossible_options_are_all_named_at_once(corpus, tmp_path):
    toml = tmp_path / "run.toml"
    toml.write_text('dropout = 3.0\nsteps = -1\nbeams = 4\nlr = "fast"\n')
    done = glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "r", "--config", toml)
    refused(done, 2, "dropout: 3.0", "steps: -1", "beams: no such option", "lr: 'fast'", str(toml))


def test_heads_that_do_not_divide_the_width(corpus, tmp_path):
    done = glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "r", "--n-heads", 7)
    refused(done, 2, "n_heads = 7")


def test_shares_of_the_training_that_make_more_than_all_of_it(corpus, tmp_path):
    done = glassformer(
        "train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "r", "--warmup-ratio", 0.9
    )
    refused(done, 2, "warmup_ratio and decay_ratio sum to more than 1")


def test_training_text_from_standard_input(tmp_path):
    (tmp_path / "run.toml").write_text('src = ["-"]\ntgt = ["-"]\n')
    done = glassformer("train", "--config", tmp_path / "run.toml", "--out", tmp_path / "r")
    refused(done, 2, "standard input (-) can be read only once")


def test_two_budgets(corpus, tmp_path):
    done = glassformer(
        "train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "r", "--steps", 1, "--minutes", 1
    )
    refused(done, 2, "steps and minutes are mutually exclusive")


def test_out_that_holds_something_else_is_left_alone(corpus, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    refused(train(corpus, tmp_path), 2, "contains a file that is not from a run (thesis.txt)")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_out_that_is_a_file(corpus, tmp_path):
    (tmp_path / "f").touch()
    refused(train(corpus, tmp_path / "f"), 2, "is a file")


def test_one_plain_file(corpus, tmp_path):
    done = glassformer("train", corpus / "train.en", "--task", "translation", "--out", tmp_path / "r")
    refused(done, 2, "which is the source, which the target?")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "manifest.json"])
def test_model_folder_that_lacks_a_file(model, tmp_path, name):
    shutil.copytree(model, tmp_path / "m", ignore=shutil.ignore_patterns("run.toml", "checkpoints", "best"))
    (tmp_path / "m" / name).unlink()
    refused(glassformer("translate", tmp_path / "m", stdin="a\n"), 1, name)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_model_folder_with_a_flipped_bit(model, tmp_path, name):
    shutil.copytree(model, tmp_path / "m")
    data = bytearray((tmp_path / "m" / name).read_bytes())
    data[len(data) // 2] ^= 4
    (tmp_path / "m" / name).write_bytes(data)
    refused(glassformer("translate", tmp_path / "m", stdin="a\n"), 1, f"{name}: damaged", "SHA-256")


def test_no_such_model_folder(tmp_path):
    refused(glassformer("translate", tmp_path / "none", stdin="a\n"), 1, "no such folder", "glassformer train")


def test_unknown_option_and_command():
    refused(glassformer("translate", "x", "--beams", 4), 2, "--beams")
    refused(glassformer("tranlate", "x"), 2, "tranlate")


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [(("train", "x.csv", "--out", "r", "--minute", 1), "--minutes"),
     (("train", "x.csv", "--out", "r", "--no-pre-nrm"), "--no-pre-norm"),
     (("evaluate", "m", "--src", "--intervall"), "--interval"),
     (("score", "m", "--src", "--jsn"), "--json")],
)  # fmt: skip
def test_an_unknown_option_is_no_file_and_the_nearest_is_named(arguments, nearest):
    refused(glassformer(*arguments), 2, "nknown option: ", f"Did you mean {nearest}?")


def test_every_switch_can_be_switched_off(corpus, tmp_path):
    done = train(corpus, tmp_path / "r", "--no-pre-norm", "--no-skip-bad", "--no-quiet")
    assert done.returncode == 0, done.stderr
    assert "pre_norm = false" in (tmp_path / "r" / "run.toml").read_text()


def test_more_nbest_than_beam(model):
    refused(glassformer("translate", model, "--beam", 2, "--nbest", 3, stdin="a\n"), 2, "nbest = 3")


def test_a_device_that_is_not_there(model):
    import torch

    if torch.cuda.is_available():
        pytest.skip("CUDA is here")
    refused(glassformer("translate", model, "--device", "cuda", stdin="a\n"), 2, "not available; available: ")


def test_evaluation_with_unequal_counts(model, corpus):
    done = glassformer("evaluate", model, "--src", corpus / "train.en", "--ref", corpus / "test.fr")
    refused(done, 1, "has 300 lines")


def test_standard_input_that_is_no_text(model):
    done = glassformer("translate", model, stdin=b"ok\n\xff\xfe\n")
    assert done.returncode == 1
    assert b"standard input:2: not UTF-8" in done.stderr


def test_doctor_names_faults_exits_1_and_mends(tmp_path):
    src = write_lines(tmp_path / "a.en", ["The cat sleeps here.", "", "A dog\u2028ran.", "Tom &amp; Ann are here."] * 3)
    tgt = write_lines(
        tmp_path / "a.fr", ["Le chat dort ici.", "Un mot.", "Un chien a couru.", "Tom et Ann sont ici."] * 3
    )
    done = glassformer("doctor", src, tgt, "--fix", tmp_path / "clean")
    refused(done, 1)
    for part in (f"{src}:2: blank-side", f"{src}:3: line-break: U+2028", f"{src}:4: html"):
        assert part in done.stdout
    again = glassformer("doctor", tmp_path / "clean" / "a.en", tmp_path / "clean" / "a.fr")
    assert again.returncode == 0
    record = json.loads(glassformer("doctor", src, tgt, "--json").stdout)
    assert record["counts"]["blank-side"] == 3


def test_a_run_folder_in_the_middle_translates_with_its_best(corpus, tmp_path):
    out = tmp_path / "run"
    assert train(corpus, out).returncode == 0
    (out / "manifest.json").unlink()
    done = glassformer("translate", out, stdin="The cat.\n")
    assert "has not finished; using best/step-" in done.stderr
    assert done.returncode == 0


def signed_copy(model, folder, name: str, **changes):
    """A copy of a model folder with other values in one of its files, and the checksum of that file made anew."""
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("run.toml", "checkpoints", "best", "data"))
    (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | changes))
    sign(folder, name)
    return folder


def sign(folder, name: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = {
        "bytes": (folder / name).stat().st_size,
        "sha256": sha256(folder / name),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("value", [7, 0.5, True, [], ["a"], {}, None])
def test_a_tokenizer_config_of_other_types_is_damaged(model, tmp_path, value):
    names = ["pad_token", "bos_token", "eos_token", "prefix", *(["mask_token"] if value is not None else [])]
    for name in names:
        folder = signed_copy(model, tmp_path / name, "tokenizer_config.json", **{name: value})
        refused(glassformer("info", folder), 1, "tokenizer_config.json: damaged", name)


def test_a_tokenizer_config_that_is_no_object_is_damaged(model, tmp_path):
    folder = signed_copy(model, tmp_path / "m", "tokenizer_config.json")
    for text in ("[]", "7", "null", "[" * 100_000):
        (folder / "tokenizer_config.json").write_text(text)
        sign(folder, "tokenizer_config.json")
        refused(glassformer("info", folder), 1, "tokenizer")


@pytest.mark.parametrize("labels", [7, [7], {"a": 1}, "ab"])
def test_labels_of_other_types_are_damaged(model, tmp_path, labels):
    folder = signed_copy(model, tmp_path / "m", "config.json", labels=labels)
    refused(glassformer("info", folder), 1, "config.json: damaged: labels")


@pytest.mark.parametrize("max_len", [0, 1, 7])
def test_a_maximum_length_too_short_for_any_text_is_refused(model, tmp_path, max_len):
    folder = signed_copy(model, tmp_path / "m", "config.json", max_len=max_len)
    refused(glassformer("translate", folder, stdin="The black cat sat.\n"), 1, "config.json", f"max_len: {max_len}")


def test_a_folder_of_an_older_format_says_what_to_do(model, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(model, folder)
    for path in [folder, *folder.glob("checkpoints/*"), *folder.glob("best/*")]:
        manifest = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(json.dumps(manifest | {"format_version": 1, "glassformer": "0.0.7"}))
    what = ("written by glassformer 0.0.7 in format 1", "Train or import the model again")
    refused(glassformer("translate", folder, stdin="a\n"), 1, *what)
    # Neither is the run continued: that would replace it by another.
    files = {path: path.read_bytes() for path in folder.rglob("*.safetensors")}
    refused(glassformer("train", "--config", folder / "run.toml", "--out", folder), 1, *what)
    assert files == {path: path.read_bytes() for path in folder.rglob("*.safetensors")}
    (folder / "manifest.json").unlink()
    refused(glassformer("translate", folder, stdin="a\n"), 1, *what)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_training_that_diverges_is_one_error(corpus, tmp_path, steps):
    command = ["train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "run", "--lr", 1e9]
    done = glassformer(*command, "--warmup-ratio", 0, "--steps", steps, *SMALL, *RARE)
    refused(done, 1, "lower --lr")


@pytest.mark.parametrize("options", [[], ["--temperature", 1]])
def test_a_model_of_weights_that_are_not_finite_is_one_error(model, tmp_path, options):
    folder = signed_copy(model, tmp_path / "m", "config.json")
    tensors = checkpoint.read_tensors(folder / "model.safetensors")
    tensors["embedding.weight"][:] = float("nan")
    checkpoint.safetensors.torch.save_file(tensors, folder / "model.safetensors")
    sign(folder, "model.safetensors")
    refused(glassformer("translate", folder, *options, "--max-length", 5, stdin="a\n"), 1, "values that are not finite")


def test_a_budget_of_no_time_makes_one_update(corpus, tmp_path):
    command = ["train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "run", *SMALL]
    done = glassformer(*command, "--minutes", 1e-9)
    assert done.returncode == 0, done.stderr
    assert "Trained 1 steps" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", "m", "--beam", "2.9"],
        ["run", "m", "--seed", "2.0"],
        ["train", "a.en", "a.fr", "--out", "r", "--steps", "2.9"],
        ["evaluate", "m", "x", "--threads", "1.5"],
        ["ablate", "m", "x", "--examples", "2.5"],
        ["demo", "--steps", "2", "--pairs", "99.5"],
        ["doctor", "x", "--show", "2.5"],
        ["similar", "m", "x", "--n", "2.5"],
        ["worked-example", "--head", "1.5"],
        ["inspect", "m", "x", "--window", "1.5"],
    ],
)
def test_a_fraction_is_not_rounded(arguments):
    refused(glassformer(*arguments), 2, arguments[-1], "whole number")


@pytest.mark.parametrize("task", ["causal-lm", "masked-lm"])
def test_blank_lines_alone_are_no_text(corpus, tmp_path, task):
    blank = write_lines(tmp_path / "blank.txt", ["", " "] * 150)
    done = glassformer("train", blank, "--task", task, "--out", tmp_path / "run", "--steps", 2, *SMALL)
    refused(done, 1, "blank.txt: contains no text to train on: all lines are blank")
    files = [corpus / "train.en", "--dev", blank]
    done = glassformer("train", *files, "--task", task, "--out", tmp_path / "run2", "--steps", 2, *SMALL)
    refused(done, 1, "blank.txt: contains no text to validate on")


def test_a_corpus_of_which_much_is_too_long_is_an_error_that_says_what_to_do(tmp_path):
    lines = [f'{{"src": "{"a b c " * (60 if i % 5 == 0 else 2)}{i}", "tgt": "d {i}"}}' for i in range(100)]
    write_lines(tmp_path / "pairs.jsonl", lines)
    done = glassformer("train", tmp_path / "pairs.jsonl", "--out", tmp_path / "r", "--steps", 2, "--vocab-size", 270,
                       "--max-len", 40)  # fmt: skip
    refused(done, 1, "%) are longer than", "--max-len", "--task summarization")


def test_a_reading_option_without_effect_for_the_task(corpus, tmp_path):
    done = train(corpus, tmp_path / "r", "--skip-bad")
    refused(done, 2, "--skip-bad: without effect on pairs")


@pytest.fixture
def german(tmp_path):
    """A table of pairs, and two parallel texts each line of which has a comma."""
    rows = [f"der Hund {i} bellt,the dog {i} barks,{i}" for i in range(40)]
    write_lines(tmp_path / "a.csv", ["Deutsch,Englisch,n", *rows])
    write_lines(tmp_path / "a.de", [f"der Hund, {i}" for i in range(7)])
    write_lines(tmp_path / "a.en", [f"the dog, {i}" for i in range(7)])
    return tmp_path


KEYS = ["--keys", "src=Deutsch", "tgt=Englisch"]


def test_keys_are_of_the_files_that_have_columns(german):
    table, texts = [german / "a.csv"], [german / "a.de", german / "a.en"]
    for out, (text, dev) in {"run": (table, texts), "run-2": (texts, table)}.items():
        done = glassformer("train", *text, "--dev", *dev, *KEYS, "--out", german / out, "--steps", 1, *SMALL)
        assert done.returncode == 0, done.stderr
        dev_set = [json.loads(line) for line in (german / out / "data" / "dev.jsonl").read_text().splitlines()]
        first = ("der Hund, 0", "the dog, 0") if dev == texts else ("der Hund 0 bellt", "the dog 0 barks")
        assert (dev_set[0]["src"], dev_set[0]["tgt"]) == first
        done = glassformer("doctor", *text, "--dev", *dev, *KEYS)
        assert f"{40 if text == table else 7} pairs: 0 errors" in done.stdout, done.stderr


def test_keys_without_effect(german, model):
    without = "--keys src=1 tgt=2: without effect"
    texts = [german / "a.de", german / "a.en"]
    for options in ([*texts, "--keys"], ["--src", texts[0], "--tgt", texts[1], "--keys"]):
        refused(glassformer("train", *options, "src=1", "tgt=2", "--out", german / "run"), 2, without)
        refused(glassformer("doctor", *options, "src=1", "tgt=2"), 2, without)
    refused(glassformer("evaluate", model, *texts, "--keys", "src=1", "tgt=2"), 2, without, "Leave it out")
    done = glassformer("train", texts[0], "--task", "causal-lm", "--keys", "text=1", "--out", german / "run")
    refused(done, 2, "--keys text=1: without effect")


def test_two_tables_of_other_names_have_keys(german):
    tables = [german / "a.txt", german / "b.txt"]
    for path in tables:
        path.write_text((german / "a.csv").read_text().replace(",", "\t"))
    done = glassformer("doctor", *tables, *KEYS)
    assert "80 pairs: 0 errors, 40 warnings" in done.stdout, done.stderr


def test_doctor_says_which_text_it_does_not_check(tmp_path):
    (tmp_path / "a.conll").write_text("Ann B-PER\nslept O\n\n" * 5)
    refused(glassformer("doctor", tmp_path / "a.conll"), 2, "a.conll: text for tagging, which is not checked")


NUMBERED = b"".join(b"a text %d,%s\n" % (i, b"ab"[i % 2 : i % 2 + 1]) for i in range(7))
UTF8 = "l’été et l’été".encode()
BAD_BYTES: dict[str, tuple[str, int, bytes]] = {
    # name of the file, number of the line that is not text, content
    "plain text": ("a.txt", 2, b"one\ncaf\xe9\n"),
    "binary text": ("a.txt", 2, b"one\nt\0wo\n"),
    "labeled CSV": ("a.csv", 3, b"text,label\n%s,a\ncaf\xe9,a\n" % UTF8 + NUMBERED),
    "binary labeled CSV": ("a.csv", 2, b"text,label\nt\0o,a\n" + NUMBERED),
    "labeled JSONL": ("a.jsonl", 1, b'{"text": "caf\xe9", "label": 1}\n{"text": "a b", "label": 2}\n'),
    "CSV of pairs": ("a.csv", 2, b"en,fr\ncoffee,caf\xe9\nsummer,%s\n" % UTF8),
    "TSV of pairs": ("a.tsv", 1, b"a coffee\tcaf\xe9\nsummer\t%s\nwinter\thiver\n" % UTF8),
    "pairs of any name": ("a.txt", 1, b"a coffee\tcaf\xe9\nsummer\t%s\nwinter\thiver\n" % UTF8),
    "CoNLL": ("a.conll", 2, b"Ann\tB-x\ncaf\xe9\tO\n"),
    "JSONL of documents": ("a.jsonl", 2, b'{"text": "a b"}\n{"text": "caf\xe9"}\n'),
}


@pytest.mark.parametrize("case", BAD_BYTES)
def test_doctor_lists_the_lines_for_which_training_advises_it(tmp_path, case):
    name, line, content = BAD_BYTES[case]
    path = tmp_path / name
    path.write_bytes(content)
    done = glassformer("train", path, "--out", tmp_path / "run", "--steps", 1, *SMALL)
    refused(done, 1, f"{path}:{line}: ", "`glassformer doctor` lists")
    done = glassformer("doctor", path, "--json")
    refused(done, 1)
    kind = "nul" if b"\0" in content else "not-utf8"
    found = json.loads(done.stdout)
    assert found["counts"] == {kind: 1}, found
    assert [(finding["path"], finding["line"]) for finding in found["findings"]] == [(str(path), line)]


def test_doctor_lists_lines_of_a_table_whose_languages_are_given(tmp_path):
    (tmp_path / "a.csv").write_bytes(BAD_BYTES["CSV of pairs"][2])
    done = glassformer("doctor", tmp_path / "a.csv", "--languages", "en", "fr")
    assert "a.csv:2: not-utf8" in done.stdout, done.stderr


def test_doctor_is_not_advised_for_text_that_it_does_not_read(model, tmp_path):
    for text in (b"a\xff\n", b"a\0\n"):
        assert b"`glassformer doctor`" not in glassformer("translate", model, stdin=text).stderr
    (tmp_path / "a.json").write_bytes(b'{"paragraphs": "\xff"}')
    done = glassformer("train", tmp_path / "a.json", "--out", tmp_path / "run")
    refused(done, 1, "a.json:1: not UTF-8", "iconv -f")
    assert "`glassformer doctor`" not in done.stderr


def test_doctor_writes_the_repaired_files_of_a_folder_with_their_paths(tmp_path):
    for n, language in enumerate("ab"):
        (tmp_path / "po" / language).mkdir(parents=True)
        (tmp_path / "po" / language / "x.po").write_text(f'msgid "Open {n}"\nmsgstr "Ouvrir {n}"\n')
    folder, out, codes = tmp_path / "po", tmp_path / "out", ("--languages", "en", "fr")
    done = glassformer("doctor", folder, "--fix", out, *codes)
    assert "2 of 2 pairs kept" in done.stderr
    assert sorted(path.relative_to(out) for path in out.rglob("*.tmx")) == [Path("a/x.tmx"), Path("b/x.tmx")]
    done = glassformer("doctor", folder / "a" / "x.po", folder / "b" / "x.po", "--fix", tmp_path / "other", *codes)
    refused(done, 1, "two files would have one name there: x.tmx", "name a folder")
    assert not done.stdout


def test_doctor_is_advised_for_the_files_of_an_archive(tmp_path):
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.po", "".join(f'msgid "The cafÃ© {n}"\nmsgstr "Le café {n}"\n\n' for n in range(20)))
    done = glassformer("train", archive, "--out", tmp_path / "run", "--languages", "en", "fr", "--steps", 1, *SMALL)
    assert "After the archive is extracted, `glassformer doctor` lists" in done.stderr
    refused(glassformer("doctor", archive, "--languages", "en", "fr"), 2, "an archive, which is not", "Extract it")


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        ("a.docx", b"PK\3\4\0\0", "a.docx --out FOLDER"),
        ("a.doc", b"\xd0\xcf\x11\xe0\0", "Save it as .docx, in Word"),
        ("a.pdf", b"%PDF-1.7\n", "Save it as .docx, in Word"),
        ("a.rtf", b"{\\rtf1 Hello}", "Save it as .docx, in Word"),
        ("a.xls", b"\xd0\xcf\x11\xe0\0", "Save it as .xlsx, in Excel"),
        ("a.bin", b"\1\0", "Those that are: .txt, "),
    ],
)
def test_lines_of_text_are_not_advised_for_other_files(tmp_path, name, content, remedy):
    (tmp_path / name).write_bytes(content)
    done = glassformer("translate", tmp_path / "model", tmp_path / name)
    refused(done, 2, f"{name}: ", remedy)
    assert "Lines of text" not in done.stderr


@pytest.mark.parametrize("name", ["a.txt", "a.en"])
def test_lines_of_text_are_advised_for_text(tmp_path, name):
    done = glassformer("translate", tmp_path / "model", write_lines(tmp_path / name, ["A text."]))
    refused(done, 2, f"Lines of text{', to standard output' if name == 'a.txt' else ''}: ", f"/{name}")


def test_doctor_refuses_options_without_effect_on_plain_text(tmp_path):
    path = write_lines(tmp_path / "a.txt", ["a text", "another text"])
    assert "2 lines: 0 errors" in glassformer("doctor", path).stdout
    for option in ("--fix", "--dev", "--test"):
        refused(glassformer("doctor", path, option, tmp_path / "b.txt"), 2, f"{option}: for parallel or labeled text")


def test_doctor_does_not_examine_documents_and_unknown_keys_as_pairs(tmp_path):
    documents = write_lines(tmp_path / "a.jsonl", ['{"text": "a b"}'] * 2)
    refused(glassformer("doctor", documents), 2, "text for causal-lm, which is not checked")
    other = write_lines(tmp_path / "b.jsonl", ['{"a": "a", "b": "b"}'] * 2)
    refused(glassformer("doctor", other), 2, "b.jsonl: cannot infer the task", "--keys src=a tgt=b")


@pytest.mark.parametrize("languages", [["en"], ["en", "fr", "de"], ["en", "en"]])
def test_doctor_needs_two_different_languages(tmp_path, languages):
    (tmp_path / "a.tmx").write_text(memory(tuv("en", "a") + tuv("de", "b") + tuv("fr", "c")))
    done = glassformer("doctor", tmp_path / "a.tmx", "--languages", *languages)
    refused(done, 2, f"--languages {' '.join(languages)}: expected two different codes")


def test_doctor_refuses_options_that_would_have_no_effect(tmp_path):
    path = write_lines(tmp_path / "a.tsv", ["a cat\tun chat", "a dog\tun chien"])
    for option in ("--src", "--tgt"):
        done = glassformer("doctor", path, option, tmp_path / "none.fr")
        refused(done, 2, f"{option}: text is also given without an option: {path}", "Give all of it by options")
    refused(glassformer("doctor", path, "--languages", "en", "fr"), 2, "--languages: without effect on pairs")
    table = write_lines(
        tmp_path / "a.csv", ["id,fr,en", "1,Le chat dort,The cat sleeps", "2,Le chien dort,The dog sleeps"]
    )
    assert glassformer("doctor", table, "--languages", "en", "fr").returncode == 0


@pytest.fixture(scope="module")
def without_languages(tmp_path_factory):
    """A translator that does not say its languages; a memory of three languages; a damaged memory with one pair."""
    folder = tmp_path_factory.mktemp("entries")
    translator().save(folder / "model")
    (folder / "three.tmx").write_text(memory(tuv("en", "a cat") + tuv("de", "die Katze") + tuv("fr", "un chat")))
    (folder / "damaged.tmx").write_text(memory(tuv("en", "a cat") + tuv("de", "die Katze")).partition("</body>")[0])
    return folder


@pytest.mark.parametrize(
    ("name", "advice", "option", "said"),
    [
        ("three.tmx", "Name two of them: --languages en de", ["--languages", "en", "fr"], "1 pair from en to fr."),
        ("damaged.tmx", "--skip-bad", ["--skip-bad"], "warning: 1 of 1 files cannot be read and was left out"),
    ],
)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("calibrate M --src FILE", 1), ("shortlist M --src FILE", 0), ("score M --src FILE", 0),
        ("score M FILE --out OUT", 0), ("evaluate M FILE", 0), ("compare M M FILE", 0), ("ablate M FILE", 0),
        ("update M FILE --out OUT", 2),
    ],
)  # fmt: skip
def test_the_advice_for_a_memory_works_in_the_same_command(
    without_languages, tmp_path, command, code, name, advice, option, said
):
    known = {"M": without_languages / "model", "FILE": without_languages / name, "OUT": tmp_path / "out"}
    arguments = [known.get(part, part) for part in command.split()]
    refused(glassformer(*arguments), 1, advice)
    done = glassformer(*arguments, *option)
    assert said in done.stderr
    assert done.returncode == code, done.stderr
    expected = {0: "", 1: "confidence cannot be fitted", 2: "has no training text"}[code]  # after the memory is read
    assert expected in done.stderr
    pairs = write_lines(tmp_path / "pairs.tsv", ["a cat\tdie Katze"])
    arguments = [pairs if part == without_languages / name else part for part in arguments]
    refused(glassformer(*arguments, *option), 2, f"{option[0]}: without effect on pairs")


@pytest.mark.parametrize("languages", [["en"], ["en", "fr", "de"]])
def test_score_needs_two_different_languages(without_languages, tmp_path, languages):
    arguments = ["score", without_languages / "model", without_languages / "three.tmx", "--out", tmp_path / "out"]
    refused(glassformer(*arguments, "--languages", *languages), 2, "expected two different codes")


def test_languages_without_effect_for_the_task(corpus, tmp_path):
    done = train(corpus, tmp_path / "r", "--task", "causal-lm", "--languages", "en", "fr")
    refused(done, 2, "--languages: without effect for the task causal-lm")


@pytest.mark.filterwarnings("ignore:at least one text:UserWarning")
def test_the_advice_for_long_pairs_leads_to_summaries(tmp_path):
    write_lines(tmp_path / "docs.txt", [f"{'a b c ' * (60 if i % 5 == 0 else 2)}{i}" for i in range(100)])
    write_lines(tmp_path / "sums.txt", [f"d {i}" for i in range(100)])
    files = [tmp_path / "docs.txt", tmp_path / "sums.txt"]
    options = ["--steps", 2, "--max-len", 60, *SMALL, *RARE]
    done = glassformer("train", *files, "--out", tmp_path / "r", *options)
    refused(done, 1, "%) are longer than 59 tokens", "--task summarization")
    done = glassformer("train", *files, "--task", "summarization", "--out", tmp_path / "s", *options)
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "s").name == "summarization"
    for sides in (files, ["--src", files[0], "--ref", files[1]]):
        done = glassformer("evaluate", tmp_path / "s", *sides, "--max-length", 2)
        assert done.returncode == 0, done.stderr
        assert "ROUGE-1" in done.stdout


def test_a_preset_beside_a_model_to_start_from_is_refused(corpus, tmp_path):
    first = tmp_path / "first"
    assert train(corpus, first).returncode == 0
    files = [corpus / "train.en", corpus / "train.fr"]
    done = glassformer("train", *files, "--init-from", first, "--preset", "big", "--out", tmp_path / "r", "--steps", 1)
    refused(done, 2, "--preset big: has no effect with --init-from")


def test_outputs_of_a_loss_are_refused_and_the_file_stays(tmp_path):
    make("causal-lm", "gpt2").save(tmp_path / "lm")
    write_lines(tmp_path / "test.txt", ["a cat"] * 9)
    write_lines(tmp_path / "results.txt", ["kept"])
    done = glassformer("evaluate", tmp_path / "lm", tmp_path / "test.txt", "--out", tmp_path / "results.txt")
    refused(done, 2, "--out: causal-lm has a loss, and no outputs")
    assert (tmp_path / "results.txt").read_text() == "kept\n"


def test_a_test_set_without_examples_cannot_be_compared_on(tmp_path):
    make("classification").save(tmp_path / "it")
    table = write_lines(tmp_path / "test.csv", ["text,label"])
    done = glassformer("compare", tmp_path / "it", tmp_path / "it", table)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    blank = write_lines(tmp_path / "blank.csv", ["text,label", " ,yes", " ,no"])
    refused(glassformer("compare", tmp_path / "it", tmp_path / "it", blank), 2, "no examples to compare on")


def test_equal_lines_have_other_samples_in_each_chunk(tmp_path, monkeypatch):
    make("causal-lm", "gpt2").save(tmp_path / "lm")
    monkeypatch.setattr(lines, "MAX_CHUNK_LINES", 3)
    done = glassformer("complete", tmp_path / "lm", "--max-length", 12, stdin="the cat\n" * 6)
    found = done.stdout.split("\n")[:-1]
    assert (done.returncode, len(found), len(set(found))) == (0, 6, 6)
    again = glassformer("complete", tmp_path / "lm", "--max-length", 12, stdin="the cat\n" * 6)
    assert again.stdout == done.stdout
