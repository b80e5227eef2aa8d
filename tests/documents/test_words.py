"""Units of texts, which spans are put between."""

import random
import unicodedata

import pytest
import regex

from glassformer.corpora.terms import positions_of
from glassformer.documents.words import continues_letter, unit_spans


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
        ("猫&犬と&lt;猫&amp;gt;、&amp;。「&」", "猫&|犬|と&lt;|猫&amp;gt;、&amp;。|「&」"),
        ("&犬AT&amp;T犬", "&|犬|AT&amp;T|犬"),
        ("ハ\u3099ーか\u3099葛\U000e0101辻\ufe00", "ハ\u3099ー|か\u3099|葛\U000e0101|辻\ufe00"),
        ("ၚၞ ၡၢ ម្ រ", "ၚၞ|ၡၢ|ម្|រ"),
        ("ก-ิ ◌ิก", "ก-ิ|◌ิ|ก"),
    ],
)
def test_units(text, units):
    assert [text[start:end] for start, end in unit_spans(text)] == units.split("|")


MARKS = [chr(code) for code in range(0xE00, 0x1800) if unicodedata.category(chr(code))[0] == "M"]
PIECES = [*"กเແາຳຽကၡខកカかっー文葛々𠮷a1.-「“& ", "&amp;", *"\u0301\u200d\u3099\ufe0f\U000e0101ะำๆ်္្", "🏽", "👍"]


@pytest.mark.parametrize("seed", range(300))
def test_no_unit_ends_within_what_a_reader_sees_as_one_letter(seed):
    rng = random.Random(seed)
    scripts = [mark for mark in MARKS if ord(mark) < 0x1100 or ord(mark) >= 0x1780]
    text = "".join(rng.choice(rng.choice([PIECES, scripts])) for _ in range(9))
    text = regex.sub(r"(?<=[\u1039\u17d2])[\p{M}\u200d🏽]+", "", text)  # no consonant is stacked on them
    ends = {match.end() for match in regex.finditer(r"\X", text)} | {0}
    units = unit_spans(text)
    assert "".join(text[start:end] for start, end in units) == "".join(text.split())
    assert {edge for unit in units for edge in unit if not text[edge - 1 : edge].isspace()} <= ends
    within = {i for i in range(1, len(text)) if i not in ends}
    assert within <= {i for i in range(1, len(text)) if continues_letter(text, i)}


def test_a_term_is_no_part_of_a_letter():
    for text, n in (("กำ", 0), ("เก", 0), ("กิน", 0), ("กก", 2), ("က္က", 0), ("か\u3099", 0), ("かっ", 1), ("ก ำ", 1)):
        assert len(list(positions_of(text[0] if text != "เก" else "ก", text))) == n, text


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
