"""What is checked before a training on the translations of models."""

import gzip

import pytest

from glassformer.corpora.lines import STDIN
from glassformer.errors import CheckpointError, ConfigError, CorpusError
from glassformer.synthetic import monolingual
from glassformer.synthetic.distillation import distill, languages_of_student, make_teacher
from glassformer.synthetic.monolingual import BACK, FORWARD, check_are_lines, given_teacher, train_with_monolingual
from glassformer.train_config import TrainConfig
from tests.interop.ours import make
from tests.journeys.conftest import write_lines


@pytest.fixture
def pairs(tmp_path):
    """Options of a training on 300 pairs, and its run folder."""
    src, tgt = (write_lines(tmp_path / f"t.{code}", [f"{code} {n}" for n in range(300)]) for code in ("en", "de"))
    return {"src": (src,), "tgt": (tgt,), "out": tmp_path / "out", "steps": 1}


def start(options):
    train_with_monolingual(TrainConfig(**options), lambda message: None, quiet=True)


@pytest.mark.parametrize("option", ["more_tgt", "more_src"])
@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("mono.csv", "id,text\n1,a\n2,b\n", "csv"),
        ("mono.jsonl", '{"text": "a"}\n', "jsonl"),
        ("mono.tmx", "<tmx/>\n", "tmx"),
        ("mono.txt", "1\ta\n2\tb\n", "tsv"),
    ],
    ids=["table", "json", "memory", "tabs"],
)
def test_monolingual_text_that_is_not_plain_is_refused_before_anything_is_made(
    pairs, tmp_path, option, name, text, format
):
    (tmp_path / name).write_text(text)
    language = "target" if option == "more_tgt" else "source"
    message = f"{name}: its format is {format}, not plain .*\n  Write the sentences in the {language} language"
    with pytest.raises(ConfigError, match=message):
        start({**pairs, option: (tmp_path / name,)})
    assert not pairs["out"].exists()


def test_plain_text_may_be_compressed_or_standard_input(tmp_path):
    (tmp_path / "mono.de.gz").write_bytes(gzip.compress(b"a\tb\nc\n"))
    check_are_lines(BACK, [tmp_path / "mono.de.gz"])
    check_are_lines(FORWARD, [STDIN])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder of folders of an untrained translator, named by their languages."""
    folder = tmp_path_factory.mktemp("models")
    task = make("translation", "transformer")
    for name in ("en-US to de", "de to en-US", "en to fr", "unknown"):
        task.languages = () if name == "unknown" else tuple(name.split(" to "))
        task.save(folder / name)
    return folder


@pytest.mark.parametrize(
    ("more", "option", "given", "expected"),
    [
        ("more_tgt", "reverse_model", "en-US to de", "de to en"),
        ("more_src", "forward_model", "de to en-US", "en to de"),
    ],
)
def test_a_model_of_another_direction_is_refused_before_anything_is_made(
    pairs, models, tmp_path, more, option, given, expected
):
    mono = write_lines(tmp_path / "mono", ["a", "b"])
    flag = option.replace("_", "-")
    message = rf"{given}: translates from {given}, but a model from {expected} is needed\.\n  Give .* with --{flag}"
    with pytest.raises(ConfigError, match=message):
        start({**pairs, more: (mono,), option: models / given})
    assert not pairs["out"].exists()


def test_a_model_of_the_same_direction_or_of_unknown_languages_is_used(pairs, models, tmp_path):
    mono = write_lines(tmp_path / "mono", ["a", "b"])
    for direction, more, given in ((BACK, "more_tgt", "de to en-US"), (FORWARD, "more_src", "en-US to de")):
        for folder in (models / given, models / "unknown"):
            config = TrainConfig(**pairs, **{more: (mono,), direction.model_option: folder})
            assert given_teacher(direction, config, ("en", "de"))
        assert given_teacher(direction, config.model_copy(update={direction.model_option: models / given}), ())


def test_a_teacher_of_another_direction_is_refused(pairs, models):
    config = TrainConfig(**pairs)
    for name in ("de to en-US", "en to fr"):
        message = rf"{name}: translates from {name}, but a model from en to de is needed\.\n  Name such"
        with pytest.raises(ConfigError, match=message):
            make_teacher([models / name], config)
    make_teacher([models / "en-US to de"], config)
    make_teacher([models / "de to en-US"], config.model_copy(update={"languages": ("de", "en")}))


def test_the_languages_of_a_memory_are_not_those_of_its_name_and_the_dev_set(pairs, tmp_path):
    memory = tmp_path / "a.tmx"
    units = "".join(f'<tuv xml:lang="{code}"><seg>{code}</seg></tuv>' for code in ("en", "fr"))
    memory.write_text(f'<tmx version="1.4"><header srclang="en"/><body><tu>{units}</tu></body></tmx>')
    dev = {"dev_src": pairs["src"], "dev_tgt": pairs["tgt"]}
    assert languages_of_student(TrainConfig(src=(memory,), out=tmp_path / "out", **dev)) == ("en", "fr")
    assert languages_of_student(TrainConfig(src=pairs["src"], out=tmp_path / "out", **dev)) == ("en", "de")


def test_models_of_different_directions_are_no_ensemble(pairs, models):
    config = TrainConfig(**pairs)
    with pytest.raises(
        ConfigError, match=r"from de to en-US, but .* from en-US to de is needed\.\n  .* same direction"
    ):
        make_teacher([models / "en-US to de", models / "de to en-US"], config)
    make_teacher([models / "en-US to de", models / "unknown"], config)
    make_teacher([models / "unknown", models / "en-US to de"], config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"more_src": "absent.en"}, "absent.en: no such file"),
        ({"more_src": "mono.en", "forward_model": "absent"}, "absent: no such folder"),
        ({"reverse_model": "absent"}, "absent: no such folder"),
        ({"dev_src": "mono.en", "dev_tgt": "absent.de"}, "absent.de: no such file"),
        ({"embeddings": "absent"}, "absent: no such folder"),
    ],
)
def test_absent_files_and_folders_are_named_before_anything_is_trained(pairs, tmp_path, monkeypatch, change, message):
    trained = []
    monkeypatch.setattr(monolingual, "train", lambda config, quiet: trained.append(config.out))
    for code in ("en", "de"):
        write_lines(tmp_path / f"mono.{code}", ["a", "b"])
    are_folders = ("reverse_model", "forward_model", "embeddings")
    paths = {name: tmp_path / file for name, file in change.items()}
    given = {name: path if name in are_folders else (path,) for name, path in paths.items()}
    with pytest.raises((CorpusError, CheckpointError), match=message):
        start({**pairs, "more_tgt": (tmp_path / "mono.de",), **given})
    assert trained == []


def test_all_monolingual_text_is_read_before_anything_is_trained(pairs, tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(monolingual, "train", lambda config, quiet: trained.append(config.out))
    target, source = write_lines(tmp_path / "mono.de", ["a", "b"]), write_lines(tmp_path / "mono.en", ["", " "])
    with pytest.raises(CorpusError, match=r"mono\.en: contains no text"):
        start({**pairs, "more_tgt": (target,), "more_src": (source,)})
    assert trained == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dev_tgt": ("absent.de",)}, "absent.de: no such file"),
        ({"dev_tgt": ("-",)}, "standard input .* can be read only once"),
        ({"init_from": "absent"}, "absent: no such folder"),
        ({"embeddings": "absent"}, "absent: no such folder"),
    ],
)
def test_what_a_student_needs_is_checked_before_its_teacher_is_asked(pairs, change, message):
    config = TrainConfig(**{**pairs, "dev_src": pairs["src"], "dev_tgt": pairs["tgt"], **change})
    with pytest.raises((ConfigError, CorpusError, CheckpointError), match=message):
        distill(config, None, lambda message: None)
    assert not config.out.exists()
