"""What is checked before a training with monolingual text."""

import gzip

import pytest

from glassformer.corpora.lines import STDIN
from glassformer.errors import ConfigError
from glassformer.synthetic.monolingual import BACK, FORWARD, check_are_lines, train_with_monolingual
from glassformer.train_config import TrainConfig
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
