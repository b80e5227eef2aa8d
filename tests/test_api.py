"""The public Python API, used as in a notebook: every call twice in one process."""

import subprocess
import sys

import pytest

import glassformer as gf
from glassformer.errors import UserError

PROGRAM = """
import sys
import glassformer as gf

out = sys.argv[1]
for i in range(2):
    options = {"steps": 2, "vocab_size": 300, "n_layers": 1, "threads": 1, "quiet": True}
    translator = gf.train(sys.argv[2], sys.argv[3], out=f"{out}/{i}", **options)
    assert translator("a b") == gf.load(f"{out}/{i}")("a b")
    with gf.record_activations(translator.model):
        gf.pipeline("translation", model=f"{out}/{i}")("a b")
    gf.inspect(translator, "a b")
    assert all(callable(getattr(gf, name)) for name in gf.__all__ if name != "__version__")
print("done")
"""


@pytest.mark.slow
def test_every_public_function_can_be_called_twice_in_one_process(tmp_path):
    for side, words in (("src", "a b c d e"), ("tgt", "v w x y z")):
        lines = [" ".join(words.split()[j:]) + f" {i}" for i in range(30) for j in range(5)]
        (tmp_path / side).write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / name) for name in ("out", "src", "tgt")]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *files], capture_output=True, text=True)
    assert done.stdout.strip().endswith("done"), done.stderr


def test_no_subpackage_has_the_name_of_a_public_function():
    import pkgutil

    assert not {module.name for module in pkgutil.iter_modules(gf.__path__)} & set(gf.__all__)


def test_calls_from_python_do_not_depend_on_the_environment(tmp_path, monkeypatch):
    import torch

    from glassformer.inspection.inspect import inspect
    from glassformer.models.transformer import TransformerConfig
    from glassformer.tasks.translation import Translator
    from glassformer.tokens.tokenizer import Tokenizer

    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["the cat sat"] * 5, vocab_size=270)
    sizes = {"d_model": 22, "n_heads": 2, "d_ff": 37, "n_encoder_layers": 1, "n_decoder_layers": 1}
    translator = Translator.build(TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes), tokenizer)
    before = translator("the cat"), len(inspect(translator, "the cat", max_length=7).predictions)
    for name, value in (("BEAM", "0"), ("MAX_LENGTH", "1"), ("STEPS", "none"), ("LR", "none")):
        monkeypatch.setenv(f"GLASSFORMER_{name}", value)
    assert translator("the cat") == before[0]
    assert len(inspect(translator, "the cat", max_length=7).predictions) == before[1]
    (tmp_path / "a.txt").write_text("the cat sat\n" * 200)
    model = gf.train(
        tmp_path / "a.txt", out=tmp_path / "run", quiet=True, steps=1, task="causal-lm",
        preset="tiny", d_model=32, n_heads=2, d_ff=32, n_layers=1, vocab_size=300, threads=1,
    )  # fmt: skip
    assert isinstance(model("the", beam=1), str)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    lines = [f'{{"text": "{word} film {i}", "label": "{word}"}}' for word in ("good", "bad") for i in range(40)]
    (folder / "data.jsonl").write_text("\n".join(lines) + "\n")
    return gf.train(folder / "data.jsonl", out=folder / "out", steps=2, vocab_size=280, threads=1, quiet=True)


def test_repr_of_a_task(classifier):
    assert repr(classifier).startswith("Classifier(task='classification', family='bert', parameters=")
    assert "labels=['bad', 'good']" in repr(classifier)


def test_saving_and_loading_preserves_a_task(classifier, tmp_path):
    classifier.to("cpu").save(tmp_path / "copy")
    texts = ["good film", "bad film"]
    assert gf.load(tmp_path / "copy")(texts, return_all=True) == classifier(texts, return_all=True)
    with pytest.raises(UserError, match="not empty"):
        classifier.save(tmp_path / "copy")


def test_loading_with_the_class_of_another_task_is_an_error(classifier, tmp_path):
    from glassformer.tasks.base import Task
    from glassformer.tasks.classification import Classifier
    from glassformer.tasks.encoder import EncoderTask
    from glassformer.tasks.translation import Translator

    classifier.save(tmp_path / "copy")
    for task in (Classifier, EncoderTask, Task):
        assert type(gf.load(tmp_path / "copy", task=task)) is Classifier
    with pytest.raises(UserError, match="was trained for classification, not for translation"):
        gf.load(tmp_path / "copy", task=Translator)


def test_keyword_options_are_the_fields_of_the_configurations():
    from glassformer.decode_config import DecodeConfig, DecodeOptions, SearchConfig, SearchOptions
    from glassformer.train_config import TrainConfig, TrainOptions

    assert sorted(DecodeOptions.__annotations__) == sorted(DecodeConfig.model_fields)
    assert sorted(SearchOptions.__annotations__) == sorted(SearchConfig.model_fields)
    groups = [name for group in DecodeConfig.groups() for name in group.model_fields]
    assert sorted(groups) == sorted(DecodeConfig.model_fields)
    own_parameters = {"src", "tgt", "out", "task"}
    assert list(TrainOptions.__annotations__) == [n for n in TrainConfig.model_fields if n not in own_parameters]


def test_return_all_returns_all_labels_by_probability(classifier):
    records = classifier("good film", return_all=True)
    assert {record["label"] for record in records} == {*classifier.labels}
    assert records[0]["probability"] >= records[1]["probability"]
    assert sum(record["probability"] for record in records) == pytest.approx(1)
    assert records[0]["label"] == classifier("good film")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5,), r"takes a text \(str\) or a pair of texts \(tuple\), or a list of them; got int"),
        ((None,), "got NoneType"),
        ((["a", 5],), "got a list with int"),
        (("a", "b"), r"got 2 arguments. Write a pair as one tuple: task\(\(a, b\)\)"),
    ],
)
def test_a_wrong_call_raises_a_type_error_with_the_expected_arguments(classifier, arguments, message):
    with pytest.raises(TypeError, match=message):
        classifier(*arguments)


@pytest.fixture(scope="module")
def translator():
    import torch

    from glassformer.models.transformer import TransformerConfig
    from glassformer.tasks.translation import Translator
    from glassformer.tokens.tokenizer import Tokenizer

    torch.manual_seed(1)
    tokenizer = Tokenizer.train(["the cat sat"] * 5, vocab_size=270)
    sizes = {"d_model": 22, "n_heads": 2, "d_ff": 37, "n_encoder_layers": 1, "n_decoder_layers": 1}
    return Translator.build(TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes), tokenizer)


def test_options_that_add_to_a_translation_return_records(translator):
    record = translator("the cat", nbest=2, align=True, max_length=5)
    assert record["output"] == translator("the cat", max_length=5)
    assert len(record["nbest"]) == 2
    assert "alignment" in record
    assert [r["input"] for r in translator(["the", "cat"], nbest=2, max_length=5)] == ["the", "cat"]
    with pytest.raises(UserError, match="nbest: '2 of them'"):
        translator("the cat", nbest="2 of them")
    with pytest.raises(UserError, match="no confidence"):
        translator("the cat", confidence=True)
    with pytest.raises(UserError, match="single lines, and a text has 2"):
        translator("the\ncat", nbest=2)


def test_translate_takes_options_as_keywords(translator):
    from glassformer.decode_config import DecodeConfig

    (greedy,), _ = translator.translate(["the cat", "sat"], beam=1, max_length=5)
    ((same,),) = translator.translate(["the cat"], DecodeConfig(max_length=5), beam=1)
    assert greedy == same
    with pytest.raises(TypeError, match="takes a list of texts"):
        translator.translate("the cat")


@pytest.mark.parametrize(
    ("option", "nearest"), [("num_beams", "beam"), ("beem", "beam"), ("max_new_tokens", "max_length")]
)
def test_the_nearest_option_is_suggested(translator, option, nearest):
    with pytest.raises(UserError, match=f"{option}: no such option; did you mean {nearest}\\?"):
        translator("the cat", **{option: 2})


def test_training_takes_dev_files_as_paths_or_lists(tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("the cat sat\n" * 50)
    options = {"steps": 1, "task": "causal-lm", "preset": "tiny", "d_model": 8, "n_heads": 2, "d_ff": 8, "threads": 1}
    for dev_src in (str(text), [text]):
        gf.train(text, out=tmp_path / str(type(dev_src)), quiet=True, dev_src=dev_src, vocab_size=270, **options)
    with pytest.raises(UserError, match=r"epoch: no such option; did you mean epochs\?"):
        gf.train(text, out=tmp_path / "x", epoch=1)


def test_what_is_no_model_folder_is_told_from_what_can_be_converted(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\n")
    with pytest.raises(UserError, match=r"a\.csv: is a file, not a model folder\.\n  .*glassformer train .*a\.csv"):
        gf.load(tmp_path / "a.csv")
    with pytest.raises(UserError, match=r"t5-small: no such folder\.\n  .*\n  .*glassformer import t5-small --out"):
        gf.load("t5-small")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UserError, match=r"transformers\. Convert it: glassformer import .*hf --out"):
        gf.load(tmp_path / "hf")
    (tmp_path / "b.csv").write_text("text,label\n" + "a film,good\nno film,bad\n" * 20)
    with pytest.raises(UserError, match=r"transformers\. Convert it: glassformer import .*hf --out"):
        gf.train(tmp_path / "b.csv", out=tmp_path / "o", init_from=tmp_path / "hf")


def test_dir_lists_the_public_names():
    assert {"train", "load", "pipeline", "inspect"} <= set(dir(gf))


def test_predict_is_the_call(classifier):
    assert classifier.predict(["good film"]) == classifier(["good film"])
