"""Monolingual text, distillation and ensembles, from files to a translator."""

import re
import signal
import subprocess
import time
import zipfile

import pytest

import glassformer as gf
from glassformer.corpora.demo.pairs import split_pairs
from glassformer.data.dataset import Dataset
from glassformer.learning.registry import objective_class
from glassformer.tasks.registry import TASKS
from glassformer.tokens.tags import tags_of
from glassformer.train_config import TrainConfig
from glassformer.training.options import OWN_OPTIONS
from tests.forks import forking_python
from tests.journeys.conftest import ENVIRONMENT, RARE, SMALL, glassformer, write_lines
from tests.journeys.test_resume import broken_off, weights
from tests.synthetic.endpoint import serving

N_STEPS = 150  # enough for sentences of words that end
SHORT = [*SMALL, *RARE, "--tokenizer", "word", "--steps", N_STEPS, "--save-every", 30, "--lr", 1e-2, "--no-rotary"]
"""One layer hardly knows by relative positions where a sentence ends."""
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


def test_text_that_is_in_the_pairs_is_no_more_text(corpus, tmp_path):
    done = glassformer(*train(corpus, tmp_path / "run", "--more-tgt", corpus / "train.fr"))
    assert done.returncode == 1
    assert "train.fr: no line that is neither in the pairs nor in the dev set" in done.stderr
    assert "leave --more-tgt out" in done.stderr


@pytest.mark.slow
def test_monolingual_text_of_both_sides_is_translated_and_used(corpus, texts, tmp_path):
    out = tmp_path / "run"
    command = train(corpus, out, "--more-tgt", texts / "mono.fr", "--more-src", texts / "mono.en")
    done = glassformer(*command)
    assert done.returncode == 0, done.stderr
    assert re.search(r"--more-tgt: 3 lines that are in the dev set were left out", done.stderr)
    improbable = re.search(r"(\d+) improbable: ", done.stderr)  # a tenth of 260, less those not used for other reasons
    assert improbable
    assert 13 <= int(improbable[1]) <= 26
    back, forward = (
        [(out / "synthetic" / f"{name}.{side}").read_text().splitlines() for side in ("src", "tgt")]
        for name in ("back", "forward")
    )
    french, english = ((texts / f"mono.{side}").read_text().splitlines() for side in ("fr", "en"))
    assert set(back[1]) <= set(french)
    assert set(forward[0]) <= set(english)
    assert len(back[0]) == len(back[1]) > 100
    assert "<tag:back-translated>" in (out / "tokenizer.json").read_text()
    before = weights(out)
    again = glassformer(*command)
    assert f"has already been trained for {N_STEPS} steps" in again.stderr
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


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_killed_training_on_several_corpora_ends_with_the_same_weights(corpus, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    def command(out):
        files = ["--src", corpus / "train.en", corpus / "test.en", "--tgt", corpus / "train.fr", corpus / "test.fr"]
        dev = ["--dev-src", corpus / "dev.en", "--dev-tgt", corpus / "dev.fr"]
        of_files = ["--weights", 1, 2.5, "--tags", "none", "other", "--in-domain", corpus / "train.en"]
        return ["train", *files, *dev, "--out", out, *SHORT, *LANGUAGES, *of_files]

    done = glassformer(*command(whole))
    assert done.returncode == 0, done.stderr
    assert f"From step {round(0.8 * N_STEPS) + 1} on: only the text of --in-domain." in done.stderr
    broken_off(command(broken), broken, signal.SIGKILL, 30, 0.0)
    broken_off(command(broken), broken, signal.SIGKILL, N_STEPS - 10, 0.0)
    assert glassformer(*command(broken)).returncode == 0
    assert weights(broken) == weights(whole)
    source = (corpus / "test.en").read_text()
    plain, tagged = (glassformer("translate", whole, *tag, stdin=source).stdout for tag in ((), ("--tag", "other")))
    assert len(tagged.splitlines()) == len(source.splitlines())
    assert tagged != plain


def test_weights_tags_and_the_end_are_those_of_a_whole_archive(corpus, tmp_path):
    own, web = tmp_path / "own.tsv", tmp_path / "web.zip"
    sides = [(corpus / f"train.{side}").read_text().splitlines() for side in ("en", "fr")]
    write_lines(own, map("\t".join, zip(*sides, strict=True)))
    po = [f'msgid "{src} again"\nmsgstr "{tgt} encore"\n' for src, tgt in list(zip(*sides, strict=True))[:60]]
    with zipfile.ZipFile(web, "w") as archive:
        for name, part in (("a.po", po[:30]), ("b/c.po", po[30:])):
            archive.writestr(
                name, 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + "\n".join(part)
            )
    dev = ["--dev-src", corpus / "dev.en", "--dev-tgt", corpus / "dev.fr"]
    of_files = ["--weights", 1, 2, "--tags", "none", "web", "--in-domain", web]
    out = tmp_path / "run"
    done = glassformer(
        "train", "--src", own, web, *dev, "--out", out, *SMALL, *RARE, "--steps", 10, *LANGUAGES, *of_files
    )
    assert done.returncode == 0, done.stderr
    assert f"{web} 60 x 2.00" in done.stderr
    assert "only the text of --in-domain." in done.stderr
    tag = tags_of(gf.load(out).tokenizer)["web"]
    rows = Dataset(out / "data" / "train", ("src", "tgt"))
    n_tagged = sum(rows[i][0][0] == tag for i in range(len(rows)))
    assert n_tagged == 120


@pytest.mark.slow
def test_monolingual_text_with_tables_of_several_corpora_and_without_a_dev_set(corpus, texts, tmp_path):
    tables = []
    for number in range(2):
        rows = list(
            zip(*((corpus / f"train.{side}").read_text().splitlines()[number::2] for side in ("en", "fr")), strict=True)
        )
        tables.append(write_lines(tmp_path / f"{number}.tsv", map("\t".join, rows)))
    of_files = ["--weights", 3, 1, "--tags", "none", "other", "--in-domain", tables[0]]
    more = ["--more-tgt", texts / "mono.fr", *LANGUAGES]
    out = tmp_path / "run"
    done = glassformer("train", "--src", *tables, "--out", out, *SHORT, *of_files, *more)
    assert done.returncode == 0, done.stderr
    folder = out / "synthetic"
    dev = (folder / "dev.src").read_text().splitlines()
    assert len(dev) >= 5
    assert set(dev) <= {line.split("\t")[0] for line in tables[0].read_text().splitlines()}
    options = TrainConfig.resolve({}, out / "run.toml", environment={})
    assert options.src == (folder / "train.src", folder / "train1.src", folder / "back.src")
    assert not any(set(dev) & set(path.read_text().splitlines()) for path in options.src[:2])
    assert options.tags == ("none", "other", "back-translated")
    assert options.weights[0] == 3 * options.weights[1]
    assert options.in_domain == options.src[:1]
    assert TrainConfig.resolve({}, folder / "back-model" / "run.toml", environment={}).in_domain == (
        folder / "train.tgt",
    )
    assert f"From step {round(0.8 * N_STEPS) + 1} on: only the text of --in-domain." in done.stderr


def test_the_end_on_the_only_parallel_file(corpus, texts, tmp_path):
    more = ["--more-tgt", texts / "mono.fr", "--in-domain", corpus / "train.en"]
    done = glassformer(*train(corpus, tmp_path / "run", *more))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("only the text of --in-domain.") == 1


def test_tags_need_a_dev_set(corpus, tmp_path):
    files = ["--src", corpus / "train.en", corpus / "test.en", "--tgt", corpus / "train.fr", corpus / "test.fr"]
    done = glassformer("train", *files, "--out", tmp_path / "run", *SHORT, "--tags", "none", "other")
    assert "Give a dev set of the text that the model is for: --dev-src and --dev-tgt." in done.stderr


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
        ("--more-tgt", "wrong.fr", "It is like the text of the other side: --more-src."),
        ("--more-src", "mono.fr", "It is like the text of the other side: --more-tgt."),
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
    for option in ("--bpe-dropout=0.1", "--augment=0.1", "--prompt-loss-weight=0.5", "--weights=2"):
        done = glassformer("train", corpus / "train.en", "--out", out, *SMALL, "--steps", 2, option)
        assert done.returncode in (1, 2)
        assert f"{option.partition('=')[0]}: the task causal-lm has no such option" in done.stderr


def test_tables_with_columns_and_a_dev_set_are_read_as_such(corpus, texts, tmp_path):
    """All files of a training have one format; the text that a model makes is another."""
    tables = []
    for part in ("train", "dev"):
        rows = zip(*((corpus / f"{part}.{side}").read_text().splitlines()[:240] for side in ("en", "fr")), strict=True)
        lines = [f"{number};{tgt}\u00a0!;{src}" for number, (src, tgt) in enumerate(rows)]
        tables.append(write_lines(tmp_path / f"{part}.data", ["n;french;english", *lines]))
    files = [tables[0], "--dev", tables[1], "--format", "csv", "--keys", "src=english", "tgt=french"]
    more = ["--more-tgt", texts / "mono.fr", *LANGUAGES]
    done = glassformer("train", *files, "--out", tmp_path / "run", *SHORT, *more)
    assert done.returncode == 0, done.stderr
    assert "Dev set: 20 pairs" in done.stderr
    parallel = (tmp_path / "run" / "synthetic" / "parallel.tgt").read_text().splitlines()
    assert parallel == [f"{line}\u00a0!" for line in (corpus / "train.fr").read_text().splitlines()[:240]]
    student = glassformer("distill", tmp_path / "run", "--src", *files, "--out", tmp_path / "student", *SHORT)
    assert student.returncode == 0, student.stderr
    assert "Dev set: 20 pairs" in student.stderr


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


def test_options_without_effect_are_refused(corpus, texts, teachers, tmp_path):
    student = ["distill", teachers[0], "--src", corpus / "train.en", "--out", tmp_path / "run", *SHORT]
    done = glassformer(*student, "--more-tgt", texts / "mono.fr")
    assert done.returncode == 2
    assert "distillation: --more-tgt: has no effect here" in done.stderr
    done = glassformer(*student, "--pooling", "mean")
    assert done.returncode == 2
    assert "--pooling: the family transformer has no such option" in done.stderr
    assert not (tmp_path / "run").exists()  # the teacher was not asked


def test_members_that_do_not_fit(corpus, model, tmp_path):
    assert "is in the ensemble twice" in glassformer("translate", model, "--ensemble", model, stdin="a\n").stderr
    other = tmp_path / "other"
    options = [*SMALL, *RARE, "--steps", 2, "--tokenizer", "char"]
    glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", other, *options)
    done = glassformer("translate", model, "--ensemble", other, stdin="a\n")
    assert done.returncode in (1, 2)
    assert "has another vocabulary than the first model" in done.stderr
    short = tmp_path / "short"
    options = [*SMALL, *RARE, "--steps", 2, "--max-len", 64]
    glassformer("train", corpus / "train.en", corpus / "train.fr", "--out", short, *options)
    done = glassformer("translate", model, "--ensemble", short, stdin="a\n")
    assert done.returncode == 2
    assert "short: its texts have at most 64 tokens" in done.stderr
    assert "Name it first" in done.stderr
    assert glassformer("translate", short, "--ensemble", model, stdin="a\n").returncode == 0


def test_a_student_of_two_models_and_references(corpus, teachers, tmp_path):
    out = tmp_path / "student"
    files = ["--src", corpus / "train.en", "--tgt", corpus / "train.fr", "--dev", corpus / "dev.en", corpus / "dev.fr"]
    done = glassformer("distill", *teachers, *files, "--out", out, *SHORT)
    assert done.returncode == 0, done.stderr
    assert f"from {corpus / 'dev.en'}" in done.stderr
    n = len((corpus / "train.en").read_text().splitlines())
    sources, targets = ((out / "teacher" / f"train.{side}").read_text().splitlines() for side in ("src", "tgt"))
    assert len(sources) == len(targets)
    assert targets[-n:] == (corpus / "train.fr").read_text().splitlines()
    assert glassformer("translate", out, stdin="the cat\n").returncode == 0


def small(corpus, folder):
    """A corpus with fewer pairs, which models translate in less time."""
    folder.mkdir()
    for name in ("train.en", "train.fr", "dev.en", "dev.fr"):
        write_lines(folder / name, (corpus / name).read_text().splitlines()[:240])
    return folder


@pytest.mark.slow
def test_teachers_of_the_training_itself(corpus, tmp_path):
    """The same weights after interruptions of a teacher and of the student; the teachers differ."""
    corpus = small(corpus, tmp_path / "corpus")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    command = lambda out: train(corpus, out, "--n-teachers", 2)
    done = glassformer(*command(whole))
    assert done.returncode == 0, done.stderr
    assert "Training teacher 2 of 2" in done.stderr
    first, second = (whole / "teacher" / f"model-{number}" for number in (1, 2))
    assert weights(first) != weights(second)
    n = len((corpus / "train.en").read_text().splitlines())
    targets = (whole / "teacher" / "train.tgt").read_text().splitlines()
    assert targets[-n:] == (corpus / "train.fr").read_text().splitlines()
    answers = glassformer("translate", first, "--ensemble", second, stdin=(corpus / "train.en").read_text()).stdout
    assert sum(text in answers.splitlines() for text in targets[:-n]) > 0.9 * (len(targets) - n)
    broken_off(command(broken), broken / "teacher" / "model-2", signal.SIGKILL, 30, 0.0)
    broken_off(command(broken), broken, signal.SIGKILL, 30, 0.0)
    again = glassformer(*command(broken))
    assert again.returncode == 0, again.stderr
    assert weights(broken) == weights(whole)
    before = weights(first)
    longer = glassformer(*(N_STEPS + 30 if word == N_STEPS else word for word in command(whole)))
    assert longer.returncode == 0, longer.stderr
    assert "The teachers stay as they are" in longer.stderr
    assert f"Resuming from step {N_STEPS}." in longer.stderr
    assert weights(first) == before
    other = glassformer(*train(corpus, whole, "--n-teachers", 3))
    assert "contains a run with 2 teachers.\n  Use --n-teachers 2, or choose another --out." in other.stderr
    assert not (whole / "teacher" / "model-3").exists()


def test_what_has_no_own_teachers(corpus, texts, tmp_path):
    out = tmp_path / "run"
    done = glassformer(*train(corpus, out, "--n-teachers", 2, "--more-tgt", texts / "mono.fr"))
    assert "n_teachers and more_tgt are mutually exclusive" in done.stderr
    table = write_lines(tmp_path / "t.csv", ["text,label", "good,yes", "bad,no"])
    done = glassformer("train", table, "--out", out, *SMALL, "--n-teachers", 2)
    assert done.returncode == 2
    assert done.stderr == "error: --n-teachers: the task classification has no such option.\n  Leave it out.\n"


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
        # Not in this process: a late answer of the server to a command that was killed would end it by SIGPIPE.
        arguments = [forking_python(), "-m", "glassformer", *map(str, command(broken))]
        done = subprocess.run(arguments, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "known from before" in done.stderr
    assert weights(broken) == weights(whole)
    # Requests that were under way when the command was killed have no answer: these are asked again.
    assert sum(server.asked.values()) - len(server.asked) <= n_kills * connections


def kill_when(arguments, path, n_lines):
    """Run a command until a file has so many lines, then kill it."""
    process = subprocess.Popen(
        [forking_python(), "-m", "glassformer", *map(str, arguments)], env=ENVIRONMENT, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= n_lines:
            break
        time.sleep(0.002)
    process.kill()
    process.communicate()


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


def test_options_of_single_tasks_are_known():
    trained = [name for name, row in TASKS.items() if row.objective]
    assert {option for name in trained for option in objective_class(name).options} == set(OWN_OPTIONS)
