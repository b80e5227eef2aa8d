"""Units of texts, which spans are put between."""

import random

import pytest

from glassformer.documents.words import unit_spans


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("A (big) dog, 2 cats.", "A|(big)|dog,|2|cats."),
        ("点击“保存”（ABC）。", "点|击|“保|存”|（ABC）。"),
        ("README文件を開く。 次", "README|文|件|を|開|く。|次"),
        ("ファイルをコピーして、「はい」と", "ファイル|を|コピー|し|て、|「は|い」|と"),
        ("きょう、人々は", "きょ|う、|人々|は"),
        ("เปิดไฟล์นำ", "เปิ|ด|ไฟ|ล์|นำ"),
        ("ကျောင်း", "ကျော|င်း"),
        ("ស្រី", "ស្រី"),
        ("(((((文", "(|((((文"),
    ],
)
def test_units(text, units):
    assert [text[start:end] for start, end in unit_spans(text)] == units.split("|")


@pytest.mark.parametrize("seed", range(200))
def test_more_text_changes_the_last_unit_only(seed):
    rng = random.Random(seed)
    core, units = "", []
    for _ in range(6):
        core += "".join(
            rng.choices(["a", " ", "（", "文", "カ", "ー", "、", ".", '"', "เ", "ก", "((((("], k=rng.randrange(4))
        )
        core = core.rstrip() if rng.random() < 0.3 else core
        units += unit_spans(core, units.pop()[0] if units else 0)
        assert units == unit_spans(core)


@pytest.mark.parametrize("unit", ["文", "(", "a", "文a", " ", "「", "เ"])
def test_units_of_a_long_text_take_linear_time(unit):
    n = 200_000
    assert sum(end - start for start, end in unit_spans(f"{n * unit}文")) >= n * bool(unit.strip())
