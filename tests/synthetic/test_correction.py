"""Further training on corrections."""

import csv

import pytest

from glassformer.data.dataset import Dataset
from glassformer.errors import ConfigError, CorpusError, UserError
from glassformer.synthetic import correction
from glassformer.tasks.registry import load
from glassformer.tokens.tags import tags_of
from glassformer.train_config import TrainConfig
from glassformer.training.run import train

WORDS = {"cat": "chat", "dog": "chien", "red": "rouge", "old": "vieux", "sees": "voit", "is": "est"}
PAIRS = [(f"{a} {b} {c} .", f"{WORDS[a]} {WORDS[b]} {WORDS[c]} .") for a in WORDS for b in WORDS for c in WORDS]
SIZES = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 1, "vocab_size": 280, "batch_tokens": 500, "threads": 1}


def write(path, pairs):
    path.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("correction")
    corpus = write(folder / "train.tsv", PAIRS)
    train(TrainConfig(src=(corpus,), languages=("en", "fr"), out=folder / "model", steps=30, **SIZES), quiet=True)
    return folder / "model"


def update(model, tmp_path, *, max_drop=100.0, corrections=(("cat sees cat .", "minou voit minou ."),)):
    files = [write(tmp_path / "corrections.tsv", corrections)]
    options = {"steps": 20, "batch_tokens": 500, "threads": 1}
    messages = []
    done = correction.update(
        model, files, [], options, out=tmp_path / "new", max_drop=max_drop, log=messages.append, quiet=True
    )
    return done, messages


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_corrections_are_mixed_with_the_earlier_text_without_their_sources(model, tmp_path):
    done, messages = update(model, tmp_path)
    folder = tmp_path / "new" / correction.FOLDER
    assert done.folder == tmp_path / "new"
    assert lines(folder / "corrections.tgt") == ["minou voit minou ."]
    earlier, dev = (set(lines(folder / f"{name}.src")) for name in ("earlier", "dev"))
    assert not {"cat sees cat ."} & (earlier | dev)
    assert earlier <= {src for src, _ in PAIRS}
    assert any(message.startswith("1 correction, ") for message in messages)
    assert load(tmp_path / "new").languages == ("en", "fr")
    assert not (tmp_path / "new-candidate").exists()


def test_corrections_with_a_blank_side_are_counted(model, tmp_path):
    done, messages = update(model, tmp_path, corrections=[("cat sees cat .", "minou ."), ("dog is dog .", " ")])
    path = tmp_path / "corrections.tsv"
    assert lines(done.folder / correction.FOLDER / "corrections.tgt") == ["minou ."]
    assert f"warning: 1 lines that are blank on one side or both were left out (first: {path}:2)" in messages


@pytest.mark.slow
def test_earlier_text_keeps_its_tags(tmp_path):
    own, web = write(tmp_path / "own.tsv", PAIRS), write(tmp_path / "web.tsv", [(src[:-1], tgt) for src, tgt in PAIRS])
    dev = write(tmp_path / "dev.tsv", [(f"{src} {src}", tgt) for src, tgt in PAIRS[:12]])
    options = {"tags": ("none", "web"), "dev_src": (dev,), "languages": ("en", "fr"), "steps": 5}
    train(TrainConfig(src=(own, web), out=tmp_path / "model", **options, **SIZES), quiet=True)
    update(tmp_path / "model", tmp_path)
    new = tmp_path / "new"
    texts = {name: set(lines(new / correction.FOLDER / f"{name}.src")) for name in ("earlier", "earlier-web")}
    assert {src[-1] for src in texts["earlier"]} == {"."}
    assert {src[-1] for src in texts["earlier-web"]} == {" "}
    assert len(texts["earlier-web"]) == len(PAIRS)
    tag = tags_of(load(new).tokenizer)["web"]
    rows = Dataset(new / "data" / "train", ("src", "tgt"))
    assert sum(rows[i][0][0] == tag for i in range(len(rows))) == len(PAIRS)


def test_an_update_can_be_repeated(model, tmp_path):
    update(model, tmp_path)
    options = TrainConfig.resolve({}, tmp_path / "new" / "run.toml", environment={})
    assert options.out == tmp_path / "new"
    assert {path.parent for path in (*options.src, *options.dev_tgt)} == {tmp_path / "new" / correction.FOLDER}
    again = train(options.model_copy(update={"out": tmp_path / "again"}), quiet=True)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("new", "again")]
    assert weights[0] == weights[1]
    assert again.languages == ("en", "fr")
    longer = train(options.model_copy(update={"steps": 25}), quiet=True)
    assert longer.languages == ("en", "fr")
    assert (tmp_path / "new" / "model.safetensors").read_bytes() != weights[0]


def test_the_report_has_what_is_translated_otherwise(model, tmp_path):
    done, _ = update(model, tmp_path)
    with (tmp_path / "new" / "corrections.tsv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t")
    assert header == ["source", "correction", "before", "after"]
    assert [tuple(row) for row in rows] == done.examples
    assert done.corrections.gain == pytest.approx(done.corrections.after - done.corrections.before)


def test_a_model_that_is_worse_on_the_dev_set_is_not_used(model, tmp_path):
    for number in ("", "1"):
        with pytest.raises(UserError, match=r"worse on the dev set.*\n.*not used: .*new-rejected"):
            update(model, tmp_path, max_drop=-1000.0)
        assert not (tmp_path / "new").exists()
        assert (tmp_path / f"new-rejected{number}" / "corrections.tsv").exists()


def test_a_repeated_call_does_not_train_again(model, tmp_path, monkeypatch):
    def crash(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(correction, "compare", crash)
        with pytest.raises(KeyboardInterrupt):
            update(model, tmp_path)
    weights = (tmp_path / "new-candidate" / "model.safetensors").stat().st_mtime_ns
    update(model, tmp_path)
    assert (tmp_path / "new" / "model.safetensors").stat().st_mtime_ns == weights


def test_corrections_of_the_whole_dev_set_are_refused(model, tmp_path):
    with pytest.raises(CorpusError, match=r"has all sources of the dev set of .*\n  Leave some of them out"):
        update(model, tmp_path, corrections=[(src, tgt.upper()) for src, tgt in PAIRS])
    assert not list(tmp_path.glob("new*"))


def test_what_cannot_be_updated_is_one_clear_error(model, tmp_path):
    with pytest.raises(CorpusError, match="no corrected text"):
        update(model, tmp_path, corrections=[("", "")])
    exported = tmp_path / "exported"
    load(model).save(exported)
    with pytest.raises(ConfigError, match="has no training text"):
        update(exported, tmp_path)
    (tmp_path / "new").mkdir()
    with pytest.raises(ConfigError, match="exists already"):
        update(model, tmp_path)


@pytest.mark.parametrize(
    ("trained", "expected"),
    [
        ({"lr": 8e-3}, 0.002),
        ({"lr": 7e-4}, 7e-4 / 4),
        ({"lr": 1e-4, "init_from": "bert"}, 1e-4),
        ({"lr": 0.01, "init_from": "bert"}, 0.002),
        ({}, 0.002),
    ],
)
def test_the_learning_rate_suits_the_training_that_is_continued(tmp_path, trained, expected):
    values = "".join(f"{name} = {value!r}\n" for name, value in trained.items())
    (tmp_path / "run.toml").write_text(f'src = ["a"]\nout = "b"\n{values}')
    assert correction.learning_rate(tmp_path) == pytest.approx(expected)
