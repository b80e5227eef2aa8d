"""Monolingual text, distillation and ensembles, from files to a translator."""

import re
import signal
import subprocess
import sys
import time

import pytest

from glassformer.corpora.demo.pairs import split_pairs
from tests.journeys.conftest import ENVIRONMENT, RARE, SMALL, glassformer, write_lines
from tests.journeys.test_resume import broken_off, weights
from tests.synthetic.endpoint import serving

N_STEPS = 150  # enough for sentences of words that end
SHORT = [*SMALL, *RARE, "--tokenizer", "word", "--steps", N_STEPS, "--save-every", 30, "--lr", 1e-2]
LANGUAGES = ["--languages", "en", "fr"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory, corpus):
    """English and French text beside the parallel text; some of it of the dev set, some in the other language."""
    folder = tmp_path_factory.mktemp("texts")
    _, more = split_pairs(700, 260, seed=5)
    dev = (corpus / "dev.fr").read_text().splitlines()
    write_lines(folder / "mono.en", [english for english, _ in more])
    write_lines(folder / "mono.fr", [*(french for _, french in more), *dev[:3], "", more[0][1]])
    write_lines(folder / "wrong.fr", [english for english, _ in more])
    write_lines(folder / "empty.fr", ["", "  "])
    return folder


def train(corpus, out, *more):
    files = [corpus / "train.en", corpus / "train.fr", "--dev-src", corpus / "dev.en", "--dev-tgt", corpus / "dev.fr"]
    return ["train", *files, "--out", out, *SHORT, *LANGUAGES, *more]


@pytest.mark.slow
def test_monolingual_text_of_both_sides_is_translated_and_used(corpus, texts, tmp_path):
    out = tmp_path / "run"
    command = train(corpus, out, "--more-tgt", texts / "mono.fr", "--more-src", texts / "mono.en")
    done = glassformer(*command)
    assert done.returncode == 0, done.stderr
    assert re.search(r"--more-tgt: 3 lines that are in the dev set were left out", done.stderr)
    assert "10%" not in done.stderr
    back, forward = (
        [(out / "synthetic" / f"{name}.{side}").read_text().splitlines() for side in ("src", "tgt")]
        for name in ("back", "forward")
    )
    french, english = ((texts / f"mono.{side}").read_text().splitlines() for side in ("fr", "en"))
    assert set(back[1]) <= set(french)
    assert set(forward[0]) <= set(english)
    assert len(back[0]) == len(back[1]) > 100
    assert "<tag>" in (out / "tokenizer.json").read_text()
    before = weights(out)
    again = glassformer(*command)
    assert "has already been trained for 150 steps" in again.stderr
    assert weights(out) == before
    assert glassformer("translate", out, stdin="the cat\n").returncode == 0


@pytest.mark.slow
def test_a_killed_training_with_monolingual_text_ends_with_the_same_weights(corpus, texts, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    command = lambda out: train(corpus, out, "--more-tgt", texts / "mono.fr", "--optimizer", "muon")
    assert glassformer(*command(whole)).returncode == 0
    helper = broken / "synthetic" / "back-model"
    broken_off(command(broken), helper, signal.SIGKILL, 30, 0.0)
    broken_off(command(broken), broken, signal.SIGKILL, 30, 0.0)
    assert glassformer(*command(broken)).returncode == 0
    assert weights(broken) == weights(whole)


def test_a_model_that_is_given_translates_back(corpus, texts, tmp_path):
    reverse = tmp_path / "reverse"
    files = corpus / "train.fr", corpus / "train.en"
    assert glassformer("train", *files, "--out", reverse, *SHORT).returncode == 0
    more = ["--more-tgt", texts / "mono.fr", "--reverse-model", reverse]
    done = glassformer(*train(corpus, tmp_path / "run", *more))
    assert done.returncode == 0, done.stderr
    assert "Training a model that translates back" not in done.stderr


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--more-tgt", "wrong.fr", "It looks like text of the other side: --more-src."),
        ("--more-src", "mono.fr", "It looks like text of the other side: --more-tgt."),
        ("--more-tgt", "empty.fr", "contains no text"),
        ("--more-tgt", "absent.fr", "absent.fr"),
    ],
)
def test_text_that_cannot_be_used(texts, tmp_path, option, name, message):
    train_, _ = split_pairs(900, 10, seed=3)  # the language of a side is known from some hundred sentences
    en, fr = (write_lines(tmp_path / f"t.{code}", [pair[i] for pair in train_]) for i, code in enumerate(("en", "fr")))
    done = glassformer("train", en, fr, "--out", tmp_path / "run", *SHORT, option, texts / name)
    assert done.returncode in (1, 2), done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_options_that_need_others(corpus, tmp_path):
    out = tmp_path / "run"
    assert "reverse_model needs more_tgt" in glassformer(*train(corpus, out, "--reverse-model", corpus)).stderr
    unknown = glassformer(*train(corpus, out, "--tagged", corpus / "dev.en"))
    assert "not a source file of the training" in unknown.stderr
    for option in ("--bpe-dropout=0.1", "--augment", "--prompt-loss-weight=0.5"):
        done = glassformer("train", corpus / "train.en", "--out", out, *SMALL, "--steps", 2, option)
        assert done.returncode in (1, 2)
        assert f"{option.partition('=')[0]}: the task causal-lm has no such option" in done.stderr


@pytest.fixture(scope="module")
def teachers(corpus, tmp_path_factory):
    """Two models of the same vocabulary that have learned to end a sentence."""
    folder = tmp_path_factory.mktemp("teachers")
    for seed in (1, 2):
        done = glassformer(*train(corpus, folder / str(seed), "--seed", seed))
        assert done.returncode == 0, done.stderr
    return folder / "1", folder / "2"


def test_an_ensemble_translates_and_is_evaluated(corpus, teachers, tmp_path):
    model, second = teachers
    source = (corpus / "test.en").read_text()
    alone = glassformer("translate", model, stdin=source).stdout
    together = glassformer("translate", model, "--ensemble", second, stdin=source).stdout
    assert len(together.splitlines()) == len(source.splitlines())
    assert together != alone
    out = tmp_path / "out"
    test = ["--src", corpus / "test.en", "--ref", corpus / "test.fr", "--out", out]
    assert glassformer("evaluate", model, "--ensemble", second, *test).returncode == 0
    assert out.read_text() == together


def test_members_that_do_not_fit(corpus, model, tmp_path):
    assert "is in the ensemble twice" in glassformer("translate", model, "--ensemble", model, stdin="a\n").stderr
    other = tmp_path / "other"
    options = [*SMALL, *RARE, "--steps", 2, "--tokenizer", "char"]
    glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", other, *options)
    done = glassformer("translate", model, "--ensemble", other, stdin="a\n")
    assert done.returncode in (1, 2)
    assert "has another vocabulary than the first model" in done.stderr


def test_a_student_of_two_models_and_references(corpus, teachers, tmp_path):
    out = tmp_path / "student"
    files = ["--src", corpus / "train.en", "--tgt", corpus / "train.fr"]
    done = glassformer("distill", *teachers, *files, "--out", out, *SHORT)
    assert done.returncode == 0, done.stderr
    n = len((corpus / "train.en").read_text().splitlines())
    sources, targets = ((out / "teacher" / f"train.{side}").read_text().splitlines() for side in ("src", "tgt"))
    assert len(sources) == len(targets)
    assert targets[-n:] == (corpus / "train.fr").read_text().splitlines()
    assert glassformer("translate", out, stdin="the cat\n").returncode == 0


@pytest.mark.slow
def test_a_student_of_an_endpoint_that_is_killed_is_the_same_and_nothing_is_asked_twice(corpus, tmp_path):
    answers = dict(zip(*((corpus / f"train.{side}").read_text().splitlines() for side in ("en", "fr")), strict=True))
    connections = 4

    def command(out):
        endpoint = [server.url, "--endpoint-model", "m", "--prompt", "{text}", "--connections", connections]
        return ["distill", *endpoint, "--src", corpus / "train.en", "--out", out, *SHORT]

    def reply(message, n):
        time.sleep(0.005)
        return answers[message]

    with serving(reply) as server:
        whole, broken = tmp_path / "whole", tmp_path / "broken"
        assert glassformer(*command(whole)).returncode == 0
        assert set(server.asked.values()) == {1}
        server.asked.clear()
        n_kills = 3
        for kill in range(n_kills):
            path = broken / "teacher" / "answers.jsonl"
            kill_when(command(broken), path, 20 + 40 * kill)
        done = glassformer(*command(broken))
        assert done.returncode == 0, done.stderr
        assert "known from before" in done.stderr
    assert weights(broken) == weights(whole)
    # Requests that were under way when the command was killed have no answer: these are asked again.
    assert sum(server.asked.values()) - len(server.asked) <= n_kills * connections


def kill_when(arguments, path, n_lines):
    """Run a command until a file has so many lines, then kill it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "glassformer", *map(str, arguments)],
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= n_lines:
            break
        time.sleep(0.002)
    process.kill()
    process.wait()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no teacher given"),
        (["http://127.0.0.1:9"], "needs --endpoint-model and --prompt"),
        (["http://127.0.0.1:9", "--endpoint-model", "m", "--prompt", "x"], "must contain {text} once"),
        (["http://127.0.0.1:9", "MODEL"], "several teachers, one of them a server"),
        (["MODEL", "--prompt", "{text}"], "--prompt: only for a server"),
        (["absent"], "absent: no such folder"),
    ],
)
def test_teachers_that_cannot_be_used(corpus, model, tmp_path, arguments, message):
    arguments = [model if argument == "MODEL" else argument for argument in arguments]
    done = glassformer("distill", *arguments, "--src", corpus / "train.en", "--out", tmp_path / "run", *SHORT)
    assert done.returncode in (1, 2), done.stderr
    assert message in done.stderr


def test_a_folder_with_another_run_is_refused_before_the_long_work(corpus, model, teachers, tmp_path):
    for command in (
        train(corpus, model, "--more-tgt", corpus / "test.fr"),
        ["distill", *teachers, "--src", corpus / "train.en", "--out", model, *SHORT],
    ):
        done = glassformer(*command)
        assert done.returncode == 2, done.stderr
        assert "contains a run on other text.\n  Choose another --out." in done.stderr
        assert "sentences" not in done.stderr


def test_a_teacher_that_is_the_student(corpus, model):
    done = glassformer("distill", model, "--src", corpus / "train.en", "--out", model, *SHORT)
    assert "is the teacher and the student" in done.stderr


def test_a_teacher_whose_answers_cannot_be_used(corpus, tmp_path):
    with serving(lambda message, n: f"Sure! Here is the translation: {message}") as server:
        endpoint = [server.url, "--endpoint-model", "m", "--prompt", "{text}"]
        done = glassformer("distill", *endpoint, "--src", corpus / "train.en", "--out", tmp_path / "run", *SHORT)
    assert done.returncode in (1, 2)
    assert "talks about the translation: " in done.stderr
    assert "300 of 300 translations cannot be used" in done.stderr
