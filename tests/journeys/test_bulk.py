"""Files of lines, as a user processes them."""

import gzip
import json
import os
import signal
import subprocess
import time

import pytest

from glassformer.cli import jobs
from glassformer.cli.lines import translations_of_lines
from glassformer.errors import UserError
from tests.documents.test_tmx import memory, tuv
from tests.forks import forking_python
from tests.inspection.models import make
from tests.journeys.conftest import ENVIRONMENT, glassformer, write_lines
from tests.journeys.test_bad_input import refused

DECODING = ("--beam", 1, "--max-length", 5)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A plain and a compressed file of lines, 1,600 in all, with blank and equal ones."""
    folder = tmp_path_factory.mktemp("lines")
    nouns = ["cat", "dog", "bird", "fish"]
    lines = [f"The {nouns[i % 4]} saw {i % 350} of them." if i % 9 else "" for i in range(1600)]
    write_lines(folder / "plain.en", lines[:1200])
    (folder / "packed.gz").write_bytes(gzip.compress("".join(line + "\n" for line in lines[1200:]).encode()))
    return folder


@pytest.fixture(scope="module")
def expected(files, model):
    """The translations of the lines on standard input."""
    texts = {
        "plain.en": (files / "plain.en").read_bytes(),
        "packed.gz": gzip.decompress((files / "packed.gz").read_bytes()),
    }
    return {name: glassformer("translate", model, *DECODING, stdin=text).stdout for name, text in texts.items()}


def check(out, expected):
    assert (out / "plain.en").read_bytes() == expected["plain.en"]
    assert gzip.decompress((out / "packed.gz").read_bytes()) == expected["packed.gz"]


@pytest.mark.slow
def test_files_of_lines_are_translated_as_standard_input_is_by_any_number_of_processes(
    model, files, expected, tmp_path
):
    names = [files / "plain.en", files / "packed.gz"]
    for workers in (1, 2):
        out = tmp_path / f"out-{workers}"
        done = glassformer("translate", model, *names, "--lines", "--out", out, "--workers", workers, *DECODING)
        assert done.returncode == 0, done.stderr
        assert "2 files done; 1,600 lines in" in done.stderr
        check(out, expected)
    again = glassformer(
        "translate", model, files, "--lines", "--out", out, "--batch-tokens", 500, "--threads", 1, *DECODING
    )
    assert "0 files done, 2 done before; 0 lines" in again.stderr
    other = glassformer("translate", model, files, "--lines", "--out", out, "--beam", 2)
    refused(other, 2, "was begun with --beam 1, not with --beam 2", "--out")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="kill -9")
def test_the_same_command_goes_on_after_kill_9_and_no_process_is_left(model, files, expected, tmp_path):
    out = tmp_path / "out"
    command = ["translate", model, files, "--lines", "--out", out, "--workers", 2, *DECODING]
    command = [forking_python(), "-m", "glassformer", *map(str, command)]
    for n_chunks in (1, 2):
        process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE)
        while process.poll() is None and len(list(out.glob(".bulk/chunks/*/0*"))) < n_chunks:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.stderr.read()  # ends when the last of its processes has closed it
        process.stderr.close()
        process.wait()
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"done before" in done.stderr
    check(out, expected)


@pytest.mark.slow
def test_shards_share_a_folder(model, files, expected, tmp_path):
    texts = [files / "plain.en", files / "packed.gz"]
    for i in (2, 1):
        done = glassformer(
            "translate", model, *texts, "--lines", "--out", tmp_path / "out", "--shard", f"{i}/2", *DECODING
        )
        assert done.returncode == 0, done.stderr
        assert ("wait for other shards" in done.stderr) == (i == 2)
    check(tmp_path / "out", expected)


@pytest.mark.slow
def test_scores_of_files_are_those_of_standard_output(model, files, tmp_path):
    pairs = [("The cat slept.", "Le chat dormait."), ("", ""), ("The dog slept.", "Le chien dormait.")]
    path = write_lines(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in pairs])
    alone = glassformer("score", model, "--src", path)
    done = glassformer("score", model, path, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/pairs.tsv").read_text() == alone.stdout
    assert len(alone.stdout.splitlines()) == 3
    records = glassformer("score", model, path, "--out", tmp_path / "json", "--json")
    assert records.returncode == 0
    found = [json.loads(line) for line in (tmp_path / "json/pairs.tsv").read_text().splitlines()]
    assert [f"{record['score']:.4f}" for record in found] == alone.stdout.split()


def test_scores_of_memories_and_tables_with_options_of_memories(model, tmp_path):
    table = write_lines(tmp_path / "pairs.tsv", ["The cat slept.\tLe chat dormait."])
    text = memory(tuv("en", "The cat slept.") + tuv("fr", "Le chat dormait.") + tuv("de", "Die Katze schlief."))
    (tmp_path / "memory.tmx").write_text(text)
    (tmp_path / "damaged.tmx").write_text(text[:200])
    files = [table, tmp_path / "memory.tmx", tmp_path / "damaged.tmx"]
    alone = {
        languages: glassformer("score", model, "--src", files[1], *languages).stdout
        for languages in ((), ("--languages", "en", "de"))
    }
    for i, (languages, expected) in enumerate(alone.items()):
        out = tmp_path / f"{i}"
        done = glassformer("score", model, *files, "--out", out, "--skip-bad", *languages)
        assert done.returncode == 0, done.stderr
        assert "warning: 1 of 1 files cannot be read and was left out" in done.stderr
        assert (out / "memory.tmx").read_text() == expected
        assert (out / "pairs.tsv").read_text() == alone[()]
        assert (out / "damaged.tmx").read_text() == ""
    assert len({*alone.values()}) == 2
    done = glassformer("score", model, "--src", files[2], "--skip-bad")
    assert (done.returncode, done.stdout) == (1, "")
    assert "damaged.tmx: no pairs to score" in done.stderr


def test_run_writes_the_outputs_of_files(model, tmp_path):
    path = write_lines(tmp_path / "x.en", ["The cat slept.", "", "The dog slept."])
    done = glassformer("run", model, path, "--out", tmp_path / "out", "--json", *DECODING)
    assert done.returncode == 0, done.stderr
    alone = glassformer("run", model, "--json", *DECODING, stdin=path.read_bytes())
    assert (tmp_path / "out/x.en").read_bytes() == alone.stdout


@pytest.mark.slow
def test_a_cache_has_what_another_run_computed(model, files, expected, tmp_path):
    cache = tmp_path / "cache"
    command = ["translate", model, files, "--lines", "--cache", cache, *DECODING]
    done = glassformer(*command, "--out", tmp_path / "a", "--workers", 2)
    assert done.returncode == 0, done.stderr
    again = glassformer(*command, "--out", tmp_path / "b")
    assert "1,600 equal to earlier ones" in again.stderr
    other = glassformer(*command, "--out", tmp_path / "c", "--json")
    assert "1,600 equal" not in other.stderr
    for name in ("a", "b"):
        check(tmp_path / name, expected)


def test_a_line_that_fails_has_as_many_lines_of_output_as_others(model, monkeypatch):
    def compute(translator, lines, *arguments, **options):
        if "bad" in lines:
            raise UserError("bad")
        return translations_of_lines(translator, lines, *arguments, **options)

    monkeypatch.setattr(jobs, "translations_of_lines", compute)
    process = jobs.Job("translate", str(model), {"nbest": 3, "beam": 3, "max_length": 5}, threads=1).open(quiet=True)
    texts = process(["The cat slept.", "bad", ""]).texts
    assert [text.count("\n") for text in texts] == [2, 2, 2]
    assert texts[1] == texts[2]


def test_translations_in_chunks_are_evaluated_as_those_of_the_model(model, corpus, tmp_path):
    test = ["evaluate", model, "--src", corpus / "dev.en", "--ref", corpus / "dev.fr"]
    own = glassformer(*test, "--json", *DECODING)
    assert own.returncode == 0, own.stderr
    assert glassformer("translate", model, corpus / "dev.en", "--lines", "--out", tmp_path, *DECODING).returncode == 0
    done = glassformer(*test, "--json", "--outputs", tmp_path / "dev.en", "--interval")
    assert done.returncode == 0, done.stderr
    expected, found = json.loads(own.stdout), json.loads(done.stdout)
    for name in ("BLEU", "chrF2", "TER"):
        assert found[name]["score"] == expected[name]["score"]
    for option in ("--json", "--align"):
        out = tmp_path / option.strip("-")
        translated = glassformer("translate", model, corpus / "dev.en", "--lines", option, "--out", out, *DECODING)
        assert translated.returncode == 0, translated.stderr
    assert glassformer(*test, "--json", "--outputs", tmp_path / "json/dev.en", "--interval").stdout == done.stdout
    refused(glassformer(*test, "--outputs", tmp_path / "align/dev.en"), 1, "more than the translation", "--json")
    low, high = found["BLEU"]["interval"]
    assert low <= found["BLEU"]["score"] <= high
    shouted = write_lines(tmp_path / "shouted", (corpus / "dev.fr").read_text().upper().splitlines())
    done = glassformer(*test, "--json", "--outputs", shouted, "--interval", "--lowercase")
    assert json.loads(done.stdout)["BLEU"]["interval"] == pytest.approx([100, 100])
    compared = glassformer("compare", model, *test[1:], "--tokenize", "char", "--json")
    by_character = glassformer(*test, "--tokenize", "char", "--json")
    assert json.loads(compared.stdout.splitlines()[0])["first"] == json.loads(by_character.stdout)["BLEU"]["score"]
    write_lines(tmp_path / "short", ["a"])
    refused(
        glassformer(*test, "--outputs", tmp_path / "short"),
        1,
        "short: 1 lines, and the test set has 20 pairs",
        "a line",
    )
    refused(glassformer(*test, "--outputs", tmp_path / "none"), 1, "none: no such file")
    refused(glassformer(*test, "--outputs", tmp_path / "dev.en", *DECODING), 2, "nothing is translated", "Leave")


def test_outputs_of_pairs_with_a_blank_side_are_not_evaluated(model, corpus, tmp_path):
    sides = [(corpus / f"dev.{language}").read_text().splitlines() for language in ("en", "fr")]
    sides[0][3] = sides[1][5] = ""
    src, ref = (write_lines(tmp_path / f"dev.{n}", lines) for n, lines in enumerate(sides))
    test = ["evaluate", model, src, ref, "--json"]
    own = glassformer(*test, "--out", tmp_path / "written", *DECODING)
    assert own.returncode == 0, own.stderr
    assert glassformer("translate", model, src, "--lines", "--out", tmp_path / "f", *DECODING).returncode == 0
    for outputs, n_lines in ((tmp_path / "f" / src.name, 20), (tmp_path / "written", 18)):
        assert outputs.read_text().count("\n") == n_lines
        done = glassformer(*test, "--outputs", outputs)
        assert done.returncode == 0, done.stderr
        assert "2 lines that are blank on one side or both were left out" in done.stderr
        found, expected = json.loads(done.stdout), json.loads(own.stdout)
        assert found["n_sentences"] == expected["n_sentences"] == 18
        assert found["chrF2"] == expected["chrF2"]


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """Documents of several formats, one in a folder, and one that cannot be read."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "inside").mkdir()
    (folder / "a.md").write_text("# The cat\n\nThe dog saw **the cat**.\n")
    (folder / "inside/b.html").write_text("<p>The bird saw the fish.</p><p>The cat.</p>")
    (folder / "c.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nThe cat\n")
    (folder / "bad.po").write_text('msgid "The cat"\nmsgstr "')
    return folder


def contents(folder):
    paths = [path for pattern in ("*.*", "inside/*") for path in folder.glob(pattern)]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def test_documents_go_on_where_they_were_and_are_the_same_by_any_number_of_processes(model, documents, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"
    done = glassformer("translate", model, documents, "--out", whole, *DECODING)
    assert done.returncode == 1
    assert done.stderr.count(" texts translated") == 3
    assert done.stderr.endswith(f"1 of 4 files not translated: {documents / 'bad.po'}\n")
    expected = contents(whole)
    assert sorted(expected) == ["a.md", "b.html", "c.srt"]
    again = glassformer("translate", model, documents, "--out", whole, *DECODING)
    assert "3 files done before" in again.stderr
    assert contents(whole) == expected
    refused(
        glassformer("translate", model, documents / "a.md", "--out", whole, "--beam", 2), 2, "beam", "another --out"
    )
    (whole / "a.md").write_text("corrected")
    other = glassformer("translate", model, documents / "a.md", "--out", whole, *DECODING)
    assert "a.md: was changed since it was written, and is not overwritten" in other.stderr
    assert (whole / "a.md").read_text() == "corrected"
    for share in (1, 2):
        done = glassformer("translate", model, documents, "--out", out, "--shard", f"{share}/2", *DECODING)
    assert contents(out) == expected
    out = tmp_path / "processes"
    good = [documents / "a.md", documents / "inside", documents / "c.srt"]
    done = glassformer("translate", model, *good, "--out", out, "--workers", 2, "--json", *DECODING)
    assert done.returncode == 0, done.stderr
    assert {json.loads(line)["translated"] for line in done.stdout.splitlines()} == {1, 2}
    assert contents(out) == expected
    assert not (out / ".bulk").exists()  # nothing to go on with


def test_a_document_that_was_written_before_a_kill_is_done(model, documents, tmp_path):
    out = tmp_path / "out"
    many = tmp_path / "many"
    many.mkdir()
    for i in range(15):
        (many / f"{i:02}.md").write_text(f"The cat saw {i} dogs.\n")
    command = [forking_python(), "-m", "glassformer", "translate", model, many, "--out", out, *DECODING]
    process = subprocess.Popen(list(map(str, command)), env=ENVIRONMENT, stderr=subprocess.PIPE)
    while len(contents(out)) < 3:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.communicate()
    before = {path: path.stat().st_mtime_ns for path in out.glob("*.md")}
    assert len(before) < 15
    done = glassformer("translate", model, many, "--out", out, *DECODING)
    assert done.returncode == 0, done.stderr
    assert f"{len(before)} files done before" in done.stderr
    assert len(contents(out)) == 15
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in before.items())


@pytest.mark.parametrize(
    ("arguments", "what", "remedy"),
    [
        (["translate", "{x}.gz", "{x}.md", "--out", "o"], "lines of text, and a document", "--lines"),
        (["translate", "{x}.gz"], "where to?", "--out FOLDER"),
        (["translate", "{x}.gz", "--only", "all", "--out", "o"], "--only: without effect on lines", "Leave it out"),
        (
            ["translate", "{x}.md", "--cache", "c", "--out", "o"],
            "--cache: for lines of text, not for doc",
            "Leave it out",
        ),
        (["translate", "{x}.gz", "--cache", "c", "--out", "o", "--temperature", "1"], "each sample is", "Leave it out"),
        (["translate", "{x}.gz", "--tag", "formal", "--out", "o"], "not trained with it", "without a tag"),
        (["translate", "{x}.md", "--shortlist", "--out", "o"], "no vocabulary shortlist", "glassformer shortlist"),
        (["run", "--cache", "c"], "--cache: for files, and none is named", "FILE … --out"),
        (["translate", "--shard", "1/2"], "--shard: for files, and none is named", "FILE … --out"),
        (["translate", "{x}.gz", "--shard", "3/2", "--out", "o"], "--shard 3/2: expected I/N", "1/8"),
        (["translate", "none.gz", "--out", "o"], "none.gz: no such file", "Check the path"),
        (["run", "{x}.gz"], "reads standard input", "--out FOLDER"),
        (["run", "--workers", "2"], "--workers: for files, and none is named", "FILE … --out"),
        (["run", "none.en", "--out", "o"], "none.en: no such file", "Check the path"),
        (["score", "{x}.gz"], "where to?", "--out FOLDER"),
        (["score"], "no text given", "--src FILE"),
        (["score", "--src", "{x}.md", "--ray", "local"], "--ray: for files, and none is named", "FILE … --out"),
        (["translate", "{x}.gz", "--ray", "local", "--out", "o"], "needs Ray, which is not installed", "pip install"),
    ],
)
def test_bad_input_is_refused(model, tmp_path, monkeypatch, arguments, what, remedy):
    for name in ("x.gz", "x.md"):
        write_lines(tmp_path / name, ["Hello."])
    monkeypatch.chdir(tmp_path)
    command, *rest = (argument.format(x=tmp_path / "x") for argument in arguments)
    refused(glassformer(command, model, *rest), 2, what, remedy)
    assert not list((tmp_path / "o").glob("*"))


def test_the_samples_of_a_language_model_are_not_cached(tmp_path):
    make("causal-lm", "gpt2").save(tmp_path / "model")
    path = write_lines(tmp_path / "x.txt", ["The black cat"])
    command = ["complete", tmp_path / "model", path, "--out", tmp_path / "out", "--cache", tmp_path / "cache"]
    refused(glassformer(*command), 2, "--cache: each sample is another one", "Leave it out")
    done = glassformer(*command, "--beam", 2, "--max-length", 5)
    assert done.returncode == 0, done.stderr
