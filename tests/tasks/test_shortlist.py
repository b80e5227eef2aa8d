"""The vocabulary shortlist of a model folder: the command, the option, what they refuse."""

import pytest

import glassformer as gf
from glassformer.checkpoint import add_file, read_tensors
from glassformer.cli.shortlist import shortlist
from glassformer.corpora.example import Example
from glassformer.decode_config import DecodeConfig
from glassformer.errors import CheckpointError, ConfigError, UserError
from glassformer.generate.shortlist import FILE
from glassformer.tasks.classification import Classifier
from glassformer.tasks.shortlist import learn_shortlist
from glassformer.tokens.tags import tags_of
from tests.interop.ours import make
from tests.tasks.test_encoder_tasks import build as build_encoder
from tests.tasks.test_terms import LINES, translator

OPTIONS = DecodeConfig(precision="int8", shortlist=True, max_length=20)


@pytest.fixture
def folder(tmp_path, capsys):
    """A model folder with the shortlist of two lines."""
    translator().save(tmp_path / "model")
    (tmp_path / "src").write_text("the black cat sat on a couch\na dog\n\n")
    (tmp_path / "ref").write_text("le chat noir\nun chien\n\n")
    shortlist(tmp_path / "model", src=tmp_path / "src", ref=tmp_path / "ref")
    printed = capsys.readouterr()
    assert "vocabulary shortlist of" in printed.out
    assert f"1 lines that are blank on one side or both were left out (first: {tmp_path / 'src'}:3)" in printed.err
    return tmp_path / "model"


def test_translations_consist_of_tokens_of_the_list(folder):
    task = gf.load(folder)
    line = "the black dog sat"
    allowed = task.shortlist.tokens([*task.tokenizer.encode(line), task.tokenizer.eos_id])
    assert 4 < len(allowed) < task.config.vocab_size / 2
    assert set(task.translate([line], OPTIONS)[0][0].ids) <= set(allowed.tolist())
    free = OPTIONS.model_copy(update={"shortlist": False})
    assert not set(task.translate([line], free)[0][0].ids) <= set(allowed.tolist())
    unknown = "zzz"  # tokens that are not in the two lines
    assert task.translate([unknown], OPTIONS)[0][0].ids == task.translate([unknown], free)[0][0].ids


def test_a_domain_has_the_list_of_its_source():
    task = make("translation", "transformer", tags=("law",))
    learn_shortlist(task, [Example("the cat", "die Katze", "f", 1)])
    ids = [*task.tokenizer.encode("the cat"), task.tokenizer.eos_id]
    tagged = task.shortlist.tokens([tags_of(task.tokenizer)["law"], *ids])
    assert set(tagged) - set(task.shortlist.tokens(ids)) <= {tags_of(task.tokenizer)["law"]}


def test_pairs_that_are_too_long_are_counted():
    task = make("translation", "transformer")
    long = Example("the cat " * task.config.max_len, "die Katze", "f", 2)
    messages = []
    learn_shortlist(task, [Example("the cat", "die Katze", "f", 1), long], log=messages.append)
    assert messages == [
        f"warning: 1 pairs that are too long for the model were left out (limit: {task.config.max_len} tokens)"
    ]


def test_a_folder_in_int8_keeps_the_shortlist_and_needs_no_precision(folder, tmp_path):
    gf.load(folder).save(tmp_path / "int8", precision="int8")
    exported = gf.load(tmp_path / "int8")
    expected = [translations[0].ids for translations in gf.load(folder).translate(LINES, OPTIONS)]
    found = exported.translate(LINES, OPTIONS.model_copy(update={"precision": "fp32"}))
    assert [translations[0].ids for translations in found] == expected


def test_what_cannot_be_combined_is_refused(folder, tmp_path):
    for precision in ("fp32", "bf16"):
        with pytest.raises(ConfigError, match="Add --precision int8"):
            gf.load(folder).translate(LINES, DecodeConfig(shortlist=True, precision=precision))
    with pytest.raises(ValueError, match="shortlist cannot be combined with sampling"):
        DecodeConfig(shortlist=True, top_p=0.9)
    with pytest.raises(ValueError, match="or repetition_penalty"):
        DecodeConfig(shortlist=True, repetition_penalty=1.2)
    translator().save(tmp_path / "without")
    ensemble = gf.load(folder).with_members([gf.load(tmp_path / "without")])
    with pytest.raises(ConfigError, match="Leave out --shortlist or --ensemble"):
        ensemble.translate(LINES, OPTIONS)
    with pytest.raises(ConfigError, match="glassformer shortlist FOLDER"):
        gf.load(tmp_path / "without").translate(LINES, OPTIONS)


def test_texts_without_pairs_and_other_models_are_errors(folder, tmp_path):
    (tmp_path / "blank").write_text("\n\n\n")
    before = read_tensors(folder / FILE)
    with pytest.raises(UserError, match="no sentence pairs to learn from"):
        shortlist(folder, src=tmp_path / "src", ref=tmp_path / "blank")
    assert all(tensor.equal(before[name]) for name, tensor in read_tensors(folder / FILE).items())
    build_encoder(Classifier, ["a", "b"]).save(tmp_path / "classifier")
    with pytest.raises(ConfigError, match="trained for classification"):
        shortlist(tmp_path / "classifier", src=tmp_path / "src", ref=tmp_path / "ref")


def test_a_damaged_file_is_an_error(folder):
    tensors = read_tensors(folder / FILE)
    add_file(folder, FILE, tensors | {"targets": tensors["targets"] - 1000})
    with pytest.raises(CheckpointError, match=r"shortlist\.safetensors: damaged"):
        gf.load(folder)
