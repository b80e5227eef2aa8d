"""Lines in, lines out."""

import json
import os
import random
import subprocess
import sys
import time

import pytest

from glassformer.cli import standard_input
from glassformer.documents.tmx import TMX_END, tmx_entry, tmx_start
from tests.journeys.conftest import ENVIRONMENT, RARE, SMALL, glassformer, write_lines
from tests.journeys.test_bad_input import refused


def random_lines(n: int) -> list[str]:
    rng = random.Random(1)
    alphabet = "abc de.é ñ中文字🙂\u2028\u0085\v\f\r\u200b\ufeff</s>&amp;\t\x1c"
    ranges = [range(32, 0x250), range(0x400, 0x480), range(0x4E00, 0x4F00), range(0x1F300, 0x1F600)]
    kinds = [
        lambda: "".join(rng.choice(alphabet) for _ in range(rng.randrange(40))),
        lambda: "".join(chr(rng.choice(rng.choice(ranges))) for _ in range(rng.randrange(30))),
        lambda: " " * rng.randrange(4),
        lambda: "word " * rng.randrange(80),
    ]
    return [rng.choice(kinds)() for _ in range(n)]


@pytest.mark.slow
def test_a_thousand_unicode_lines_give_a_thousand_lines_with_blank_for_blank(model):
    lines = random_lines(1000)
    done = glassformer(
        "translate", model, "--beam", 1, "--max-length", 5, stdin="".join(f"{line}\n" for line in lines).encode()
    )
    assert done.returncode == 0, done.stderr
    out = done.stdout.decode().split("\n")
    assert len(out) == 1001
    assert out[-1] == ""
    assert all(out[i] == line.removesuffix("\r") for i, line in enumerate(lines) if not line.strip())


def test_a_last_line_without_newline_and_windows_line_ends_are_lines(model):
    done = glassformer("translate", model, "--beam", 1, stdin=b"The cat slept.\r\nThe dog slept.")
    assert done.stdout.decode().count("\n") == 2
    assert "\r" not in done.stdout.decode()


@pytest.mark.slow
def test_options_come_from_the_environment_where_no_flag_is_given(model, tmp_path):
    for command in (["run", model], ["evaluate", model, "--src", "x.txt", "--ref", "x.txt"]):
        done = subprocess.run(
            [sys.executable, "-m", "glassformer", *map(str, command)],
            env=ENVIRONMENT | {"GLASSFORMER_BEAM": "0"},
            cwd=tmp_path,
            input=write_lines(tmp_path / "x.txt", ["The cat slept."]).read_bytes(),
            capture_output=True,
        )
        assert done.returncode == 2
        assert b"beam: '0'" in done.stderr
        assert b"(in the environment)" in done.stderr


def test_no_lines_in_no_lines_out(model):
    done = glassformer("translate", model, stdin="")
    assert (done.returncode, done.stdout) == (0, "")


def test_output_is_the_same_bytes_whatever_the_batch(model, corpus):
    text = "\n".join((corpus / "train.en").read_text().split("\n")[:60]) + "\n"
    outs = {
        glassformer("translate", model, "--json", "--batch-tokens", n, "--max-length", 12, stdin=text).stdout
        for n in (1, 64, 100_000)
    }
    assert len(outs) == 1


def test_json_gives_source_score_and_token_log_probabilities(model):
    done = glassformer("translate", model, "--json", "--nbest", 2, stdin="The cat slept.\n")
    record = json.loads(done.stdout)
    assert record["input"] == "The cat slept."
    assert len(record["nbest"]) == 2
    assert len(record["tokens"]) == len(record["log_probs"])
    penalty = (5 + len(record["tokens"])) / 6
    assert record["score"] == pytest.approx(sum(record["log_probs"]) / penalty, rel=1e-4)


def test_bf16_and_int8_translate_line_for_line_with_about_the_same_probabilities(model):
    text = "The cat slept.\n\nThe dog slept.\n"
    rows = {}
    for precision in ("fp32", "bf16", "int8"):
        done = glassformer("translate", model, "--json", "--beam", 1, "--precision", precision, stdin=text)
        rows[precision] = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    for precision in ("bf16", "int8"):
        assert [row["input"] for row in rows[precision]] == text.split("\n")[:-1]
        for exact, rough in zip(rows["fp32"], rows[precision], strict=True):
            assert rough["log_probs"][:1] == pytest.approx(exact["log_probs"][:1], abs=0.05)


def test_nbest_gives_so_many_lines_for_each(model):
    done = glassformer("translate", model, "--nbest", 3, stdin="The cat slept.\n\nThe dog slept.\n")
    assert done.stdout.count("\n") == 9


def test_a_long_line_is_split_and_named(model):
    long = "The cat slept. " * 120
    done = glassformer("translate", model, "--beam", 1, "--max-length", 9, stdin=f"The cat.\n{long}\n")
    assert done.stdout.count("\n") == 2
    assert "line 2: longer than the maximum length of 255 tokens" in done.stderr


@pytest.mark.slow
def test_a_pipe_closed_early_ends_quietly(model):
    command = f"{sys.executable} -m glassformer translate {model} --beam 1 --max-length 4 | head -n 1"
    done = subprocess.run(
        command, shell=True, input="The cat slept.\n" * 9000, capture_output=True, text=True, env=ENVIRONMENT
    )
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_scores_and_evaluation_agree_with_sacrebleu(model, corpus, tmp_path):
    import sacrebleu

    out = tmp_path / "out.fr"
    done = glassformer(
        "evaluate", model, "--src", corpus / "test.en", "--ref", corpus / "test.fr", "--out", out, "--json", "--beam", 1
    )
    record = json.loads(done.stdout)
    hypotheses, references = (p.read_text().split("\n")[:-1] for p in (out, corpus / "test.fr"))
    for name, function in (
        ("BLEU", sacrebleu.corpus_bleu),
        ("chrF2", sacrebleu.corpus_chrf),
        ("TER", sacrebleu.corpus_ter),
    ):
        assert record[name]["score"] == pytest.approx(function(hypotheses, [references]).score)
        assert "version" in record[name]["signature"]


def test_score_gives_the_log_probability_of_each_pair(model, corpus):
    done = glassformer("score", model, "--src", corpus / "test.en", "--tgt", corpus / "test.fr", "--json")
    rows = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    plain = glassformer("score", model, "--src", corpus / "test.en", "--tgt", corpus / "test.fr").stdout.split()
    assert [float(x) for x in plain] == [round(sum(row["log_probs"]), 4) for row in rows]


def test_a_pair_to_score_that_is_cut_is_named(model, tmp_path):
    pairs = write_lines(tmp_path / "pairs.tsv", ["The cat.\tLe chat.", "The cat.\t" + "Le chat. " * 200])
    done = glassformer("score", model, "--src", pairs)
    assert done.stdout.count("\n") == 2
    assert "line 2: longer than the maximum length of 255 tokens: its end was cut off" in done.stderr
    assert glassformer("score", model, "--src", pairs, "--quiet").stderr == ""


def test_info_names_sizes_vocabulary_and_training(model):
    record = json.loads(glassformer("info", model, "--json").stdout)
    assert record["vocab_size"] == 300
    assert record["training"]["steps"] == 30


def test_info_describes_the_machine_without_a_model():
    record = json.loads(glassformer("info", "--hardware", "--json").stdout)
    assert record["kernels"].startswith(("C library, instruction set", "PyTorch, because"))
    assert record["cores"] >= 1
    refused(glassformer("info"), 2, "give either a model folder or --hardware")


@pytest.mark.parametrize("form", ["tsv", "jsonl", "translation.jsonl", "gz"])
def test_every_format_trains(corpus, tmp_path, form):
    import gzip

    pairs = list(zip(*((corpus / f"train.{lang}").read_text().split("\n")[:-1] for lang in ("en", "fr")), strict=True))
    if form == "tsv":
        files = [write_lines(tmp_path / "t.tsv", [f"{a}\t{b}" for a, b in pairs])]
    elif form == "jsonl":
        files = [write_lines(tmp_path / "t.jsonl", [json.dumps({"src": a, "tgt": b}) for a, b in pairs])]
    elif form == "translation.jsonl":
        rows = [json.dumps({"translation": {"en": a, "fr": b}}) for a, b in pairs]
        files = [write_lines(tmp_path / "t.jsonl", rows)]
    else:
        files = [tmp_path / "t.en.gz", tmp_path / "t.fr.gz"]
        for file, lang in zip(files, ("en", "fr"), strict=True):
            file.write_bytes(gzip.compress((corpus / f"train.{lang}").read_bytes()))
    done = glassformer("train", *files, "--out", tmp_path / "run", "--steps", 3, *SMALL, *RARE)
    assert done.returncode == 0, done.stderr
    assert glassformer("translate", tmp_path / "run", "--beam", 1, stdin="The cat.\n").stdout.count("\n") == 1


def test_several_files_a_side_train(corpus, tmp_path):
    done = glassformer(
        *("train", "--src", corpus / "train.en", corpus / "dev.en", "--tgt", corpus / "train.fr", corpus / "dev.fr"),
        *("--out", tmp_path / "run", "--steps", 3, *SMALL, *RARE),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "data" / "corpus.json").read_text())["n_examples"] > 300


def test_in_python_a_text_gives_a_text_and_a_list_a_list(model):
    import glassformer as gf

    translator = gf.load(model)
    one = translator("The cat slept.", beam=1, max_length=9)
    assert isinstance(one, str)
    assert translator(["The cat slept.", ""], beam=1, max_length=9) == [one, ""]
    assert translator("The cat slept.\nThe cat slept.", beam=1, max_length=9) == f"{one}\n{one}"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["translate", "run"])
def test_lines_are_answered_when_the_input_pauses(model, command):
    process = subprocess.Popen(
        [sys.executable, "-m", "glassformer", command, str(model), "--beam", "1", "--max-length", "5"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, bufsize=0,
    )  # fmt: skip
    try:
        for lines in ([b"The cat slept.\n"], [b"\n"], [b"The dog slept.\n", b"The cat slept.\n"]):
            process.stdin.write(b"".join(lines))
            assert [process.stdout.readline().endswith(b"\n") for _ in lines] == [True] * len(lines)
    finally:
        process.stdin.close()
        assert process.wait(30) == 0
        process.stdout.close()


def test_an_error_while_reading_comes_after_the_answers_to_the_lines_before(model):
    done = glassformer("translate", model, "--beam", 1, stdin=b"The cat slept.\n" * 3 + b"\xff\xfe\n")
    assert done.returncode == 1
    assert done.stdout.count(b"\n") == 3
    assert b"standard input:4" in done.stderr


def test_white_space_around_a_line_is_kept(model):
    done = glassformer("translate", model, "--beam", 1, stdin=b"\tThe cat slept. \n  \nThe cat slept.\n")
    first, blank, second, _ = done.stdout.decode().split("\n")
    assert (first, blank) == (f"\t{second} ", "  ")


@pytest.fixture(scope="module")
def memories(corpus, tmp_path_factory):
    """A folder with the pairs of the dev set as a translation memory."""
    folder = tmp_path_factory.mktemp("memories")
    sides = [(corpus / f"dev.{language}").read_text().split("\n")[:-1] for language in ("en", "fr")]
    entries = "".join(tmx_entry(*pair, ("en", "fr")) for pair in zip(*sides, strict=True))
    (folder / "dev.tmx").write_text(f"{tmx_start('en')}{entries}{TMX_END}")
    return folder


def test_a_test_set_is_given_in_each_way_that_training_text_is(model, corpus, memories):
    dev = corpus / "dev.en", corpus / "dev.fr"
    expected = glassformer("evaluate", model, "--src", dev[0], "--ref", dev[1], "--json", "--beam", 1).stdout
    assert json.loads(expected)["n_sentences"] == 20
    for files in (dev, ("--src", *dev), (memories,)):
        assert glassformer("evaluate", model, *files, "--json", "--beam", 1).stdout == expected
    for command in (["compare", model, model], ["ablate", model]):
        options = ["--parts", "layers"] if command[0] == "ablate" else []
        results = [glassformer(*command, *files, *options) for files in (dev, (memories,))]
        assert results[0].returncode == 0, results[0].stderr
        assert results[0].stdout == results[1].stdout != ""
    done = glassformer("evaluate", model, dev[0])
    refused(done, 2, "which is the source, which the target?", "Give two files, or TSV or JSONL files of pairs.")


def test_training_text_and_dev_set_are_given_alike(corpus, memories, tmp_path):
    dev = corpus / "dev.en", corpus / "dev.fr"
    train = corpus / "train.en", corpus / "train.fr"
    few = ["--steps", 1, *SMALL, *RARE]
    (tmp_path / "run.toml").write_text(f'src = ["{train[0]}"]\ntgt = ["{train[1]}"]\n')
    dev_sets = []
    for n, files in enumerate(
        [
            (*train, "--dev", *dev),
            ("--src", *train, "--dev", memories),
            ("--config", tmp_path / "run.toml", "--dev", *dev),
            ("--src", memories, "--dev", *dev),
        ]
    ):
        done = glassformer("train", *files, "--out", tmp_path / str(n), *few)
        assert done.returncode == 0, done.stderr
        records = map(json.loads, (tmp_path / str(n) / "data" / "dev.jsonl").read_text().splitlines())
        dev_sets.append([(record["src"], record["tgt"]) for record in records])
    assert len(dev_sets[0]) == 20
    assert all(pairs == dev_sets[0] for pairs in dev_sets)
    done = glassformer("train", *train, "--dev", dev[0], "--out", tmp_path / "none", *few)
    refused(done, 2, "one plain text file", "Give two files, or --dev-src FILE … --dev-tgt FILE …, or TSV or JSONL")
    done = glassformer("train", train[0], "--tgt", train[1], "--out", tmp_path / "none", *few)
    refused(done, 2, f"--tgt: text is also given without an option: {train[0]}", "Give all of it by options")


def test_training_text_is_understood_by_options_from_the_environment_and_the_file(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr("glassformer.synthetic.train.train", lambda config, **_: found.append(config))
    rows = ["tweet,mood,id", "I am glad today,good,1", "it rains again,bad,2", "what a fine day,good,3"]
    table, toml = write_lines(tmp_path / "data.csv", rows), tmp_path / "o.toml"
    (tmp_path / "memories").mkdir()
    memory = write_lines(tmp_path / "memories" / "a.po", ['msgid "The cat."', 'msgstr "Le chat."'])
    sides = tuple(write_lines(tmp_path / name, ["The cat.", "The dog."]) for name in ("a.tsv", "b.tsv"))
    pairs = write_lines(tmp_path / "pairs.tsv", ["The cat.\tLe chat.", "The dog.\tLe chien."])

    def config(*arguments, options="", **environment):
        toml.write_text(options)
        with monkeypatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(f"GLASSFORMER_{name.upper()}", value)
            done = glassformer("train", *arguments, "--config", toml, "--out", tmp_path / "r")
        assert done.returncode == 0, done.stderr
        return found.pop()

    assert config(table, options='keys = ["text=tweet", "label=mood"]').src == (table,)
    assert (lines := config(*sides, format="lines")).src + lines.tgt == sides
    assert (lines := config(src=":".join(map(str, sides)), format="lines")).tgt == sides[1:]
    assert config(options=f'src = ["{memory.parent}"]').src == (memory,)
    assert config(pairs, "--format", "tsv", format="lines").tgt == ()  # the command line comes first
    done = glassformer("train", table, "--config", toml, "--out", tmp_path / "r")
    assert "no column looks like the label" in done.stderr
    toml.write_text("keys = 3")
    refused(glassformer("train", table, "--config", toml, "--out", tmp_path / "r"), 2, "keys: 3", str(toml))
    monkeypatch.setenv("GLASSFORMER_SRC", str(pairs))
    assert glassformer("train", "--out", tmp_path / "r").returncode == 0
    monkeypatch.setenv("GLASSFORMER_SRC", "")
    refused(glassformer("train", "--out", tmp_path / "r"), 2, "no training text given")


def test_the_lines_of_a_file_are_processed_together_however_slowly_they_are_read(tmp_path, monkeypatch):
    def slow(_):
        for line in "ab":
            yield line
            time.sleep(3 * standard_input.PAUSE_S)

    monkeypatch.setattr(standard_input, "read_lines", slow)
    with open(write_lines(tmp_path / "text", "ab")) as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert list(standard_input.input_chunks(9)) == [["a", "b"]]
    with os.fdopen(os.pipe()[0]) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert list(standard_input.input_chunks(9)) == [["a"], ["b"]]
