"""Every task from files to answers: trained in seconds on what a rule decides, then asked through the command line."""

import hashlib
import json
import random
import re
import subprocess
import sys

import pytest

from glassformer.tokens.tokenizer import Tokenizer
from tests.journeys.conftest import ENVIRONMENT, RARE, glassformer, write_lines

SMALL = [
    *("--preset", "tiny", "--d-model", "32", "--n-heads", "2", "--d-ff", "64", "--n-layers", "1", "--dropout", "0"),
    *("--vocab-size", "330", "--batch-tokens", "400", "--threads", "1", "--lr", "0.01", "--decay-ratio", "0.5"),
]
GOOD, BAD = ["lovely", "fine", "great"], ["awful", "poor", "dull"]
NEUTRAL = ["the", "film", "plot", "cast", "was", "a", "very"]


def sentence(rng: random.Random, *kinds: list[str], n: int = 6) -> str:
    words = [rng.choice(NEUTRAL) for _ in range(n)]
    for kind in kinds:
        words[rng.randrange(n)] = rng.choice(kind)
    return " ".join(words)


def write(path, records):
    return write_lines(path, [json.dumps(record) for record in records])


def sentiment(rng):
    label = rng.choice(["good", "bad"])
    return {"text": sentence(rng, GOOD if label == "good" else BAD), "label": label}


def equality(rng):
    word, other = rng.choice(GOOD), rng.choice(GOOD)
    return {"text": word, "text2": other, "score": 1.5 * (word == other)}


def intensity(rng):
    n = rng.randrange(7)
    words = ["good"] * n + ["so"] * (6 - n)
    rng.shuffle(words)
    return {"text": " ".join(words), "score": n * 1.5}


def tagged(rng):
    words = [rng.choice(NEUTRAL + GOOD) for _ in range(rng.randrange(3, 9))]
    return {"words": words, "tags": ["ADJ" if word in GOOD else "X" for word in words]}


def reversal(rng):
    words = [rng.choice(NEUTRAL) for _ in range(5)]
    return {"src": " ".join(words), "tgt": f"{words[0]} {words[1]}"}


def squad(rng, n):
    paragraphs = []
    for i in range(n):
        name, place = rng.choice(["Ann", "Bob", "Cy"]), rng.choice(["Rome", "Oslo", "Bonn", "Lyon"])
        context = f"{' '.join(rng.choice(NEUTRAL) for _ in range(3))} {name} lives in {place} {i % 50}."
        answer = {"text": place, "answer_start": context.index(place)}
        paragraphs.append({"context": context, "qas": [{"id": str(i), "question": "Where?", "answers": [answer]}]})
    return json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """A folder of each kind of model, trained once."""
    done = {}

    def trained(kind: str, *options: str, steps: int = 150):
        if kind not in done:
            folder = tmp_path_factory.mktemp(kind)
            rng = random.Random(kind)
            if kind == "answer":
                data = write_lines(folder / "train.json", [squad(rng, 300)])
                dev = write_lines(folder / "dev.json", [squad(rng, 20)])
            elif kind == "language":
                lines = ["".join(str((n + k) % 10) for k in range(20)) for n in range(400)]
                data, dev = write_lines(folder / "train.txt", lines), write_lines(folder / "dev.txt", lines[:70])
            else:
                make = {
                    "classification": sentiment,
                    "regression": intensity,
                    "equality": equality,
                    "tagging": tagged,
                }.get(kind, reversal)
                data = write(folder / "train.jsonl", [make(rng) for _ in range(400)])
                dev = write(folder / "dev.jsonl", [make(rng) for _ in range(40)])
            task = ["--task", kind] if kind == "summarization" else []
            command = ["train", data, "--dev", dev, "--out", folder / "run", "--steps", steps, *SMALL, *task, *options]
            ended = glassformer(*command, *RARE)
            assert ended.returncode == 0, ended.stderr
            done[kind] = folder / "run", dev, command
        return done[kind]

    return trained


def figures(model, dev) -> dict[str, float]:
    ended = glassformer("evaluate", model, dev, "--json")
    assert ended.returncode == 0, ended.stderr
    return {name: row["score"] for name, row in json.loads(ended.stdout).items() if isinstance(row, dict)}


def test_labels_are_learned_said_and_measured(train, tmp_path):
    model, dev, _ = train("classification")
    assert figures(model, dev)["accuracy"] == 1.0
    (tmp_path / "other.csv").write_text("text,label\nthe film was great,Good\na very dull plot,bad\n")
    done = glassformer("evaluate", model, tmp_path / "other.csv")
    assert (
        "warning: 1 of 2 labels are not labels of the model: 'Good'.\n  Those of the model: 'bad', 'good'."
        in done.stderr
    )
    output = glassformer("run", model, stdin="the film was great\n\na very dull plot\n").stdout
    assert output == "good\n\nbad\n"
    record = json.loads(glassformer("run", model, "--json", stdin="the film was great\n").stdout)
    assert record["output"] == "good"
    assert sum(record["probabilities"].values()) == pytest.approx(1)


def test_numbers_are_learned_said_and_measured(train):
    model, dev, _ = train("regression", steps=300)
    assert figures(model, dev)["Pearson"] > 0.9
    output = glassformer("run", model, stdin="so so so so so so\ngood good good good good so\n").stdout
    low, high = map(float, output.split())
    assert low < 2 < 6 < high


def test_tags_are_learned_said_and_measured(train):
    model, dev, _ = train("tagging")
    assert figures(model, dev)["accuracy"] == 1.0
    assert (
        glassformer("run", model, stdin="the lovely cast was fine\n\n").stdout
        == "the/X lovely/ADJ cast/X was/X fine/ADJ\n\n"
    )


def test_answers_are_learned_said_and_measured(train):
    model, dev, _ = train("answer", steps=400)
    assert figures(model, dev)["EM"] > 0.8
    line = json.dumps({"question": "Where?", "context": "film a was Bob lives in Oslo 7."})
    assert glassformer("run", model, stdin=f"Where?\ta the a Ann lives in Rome 3.\n{line}\n").stdout == "Rome\nOslo\n"


@pytest.mark.slow
def test_what_follows_is_learned_said_and_measured(train):
    model, dev, _ = train("language", "--tokenizer", "char", "--max-len", "64", steps=300)
    assert figures(model, dev)["perplexity"] < 2
    greedy = glassformer("run", model, "--beam", 1, "--max-length", 5, stdin="3456\n").stdout
    assert greedy.startswith("78")


def test_drawn_text_repeats_with_its_seed_whatever_the_neighbors(train):
    model, _, _ = train("language", "--tokenizer", "char", "--max-len", "64", steps=300)
    lines = [f"{n} " for n in range(7)]

    def drawn(text, *options):
        return glassformer("run", model, "--temperature", 2, "--max-length", 9, *options, stdin=text).stdout

    together = drawn("".join(f"{line}\n" for line in lines))
    assert together == drawn("".join(f"{line}\n" for line in lines), "--batch-tokens", 1)
    assert together != drawn("".join(f"{line}\n" for line in lines), "--seed", 2)


@pytest.mark.slow
def test_summaries_are_learned_said_and_measured(train):
    model, dev, _ = train("summarization", "--max-len", "64", steps=500)
    assert figures(model, dev)["ROUGE-1"] > 0.9


@pytest.mark.slow
def test_a_sampled_summary_repeats_with_its_seed_and_changes_with_another(train):
    model, _, _ = train("summarization", "--max-len", "64", steps=500)
    text = "film was the cast a\nplot very a was film\n"

    def sampled(seed):
        done = glassformer("run", model, "--temperature", 3, "--max-length", 9, "--seed", seed, stdin=text)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert sampled(3) == sampled(3)
    assert len({sampled(seed) for seed in range(3, 7)}) == 4


def of_four_tasks(rng):
    """Two that name classes, one that gives a number, one that says words."""
    text, n = sentence(rng, rng.choice([GOOD, BAD])), rng.randrange(5)
    is_good = any(word in GOOD for word in text.split())
    return [
        {"task": "mood", "text": text, "label": "good" if is_good else "bad"},
        {"task": "count", "text": " ".join(["so"] * (n + 1)), "text2": "how many", "label": n + 1},
        {"task": "first", "src": text, "tgt": text.split()[0]},
        {"task": "long", "text": " ".join(["so"] * (n + 1)), "label": "yes" if n > 2 else "no"},
    ][rng.randrange(4)]


@pytest.mark.parametrize(
    ("family", "learned", "steps"),
    [("transformer", ["mood", "count", "long"], 650), ("t5", ["mood"], 400)],
)  # without position embeddings, equal words are hard to count
@pytest.mark.slow
def test_four_tasks_are_learned_by_one_model_and_measured_apart(tmp_path, family, learned, steps):
    rng = random.Random(1)
    data = write(tmp_path / "train.jsonl", [of_four_tasks(rng) for _ in range(600)])
    dev = write(tmp_path / "dev.jsonl", [of_four_tasks(rng) for _ in range(60)])
    options = ["--family", family, "--mixing-temperature", 2, *("0.005" if part == "0.01" else part for part in SMALL)]
    ended = glassformer("train", data, "--dev", dev, "--out", tmp_path / "run", "--steps", steps, *options, *RARE)
    assert ended.returncode == 0, ended.stderr
    assert "Mixture:" in ended.stderr
    result = figures(tmp_path / "run", dev)
    assert {"mood MCC", "count Pearson", "first MCC", "long MCC"} <= set(result)
    assert min(result[f"{task} exact"] for task in learned) > 0.8
    assert glassformer("run", tmp_path / "run", stdin="mood sentence: the lovely film\n").stdout == "good\n"


@pytest.mark.parametrize("kind", ["classification", "language"])
def test_a_run_goes_on_as_if_it_had_not_stopped(train, tmp_path, kind):
    _, _, command = train(kind)
    command = [tmp_path / "run" if part == command[5] else part for part in command]
    weights = []
    for budgets in ((40,), (20, 40)):
        out = tmp_path / f"run{len(budgets)}"
        for steps in budgets:
            parts = [out if part == tmp_path / "run" else part for part in command]
            parts[parts.index("--steps") + 1] = steps
            parts[parts.index("--decay-ratio") + 1] = 0  # the rate must not follow the budget, which changes here
            ended = glassformer(*parts, "--warmup-ratio", 0, "--validate-every", 20, "--average-checkpoints", 1)
            assert ended.returncode == 0, ended.stderr
        weights.append(hashlib.sha256((out / "checkpoints" / "step-40" / "model.safetensors").read_bytes()).hexdigest())
    assert weights[0] == weights[1]


def test_another_task_begins_from_a_trained_folder(train, tmp_path):
    model, _, _ = train("classification")
    rng = random.Random(7)
    data = write(tmp_path / "tags.jsonl", [tagged(rng) for _ in range(200)])
    ended = glassformer(
        "train", data, "--init-from", model, "--out", tmp_path / "tags", "--steps", 60, "--lr", 0.005, *RARE
    )
    assert ended.returncode == 0, ended.stderr
    assert glassformer("run", tmp_path / "tags", stdin="the lovely cast\n").stdout == "the/X lovely/ADJ cast/X\n"


def test_words_to_tag_have_the_tokens_that_the_pretraining_had(tmp_path):
    text, rng = tmp_path / "text.txt", random.Random(7)
    text.write_text("\n".join(" ".join(tagged(rng)["words"]) for _ in range(300)))
    data = write(tmp_path / "tags.jsonl", [tagged(rng) for _ in range(50)])
    small = ("--steps", 1, *SMALL, *RARE)
    ended = glassformer("train", text, "--task", "masked-lm", "--tokenizer", "bpe", "--out", tmp_path / "text", *small)
    assert ended.returncode == 0, ended.stderr
    ended = glassformer(
        "train", data, "--init-from", tmp_path / "text", "--out", tmp_path / "tags", "--steps", 1, *RARE
    )
    assert ended.returncode == 0, ended.stderr
    tokenizer = Tokenizer.from_folder(tmp_path / "tags")
    assert tokenizer.encode_words(["lovely", "cast"]) == [
        [token] for token in Tokenizer.from_folder(tmp_path / "text").encode("a lovely cast")[1:]
    ]


@pytest.mark.parametrize("kind", ["classification", "regression", "tagging", "answer", "summarization"])
def test_a_model_compared_with_itself_is_no_better(train, kind):
    steps = {"regression": 300, "answer": 400, "summarization": 500}.get(kind, 150)
    model, dev, _ = train(kind, *(("--max-len", "64") if kind == "summarization" else ()), steps=steps)
    ended = glassformer("compare", model, model, dev, "--json")
    assert ended.returncode == 0, ended.stderr
    for row in map(json.loads, ended.stdout.splitlines()):
        assert (row["difference"], row["p_value"]) == (0, 1)
    scores = json.loads(glassformer("evaluate", model, dev, "--json", "--interval").stdout)
    low, high = scores[row["metric"]]["interval"]
    assert low <= scores[row["metric"]]["score"] <= high
    assert "--tokenize: for models that translate" in refused("compare", model, model, dev, "--tokenize", "zh")
    assert "--lowercase: for models that translate" in refused("evaluate", model, dev, "--lowercase")


def test_a_comparison_has_all_metrics_if_a_model_predicts_another_class(train, tmp_path):
    model, dev, command = train("classification")
    other = tmp_path / "other"
    more = [{"text": "a film of the year", "label": "other"}] * 3000
    lines = command[1].read_text() + "".join(json.dumps(row) + "\n" for row in more)
    data = write_lines(tmp_path / "train.jsonl", lines.splitlines())
    assert glassformer("train", data, "--dev", dev, "--out", other, "--steps", 5, *SMALL, *RARE).returncode == 0
    assert glassformer("classify", other, stdin="a great film\n").stdout == "other\n"
    test = write(
        tmp_path / "test.jsonl", [{"text": "a great film", "label": "good"}, {"text": "a dull film", "label": "bad"}]
    )
    ended = glassformer("compare", model, other, test, "--json")
    assert ended.returncode == 0, ended.stderr
    assert [json.loads(line)["metric"] for line in ended.stdout.splitlines()] == ["accuracy", "F1", "MCC"]


@pytest.mark.filterwarnings("default")  # which the command prints
def test_an_evaluation_says_that_texts_were_cut(train, tmp_path):
    model, _, _ = train("classification")
    n = json.loads((model / "config.json").read_text())["max_len"]
    for text, is_cut in (("great " * n, True), ("great", False)):
        data = write(tmp_path / "data.jsonl", [{"text": text, "label": "good"}] * 3)
        ended = glassformer("evaluate", model, data, "--json")
        assert ended.returncode == 0, ended.stderr
        message = r"warning: at least one text: longer than the maximum length of \d+ tokens: its end was cut off"
        assert len(re.findall(message, ended.stderr)) == is_cut


def test_a_form_of_run_says_what_the_model_can_do(train):
    model, _, _ = train("classification")
    assert glassformer("classify", model, stdin="a great film\n").stdout == "good\n"
    assert "was trained for classification, not for tagging" in refused("tag", model, stdin="a\n")
    assert "not for translation" in refused("translate", model, stdin="a\n")
    assert "not for translation" in refused("score", model, *(f"--{side}={model}/README.md" for side in ("src", "tgt")))
    assert "parameters" in glassformer("info", model).stdout


def refused(*arguments, stdin="") -> str:
    ended = glassformer(*arguments, stdin=stdin)
    assert ended.returncode in (1, 2), ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_a_label_of_the_dev_set_alone_is_named_with_its_line(tmp_path):
    rng = random.Random(1)
    data = write(tmp_path / "train.jsonl", [sentiment(rng) for _ in range(20)])
    dev = write(tmp_path / "dev.jsonl", [sentiment(rng), {"text": "so so", "label": "so"}])
    output = refused("train", data, "--dev", dev, "--out", tmp_path / "run", *SMALL)
    assert f"{dev}:2: the label 'so' does not occur in the training set" in output


def test_a_label_with_one_example_is_named(tmp_path):
    rng = random.Random(1)
    records = [sentiment(rng) for _ in range(40)]
    data = write(tmp_path / "train.jsonl", [*records, {"text": "so so", "label": "so"}])
    dev = write(tmp_path / "dev.jsonl", records[:5])
    ended = glassformer("train", data, "--dev", dev, "--out", tmp_path / "run", "--steps", 2, *SMALL, *RARE)
    assert "one training example each, too few to learn them: 'so'" in ended.stderr


def test_a_task_that_a_family_cannot_do_is_refused(tmp_path):
    rng = random.Random(1)
    data = write(tmp_path / "train.jsonl", [sentiment(rng) for _ in range(20)])
    assert "classification: not supported by the model family gpt2; use bert" in refused(
        "train", data, "--family", "gpt2", "--out", tmp_path / "r"
    )
    assert "task 'classify': unknown" in refused("train", data, "--task", "classify", "--out", tmp_path / "r")


def test_equal_numbers_are_refused(tmp_path):
    data = write(tmp_path / "train.jsonl", [{"text": f"a {n}", "score": 1} for n in range(30)])
    assert "every label is 1" in refused("train", data, "--out", tmp_path / "run", *SMALL)


def test_a_question_without_a_context_is_named_with_its_line(train):
    model, _, _ = train("answer", steps=400)
    assert re.search("line 2: expected question TAB context", refused("run", model, stdin="a\tb\nno tab here\n"))


def test_a_question_without_a_context_that_comes_later_is_named_with_its_line(train):
    model, _, _ = train("answer", steps=400)
    done = subprocess.Popen(
        [sys.executable, "-m", "glassformer", "answer", str(model)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, encoding="utf-8", env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdin
    assert done.stdout
    done.stdin.write("Where?\ta Ann lives in Rome 3.\n")
    done.stdin.flush()
    done.stdout.readline()  # the first line is answered before the second comes
    _, errors = done.communicate("no tab here\n", timeout=60)
    assert done.returncode == 1
    assert "line 2: expected question TAB context" in errors


def test_options_without_effect_on_a_loss_are_refused(train):
    model, dev, _ = train("language", "--tokenizer", "char", "--max-len", "64", steps=300)
    for option in (("--beam", 2), ("--precision", "int8"), ("--stop", "a")):
        name = option[0].removeprefix("--")
        assert f"{name}: without effect on the loss" in refused("evaluate", model, dev, *option)


def test_an_evaluation_names_what_it_leaves_out(train, tmp_path):
    model, _, _ = train("classification")
    rows = [("lovely film", "good"), (" ", "bad"), ("awful film", "bad")]
    test = write(tmp_path / "test.jsonl", [{"text": text, "label": label} for text, label in rows])
    for command in (["evaluate", model], ["compare", model, model]):
        ended = glassformer(*command, test)
        assert ended.returncode == 0, ended.stderr
        assert "1 lines without text were left out (first: " in ended.stderr


def test_similarity_is_of_pairs(train):
    model, _, _ = train("regression", steps=300)
    assert "trained on single texts, not on pairs" in refused("similarity", model, stdin="so\tgood\n")


def test_similarity_wants_two_texts_on_each_line(train):
    model, _, _ = train("equality")
    assert glassformer("similarity", model, stdin="so\tgood\n\ngood\tso\n").stdout.count("\n") == 3
    for bad, n in (("so good", 1), ("a\tb\tc\td", 4)):
        output = refused("similarity", model, stdin=f"so\tgood\n\n{bad}\n")
        assert f"standard input:3: expected 2 texts separated by a tab, found {n}" in output


def test_json_keeps_blank_lines_and_names_lines_that_are_cut(train):
    long = "so " * 400
    for kind, options in (("classification", {}), ("regression", {"steps": 300})):
        model, _, _ = train(kind, **options)
        ended = glassformer("run", model, "--json", stdin=f"a film\n\n \n{long}\n")
        records = [json.loads(line) for line in ended.stdout.splitlines()]
        assert [record["input"].strip() for record in records] == ["a film", "", "", long.strip()]
        assert [bool(record["output"]) for record in records] == [True, False, False, True]
        assert "line 4: longer than the maximum length" in ended.stderr


def test_options_of_size_beside_a_model_are_refused(train, tmp_path):
    model, _, command = train("classification")
    again = ["train", command[1], "--init-from", model, "--out", tmp_path / "run", "--steps", 2, *RARE]
    for option, value in (("--max-len", 64), ("--d-model", 64), ("--n-layers", 4), ("--tokenizer", "char")):
        output = refused(*again, option, value)
        assert f"{option} {value}: --init-from {model} keeps the size and the tokenizer of its model" in output
        assert "Leave it out" in output
    assert not (tmp_path / "run" / "run.toml").exists()
    assert glassformer(*again, "--d-model", 32).returncode == 0  # as it is
    assert glassformer("train", "--repeat", tmp_path / "run", "--out", tmp_path / "again").returncode == 0


def test_a_dev_set_without_a_loss_is_refused(tmp_path):
    pairs = [{"text": f"the plot was very fine {i}", "summary": "fine plot"} for i in range(50)]
    long = {"text": "the plot", "summary": "fine " * 200}
    data = write(tmp_path / "train.jsonl", pairs)
    options = ["--out", tmp_path / "run", "--steps", 2, *SMALL, *RARE]
    dev = write(tmp_path / "dev.jsonl", [long])
    assert "nothing in the dev set has a loss: its texts are too long" in refused("train", data, "--dev", dev, *options)
    write(dev, [long, *pairs[:2]])
    ended = glassformer("train", data, "--dev", dev, *options)
    assert ended.returncode == 0, ended.stderr
    assert "1 of 3 dev examples are too long, and left out (--max-len)" in ended.stderr
    again = glassformer(
        *("train", data, "--dev", dev, "--init-from", tmp_path / "run", "--out", tmp_path / "again"), "--steps", 2
    )
    assert "too long, and left out (the length of the model of --init-from)" in again.stderr
    write(dev, [long] * 50 + pairs)
    output = refused("train", dev, "--init-from", tmp_path / "run", "--out", tmp_path / "long", "--steps", 2)
    assert "would be left out.\n  Split the texts at sentence ends." in output
    text = write_lines(tmp_path / "text.txt", ["the film was fine", "a plot"] * 50)
    for task in ("skip-gram", "span-corruption"):
        word = write_lines(tmp_path / "word.txt", ["film"])
        out = ["--task", task, "--dev", word, "--out", tmp_path / task, "--steps", 2, "--tokenizer", "word"]
        assert "its texts are too short" in refused("train", text, *out)


def test_bleu_of_a_text_without_spaces_is_of_its_characters(tmp_path):
    words = ["猫", "犬", "家", "山", "川", "花"]
    pairs = [f"{a} {b} {c}\tは{a}が{b}の{c}を見た。\n" for a in words for b in words for c in words]
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(pairs), encoding="utf-8")
    options = ["--languages", "zh", "ja", "--steps", 60, *SMALL, *RARE]
    ended = glassformer("train", data, "--out", tmp_path / "run", *options)
    assert ended.returncode == 0, ended.stderr
    assert "(BLEU with sacrebleu's tokenizer char)" in ended.stderr
    assert "with sacrebleu's tokenizer char" in (tmp_path / "run" / "README.md").read_text()
    training = json.loads((tmp_path / "run" / "training.json").read_text())
    assert training["dev_bleu"] > 1  # of whole sentences, it would be 0
    scores = json.loads(glassformer("evaluate", tmp_path / "run", data, "--json").stdout)
    assert "tok:char" in scores["BLEU"]["signature"]


def test_a_training_that_began_with_a_t5_goes_on(tmp_path):
    """Its preset has options that the family does not have."""
    pairs = [{"src": f"the plot {i}", "tgt": f"a cast {i}"} for i in range(40)]
    data = write(tmp_path / "train.jsonl", pairs)
    base = ["train", data, "--family", "t5", "--out", tmp_path / "base", "--steps", 2, *SMALL, *RARE]
    assert glassformer(*base).returncode == 0
    tuned = ["train", data, "--init-from", tmp_path / "base", "--threads", 1, *RARE]
    assert glassformer(*tuned, "--out", tmp_path / "tuned", "--steps", 2).returncode == 0
    ended = glassformer(*tuned, "--out", tmp_path / "tuned", "--steps", 3)
    assert ended.returncode == 0, ended.stderr
    assert "Resuming from step 2" in ended.stderr
    assert "--vocab-size 999: --init-from" in refused(*tuned, "--out", tmp_path / "other", "--vocab-size", 999)
