"""How a training with teachers of its own is divided."""

import pytest

from glassformer.errors import CorpusError
from glassformer.synthetic import own_teachers
from glassformer.synthetic.distillation import distill
from glassformer.synthetic.train import train
from glassformer.train_config import TrainConfig
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
