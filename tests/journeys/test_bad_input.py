"""Each mistake: one message with place and remedy, an exit code, no traceback, nothing lost."""

import json
import shutil

import pytest

from tests.journeys.conftest import RARE, SMALL, glassformer, write_lines


def refused(done, code: int, *parts: str) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    flat = " ".join(done.stderr.split())
    for part in parts:
        assert part in flat, done.stderr


def train(corpus, out, **sides):
    files = [sides.get("src", corpus / "train.en"), sides.get("tgt", corpus / "train.fr")]
    return glassformer("train", *files, "--out", out, "--steps", 2, *SMALL, *RARE)


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
    refused(done, 2, "dropout: 3.0", "steps: -1", "beams: there is no such option", "lr: 'fast'", str(toml))


def test_heads_that_do_not_divide_the_width(corpus, tmp_path):
    done = glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "r", "--n-heads", 7)
    refused(done, 2, "n_heads = 7")


def test_shares_of_the_training_that_make_more_than_all_of_it(corpus, tmp_path):
    done = glassformer(
        "train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "r", "--warmup-ratio", 0.9
    )
    refused(done, 2, "warmup_ratio and decay_ratio together")


def test_training_text_from_standard_input(tmp_path):
    (tmp_path / "run.toml").write_text('src = ["-"]\ntgt = ["-"]\n')
    done = glassformer("train", "--config", tmp_path / "run.toml", "--out", tmp_path / "r")
    refused(done, 2, "standard input (-) can be read only once")


def test_two_budgets(corpus, tmp_path):
    done = glassformer(
        "train", corpus / "train.en", corpus / "train.fr", "--out", tmp_path / "r", "--steps", 1, "--minutes", 1
    )
    refused(done, 2, "steps and minutes exclude one another")


def test_out_that_holds_something_else_is_left_alone(corpus, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    refused(train(corpus, tmp_path), 2, "holds something that is not a run (thesis.txt)")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_out_that_is_a_file(corpus, tmp_path):
    (tmp_path / "f").touch()
    refused(train(corpus, tmp_path / "f"), 2, "is a file")


def test_one_plain_file(corpus, tmp_path):
    done = glassformer("train", corpus / "train.en", "--task", "translation", "--out", tmp_path / "r")
    refused(done, 2, "which is source, which target?")


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


def test_more_nbest_than_beam(model):
    refused(glassformer("translate", model, "--beam", 2, "--nbest", 3, stdin="a\n"), 2, "nbest = 3")


def test_a_device_that_is_not_there(model):
    import torch

    if torch.cuda.is_available():
        pytest.skip("CUDA is here")
    refused(glassformer("translate", model, "--device", "cuda", stdin="a\n"), 2, "this machine has: ")


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
    assert "has not ended; using best/step-" in done.stderr
    assert done.returncode == 0
