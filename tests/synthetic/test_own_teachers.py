"""How a training with teachers of its own is divided."""

import pytest

from glassformer import checkpoint
from glassformer.errors import ConfigError, CorpusError, UserError
from glassformer.lock import locked
from glassformer.synthetic import distillation, own_teachers
from glassformer.synthetic.answers import ANSWERS, Answer
from glassformer.synthetic.ask import ask
from glassformer.synthetic.distillation import distill, pairs_of
from glassformer.synthetic.teachers import identity_of
from glassformer.synthetic.train import train
from glassformer.train_config import TrainConfig
from tests.interop.ours import make
from tests.journeys.conftest import write_lines


@pytest.mark.parametrize("minutes", [30.0, None])
def test_teachers_and_the_model_share_the_minutes(tmp_path, monkeypatch, minutes):
    src, tgt = (write_lines(tmp_path / f"t.{code}", [f"{code} {number}" for number in range(300)]) for code in "ab")
    begun = []
    monkeypatch.setattr(own_teachers, "train", lambda config, quiet: begun.append(config))
    monkeypatch.setattr(own_teachers, "make_teacher", lambda folders, config: folders)
    monkeypatch.setattr(own_teachers, "distill", lambda config, teacher, log, quiet: begun.append(config))
    budget = {"minutes": minutes} if minutes else {"steps": 100}
    config = TrainConfig(src=(src,), tgt=(tgt,), out=tmp_path / "out", n_teachers=3, seed=7, **budget)
    own_teachers.train_with_teachers(config, lambda message: None, quiet=True)
    assert len({part.seed for part in begun}) == len({part.out for part in begun}) == 4
    assert begun[-1].seed == 7
    assert begun[-1].out == config.out
    if minutes:
        assert sum(part.minutes for part in begun) == pytest.approx(minutes)
        assert [part.minutes for part in begun] == pytest.approx([5.0, 5.0, 5.0, 15.0])
    else:
        assert [part.steps for part in begun] == [100] * 4
    assert len({(part.src, part.dev_src) for part in begun}) == 1
    assert not set(begun[0].dev_src[0].read_text().splitlines()) & set(begun[0].src[0].read_text().splitlines())


def test_the_student_does_not_overwrite_the_text_of_its_teachers(tmp_path, monkeypatch):
    src, tgt = (write_lines(tmp_path / f"t.{code}", [f"{code} {number}" for number in range(300)]) for code in "ab")
    trained = []
    for module in (own_teachers, distillation):
        monkeypatch.setattr(module, "train", lambda config, quiet: trained.append((config, texts_of(config))))
    monkeypatch.setattr(own_teachers, "make_teacher", lambda folders, config: Echo())
    config = TrainConfig(src=(src,), tgt=(tgt,), out=tmp_path / "out", n_teachers=2, steps=1)
    own_teachers.train_with_teachers(config, lambda message: None, quiet=True)
    *teachers, (student, _) = trained
    assert len(teachers) == 2
    assert all(texts_of(teacher) == texts for teacher, texts in teachers)
    assert all(path.is_relative_to(config.out / distillation.FOLDER) for path in student.src)


def test_answers_are_read_only_by_who_has_the_lock(tmp_path):
    answers = tmp_path / ANSWERS
    with locked(tmp_path):
        answers.write_text("an answer that another process is wr")
        with pytest.raises(UserError, match="another process"):
            ask(Echo(), ["a"], tmp_path, lambda message: None)
        assert answers.read_text() == "an answer that another process is wr"


def texts_of(config):
    """The training text, as it is now."""
    return [path.read_text() for path in (*config.src, *config.tgt)]


class Echo:
    """A teacher that answers with the source, in another form."""

    name = "echo"

    def __init__(self, identity="echo"):
        self.identity, self.asked = identity, []

    def answers(self, sources, log=None, *, has_answered=False):
        self.asked += sources
        yield [(source, Answer((source.replace("a", "b"),))) for source in sources]


def test_a_student_that_has_begun_is_refused_another_teacher_and_other_text_before_these_are_asked(
    tmp_path, monkeypatch
):
    src, other = (write_lines(tmp_path / name, [f"{name} {number}" for number in range(300)]) for name in "ax")
    some = write_lines(tmp_path / "some", [*src.read_text().splitlines()[1:], "a new"])
    config = TrainConfig(src=(src,), out=tmp_path / "out", steps=1, languages=("a", "b"))
    silent = lambda message: None
    monkeypatch.setattr(distillation, "train", lambda config, quiet: None)
    distill(config, first := Echo(), silent)
    assert len(first.asked) == 300
    distill(config, Echo("another"), silent)  # the training has not begun
    (config.out / "checkpoints" / "step-1").mkdir(parents=True)
    for change, teacher in (({}, Echo("third")), ({"src": (other,)}, Echo())):
        with pytest.raises(ConfigError, match=r"contains a run with another teacher, prompt or text.\n.*another --out"):
            distill(config.model_copy(update=change), teacher, silent)
        assert teacher.asked == []
    distill(config.model_copy(update={"src": (some,)}), teacher := Echo(), silent)
    assert teacher.asked == ["a new"]


def test_teachers_that_are_not_asked_for_are_refused_before_the_training(tmp_path):
    src, tgt = (write_lines(tmp_path / f"t.{code}", [f"{code} {number}" for number in range(300)]) for code in "ab")
    for number in (1, 2, 3):
        (tmp_path / "out" / "teacher" / f"model-{number}").mkdir(parents=True)
    config = TrainConfig(src=(src,), tgt=(tgt,), out=tmp_path / "out", n_teachers=2, steps=1)
    with pytest.raises(ConfigError, match="contains a run with 3 teachers"):
        own_teachers.train_with_teachers(config, lambda message: None, quiet=True)


def test_codes_of_files_that_are_not_learned_from_are_named(tmp_path, capsys):
    damaged = write_lines(tmp_path / "a.tmx", ["<tmx>"])
    config = TrainConfig(src=(damaged,), out=tmp_path / "out", languages=("en", "fr"), steps=1, inline_codes=True)
    told = []
    with pytest.raises(CorpusError):
        distill(config, None, told.append)
    assert [f"Codes in {damaged} are not used" in message for message in told] == [True]
    catalogue = write_lines(tmp_path / "a.po", ["?"])
    for other in ({"inline_codes": False}, {"src": (catalogue,)}):
        with pytest.raises(CorpusError):
            distill(config.model_copy(update=other), None, told.append)
    assert len(told) == 1
    with pytest.raises(CorpusError):
        train(config.model_copy(update={"n_teachers": 2}))
    assert f"Codes in {damaged} are not used" in capsys.readouterr().err


def test_keys_of_a_table_are_not_of_a_dev_set_of_two_texts(tmp_path):
    table, src, tgt = tmp_path / "a.csv", tmp_path / "dev.en", tmp_path / "dev.fr"
    table.write_text("english,french,note\na cat,un chat,x\n")
    src.write_text("a dog\n")
    tgt.write_text("un chien\n")
    config = TrainConfig(
        src=(table,), dev_src=(src,), dev_tgt=(tgt,), keys=("src=english", "tgt=french"), out=tmp_path / "out"
    )
    assert pairs_of(config) == [("a cat", "un chat")]
    assert pairs_of(config, "dev_") == [("a dog", "un chien")]


@pytest.mark.parametrize("option", [{"n_teachers": 2}, {"more_tgt": ("m.b",)}])
def test_files_of_one_side_only_are_named_before_anything_is_made(tmp_path, option):
    files = [write_lines(tmp_path / name, ["a b"] * 9) for name in ("s.a", "t.a", "s.b")]
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="2 source files for 1 target files"):
        train(TrainConfig(src=tuple(files[:2]), tgt=(files[2],), out=out, steps=1, **option), quiet=True)
    assert not out.exists()


def test_a_chain_goes_on_if_its_folder_was_moved_or_is_named_otherwise(tmp_path, monkeypatch):
    folder = tmp_path / "run" / distillation.FOLDER
    text = folder / own_teachers.TEXT / "train.src"
    text.parent.mkdir(parents=True)
    text.write_text("a\n")
    monkeypatch.chdir(tmp_path)
    assert distillation.is_in(text, folder)
    assert distillation.is_in(text.relative_to(tmp_path), folder)
    assert distillation.is_in(text, folder.relative_to(tmp_path))
    (tmp_path / "run").rename(tmp_path / "moved")
    assert distillation.is_in(text, tmp_path / "moved" / distillation.FOLDER)
    assert not distillation.is_in(tmp_path / "other.src", tmp_path / "moved" / distillation.FOLDER)
    assert not distillation.is_in(folder / "other.src", tmp_path / "moved" / distillation.FOLDER)


def test_a_confidence_that_is_added_to_a_teacher_changes_no_answer(tmp_path):
    make("translation", "transformer").save(tmp_path / "it")
    before = identity_of(tmp_path / "it")
    checkpoint.add_file(tmp_path / "it", "confidence.json", "{}")
    assert identity_of(tmp_path / "it") == before
    checkpoint.add_file(tmp_path / "it", "config.json", "{}")
    assert identity_of(tmp_path / "it") != before
