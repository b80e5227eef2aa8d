"""corpora.corpus: files to pairs, and what each refusal says."""

import gzip
import io
import json
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer import limits
from glassformer.corpora.corpus import UnequalCountsError, read_pairs
from glassformer.corpora.detect import find_task
from glassformer.corpora.lines import read_lines
from glassformer.corpora.misalignment import guess_misalignment
from glassformer.corpora.pair_formats import format_of, parser_of
from glassformer.corpora.read_options import ReadOptions
from glassformer.errors import ColumnsError, ConfigError, CorpusError, UserError

# Any Unicode, with extra weight on what str.splitlines would split at.
CHARS = st.characters(codec="utf-8", exclude_characters="\n\0") | st.sampled_from("\r\v\f\x1c\x85\u2028\u2029\ufeff")
LINES = st.lists(st.text(CHARS, max_size=13).filter(lambda line: not line.endswith("\r")), min_size=1, max_size=11)
quick = settings(max_examples=60)


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(read) -> str:
    """The message of the error that reading to the end raises."""
    with pytest.raises(UserError) as caught:
        list(read)
    return str(caught.value)


@given(lines=LINES)
@quick
def test_reading_restores_the_written_lines(folder, lines):
    # A leading BOM is dropped from the file, so the text is written behind one.
    path = write(folder / "any.txt", "\ufeff" + "".join(line + "\n" for line in lines))
    assert list(read_lines(path)) == lines


@given(lines=LINES)
@quick
def test_gzip_reads_like_plain(folder, lines):
    data = "".join(line + "\n" for line in lines).encode()
    plain, packed = write(folder / "a.txt", data), write(folder / "a.txt.gz", gzip.compress(data))
    assert list(read_lines(packed)) == list(read_lines(plain))


@given(lines=LINES)
@quick
def test_number_of_lines_is_number_of_line_feeds(folder, lines):
    path = write(folder / "n.txt", "".join(line + "\n" for line in lines))
    assert sum(1 for _ in read_lines(path)) == path.read_bytes().count(b"\n")


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_lines_do_not_depend_on_chunk_borders(tmp_path, monkeypatch, size):
    text = "é\r\n\nu2028 \u2028 stays\n\nlast"
    path = write(tmp_path / "a.txt", text)
    monkeypatch.setattr("glassformer.corpora.lines.CHUNK_BYTES", size)
    assert list(read_lines(path)) == ["é", "", "u2028 \u2028 stays", "", "last"]


def test_last_line_without_line_feed_counts(tmp_path):
    assert list(read_lines(write(tmp_path / "a", "one\ntwo"))) == ["one", "two"]


def test_only_one_carriage_return_is_stripped(tmp_path):
    assert list(read_lines(write(tmp_path / "a", "one\r\r\nt\rwo\r\n"))) == ["one\r", "t\rwo"]


def test_bom_is_dropped_only_at_the_start_of_the_file(tmp_path):
    assert list(read_lines(write(tmp_path / "a", "\ufeffone\n\ufefftwo\n"))) == ["one", "\ufefftwo"]


def test_gzip_is_detected_by_content(tmp_path):
    assert list(read_lines(write(tmp_path / "a.txt", gzip.compress(b"one\n")))) == ["one"]


def test_gz_name_with_plain_content_is_read(tmp_path):
    assert list(read_lines(write(tmp_path / "a.gz", "one\n"))) == ["one"]


def test_joined_gzip_members_are_all_read(tmp_path):
    data = gzip.compress(b"one\nt") + gzip.compress(b"wo\n") + b"\0\0"
    assert list(read_lines(write(tmp_path / "a.gz", data))) == ["one", "two"]


@pytest.mark.parametrize("data", [b"one\n\xc3\xa9", gzip.compress("one\né".encode())], ids=["plain", "gzip"])
def test_dash_is_standard_input(monkeypatch, data):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert list(read_lines(Path("-"))) == ["one", "é"]


def test_empty_standard_input_has_no_lines(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert list(read_lines(Path("-"))) == []


def test_invalid_standard_input_is_reported_by_name(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"one\ncaf\xe9\n")))
    message = refusal(read_lines(Path("-")))
    assert message.startswith("standard input:2: ")
    assert "… | iconv -f WINDOWS-1252 -t UTF-8 | …" in message


PACKED = gzip.compress(random.Random(7).randbytes(997).hex().encode())

# content -> the line named, what is said, how to mend it
BROKEN = {
    "empty": (b"", None, "empty file", "at least one line"),
    "only-bom": (b"\xef\xbb\xbf", None, "empty file", "at least one line"),
    "utf16-le": ("one\n".encode("utf-16"), 1, "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    "utf16-be": (b"\xfe\xff\0o\0\n", 1, "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    "utf16-bare": (("one\ntwo\n").encode("utf-16-le"), 1, "binary data: a NUL byte at byte 1", "iconv -f UTF-16LE"),
    "nul": (b"one\ntw\0o\n", 2, "binary data: a NUL byte at byte 6", "glassformer doctor"),
    "latin-1": (b"one\ntwo\ncaf\xe9\n", 3, "byte 0xe9 at byte 11 of the file", "iconv -f WINDOWS-1252 -t UTF-8"),
    "hole": (b"one\n\x81\n", 2, "byte 0x81 at byte 4 of the file", "iconv -f ISO-8859-1 -t UTF-8"),
    "truncated": (PACKED[:-11], None, "truncated gzip", "gzip -t"),
    "corrupt": (PACKED[:401] + b"\xff" * 13 + PACKED[414:], None, "corrupt gzip", "gzip -t"),
    "long": (b"one\n" + b"x" * 1009, 2, "longer than 997 bytes", "split this line"),
    "bomb": (gzip.compress(bytes(4 << 20)), None, "expands more than 300 times", "gunzip"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_invalid_file_is_reported_with_line_and_advice(tmp_path, monkeypatch, fault):
    data, line, expected_message, remedy = BROKEN[fault]
    monkeypatch.setattr(limits, "MAX_GZIP_RATIO", 300)
    monkeypatch.setattr(limits, "MAX_LINE_BYTES", 997 if fault == "long" else 1 << 23)
    path = write(tmp_path / f"{fault}.txt", data)
    message = refusal(read_lines(path))
    assert message.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert expected_message in message
    assert remedy in message.split("\n", 1)[1]


def test_the_iconv_command_unpacks_gzip_first(tmp_path):
    path = write(tmp_path / "my text.de.gz", gzip.compress(b"caf\xe9\n"))
    assert f"gunzip -c '{path}' | iconv" in refusal(read_lines(path))


def test_line_of_exactly_the_limit_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_LINE_BYTES", 7)
    assert list(read_lines(write(tmp_path / "a", "x" * 7 + "\n"))) == ["x" * 7]


def test_file_over_the_limit_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_FILE_BYTES", 7)
    assert "more than 7 bytes" in refusal(read_lines(write(tmp_path / "a", "one\ntwo\n")))


def test_missing_file_is_an_error(tmp_path):
    assert f"{tmp_path / 'no.txt'}: no such file" in refusal(read_lines(tmp_path / "no.txt"))


@pytest.mark.parametrize("error", [IsADirectoryError, PermissionError])  # the second on Windows
def test_folder_is_an_error(tmp_path, monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(Path, "open", refuse)
    assert f"{tmp_path}: is a folder" in refusal(read_lines(tmp_path))


def test_missing_permission_is_an_error(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    path = write(tmp_path / "a", "one\n")
    monkeypatch.setattr(Path, "open", refuse)  # chmod does not stop root
    assert f"chmod u+r {path}" in refusal(read_lines(path))


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.tsv", "tsv"),
        ("a.TSV.gz", "tsv"),
        ("a.jsonl", "jsonl"),
        ("a.json.gz", "jsonl"),
        ("a.en", "lines"),
        ("tsv", "lines"),
    ],
)
def test_format_is_detected_by_suffix(name, format):
    assert format_of(Path(name)) == format


def pairs_of(*args, **options) -> list[tuple[str, str, str, int]]:
    return [(Path(e.path).name, e.line, e.src, e.tgt) for e in read_pairs(*args, **options)]


def test_several_plain_files_pair_in_order(tmp_path):
    en, fr = write(tmp_path / "a.en", "one\n\n"), write(tmp_path / "a.fr", "un\n\n")
    en2, fr2 = write(tmp_path / "b.en", "two\n"), write(tmp_path / "b.fr", "\n")
    expected = [("a.en", 1, "one", "un"), ("a.en", 2, "", ""), ("b.en", 1, "two", "")]
    assert pairs_of([en, en2], [fr, fr2]) == expected


def test_tsv_has_two_columns(tmp_path):
    assert pairs_of([write(tmp_path / "a.tsv", "one\tun\r\n\t\n")]) == [("a.tsv", 1, "one", "un"), ("a.tsv", 2, "", "")]


def test_format_overrides_the_name(tmp_path):
    assert pairs_of([write(tmp_path / "a.txt", "one\tun\n")], format="tsv") == [("a.txt", 1, "one", "un")]


@pytest.mark.parametrize("gz", [False, True])
def test_jsonl_takes_translation_keys_in_the_order_of_the_first_line(tmp_path, gz):
    text = '{"translation": {"fr": "un", "en": "one"}}\n{"translation": {"en": "two", "fr": "deux"}}\n'
    path = write(tmp_path / ("a.jsonl.gz" if gz else "a.jsonl"), gzip.compress(text.encode()) if gz else text)
    assert pairs_of([path]) == [(path.name, 1, "un", "one"), (path.name, 2, "deux", "two")]


TABLES = {
    "a.csv": "fr,en\nBonjour,Hello\n",
    "a.tsv": "Français\tEnglish\nBonjour\tHello\n",
    "b.csv": "id,fr-FR,de,en\n1,Bonjour,Hallo,Hello\n",
    "a.jsonl": '{"translation": {"fr": "Bonjour", "en": "Hello"}}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_columns_and_keys_of_languages_are_found_in_any_order(tmp_path, name):
    path = tmp_path / name
    path.write_text(TABLES[name], encoding="utf-8")
    found = {languages: [(x.src, x.tgt) for x in read_pairs([path], languages=languages)]
             for languages in (("en", "fr"), ("fr", "en"))}  # fmt: skip
    assert found == {("en", "fr"): [("Hello", "Bonjour")], ("fr", "en"): [("Bonjour", "Hello")]}
    assert find_task([path], ReadOptions(languages=("en", "fr"))) == "translation"


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_columns_and_keys_of_other_languages_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_text(TABLES[name], encoding="utf-8")
    with pytest.raises(UserError, match=r"texts in [Ff]r\w*,? (and )?[Ee]n\w*, not in en(,| and) de"):
        list(read_pairs([path], languages=("en", "de")))
    assert [x.src for x in read_pairs([path], languages=())] == ["Bonjour"]


THREE = "en,de,de_reviewed\na cat,Katze,die Katze\na dog,Hund,der Hund\n"


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        (["tgt=de_reviewed"], ("a cat", "die Katze")),
        (["tgt=3"], ("a cat", "die Katze")),
        (["src=de_reviewed", "tgt=en"], ("die Katze", "a cat")),
    ],
)
def test_a_key_names_one_column_and_the_other_one_is_found(tmp_path, keys, first):
    path = write(tmp_path / "a.csv", THREE)
    assert next(read_pairs([path], keys=keys, languages=("en", "de"))).src == first[0]
    assert next(read_pairs([path], keys=keys, languages=("en", "de"))).tgt == first[1]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (["tgt=de_reviewed"], "columns of source and target are not known"),
        (["text=de"], "columns of source and target are not known"),
        (["src=en", "text=de"], "--keys text=de: a pair has no such field"),
        (["src=en", "tgt=en"], "both column 'en'"),
    ],
)
def test_keys_that_are_no_pair_are_refused(tmp_path, keys, message):
    path = write(tmp_path / "a.csv", THREE)
    assert message in refusal(read_pairs([path], keys=keys))


def test_a_name_of_several_columns_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", "en,de,de\na cat,Katze,die Katze\n")
    for keys in ([], ["src=en", "tgt=de"]):
        message = refusal(read_pairs([path], keys=keys, languages=("en", "de")))
        assert "several columns are named 'de': 2, 3" in message
    assert next(read_pairs([path], keys=["src=1", "tgt=3"])).tgt == "die Katze"


def test_an_error_for_one_column_has_no_example_of_two(tmp_path):
    with pytest.raises(ColumnsError) as caught:
        list(read_pairs([write(tmp_path / "a.csv", "text\na cat\n")]))
    assert caught.value.keys == ""


def test_quoted_cells_of_tsv_are_read_without_their_quotes(tmp_path):
    text = '"A ""dog"" runs, fast."\t"Ein ""Hund"" rennt."\nOne cat\tEine Katze\n"a\tb"\t"c\nd"\n'
    found = [(e.src, e.tgt) for e in read_pairs([write(tmp_path / "a.tsv", text)])]
    assert found == [('A "dog" runs, fast.', 'Ein "Hund" rennt.'), ("One cat", "Eine Katze"), ("a\tb", "c\nd")]


@pytest.mark.parametrize(
    "header", ["Englisch\tDeutsch", "Source text\tTarget text", "Original\tHuman translation", "EN\tDE"]
)
def test_a_header_row_is_no_pair(tmp_path, header):
    path = write(tmp_path / "a.tsv", f"{header}\nthe cat sat\tdie Katze saß\n")
    assert [e.src for e in read_pairs([path], languages=("en", "de"))] == ["the cat sat"]


def test_a_first_row_that_may_be_a_header_is_named(tmp_path):
    said = []
    lines = "".join(f"the cat sat {i} times\tdie Katze saß {i} Mal da\n" for i in range(9))
    path = write(tmp_path / "a.tsv", f"Quelle\tZiel\n{lines}")
    assert len(list(read_pairs([path], log=said.append))) == 10
    assert "the first row, 'Quelle' and 'Ziel', is used as a pair" in said[0]
    assert "--keys src=Quelle tgt=Ziel" in said[0]
    assert [e.line for e in read_pairs([path], keys=["src=Quelle", "tgt=Ziel"])] == list(range(2, 11))
    said.clear()
    list(read_pairs([write(tmp_path / "b.tsv", lines)], log=said.append))
    assert said == []


@pytest.mark.parametrize("languages", [("en", "de"), ()])
def test_json_keys_that_name_languages_are_found_in_any_order(tmp_path, languages):
    path = write(tmp_path / "a.jsonl", '{"de": "Katze", "id": 1, "en": "cat"}\n{"de": "Hund", "en": "dog", "id": 2}\n')
    if languages:
        assert [(e.src, e.tgt) for e in read_pairs([path], languages=languages)] == [("cat", "Katze"), ("dog", "Hund")]
    else:
        assert "--keys src=de tgt=en" in refusal(read_pairs([path]))


def test_the_texts_of_the_languages_may_be_beside_other_keys(tmp_path):
    rows = [{"id": str(i), "translation": {"de": f"Katze {i}", "en": f"cat {i}"}} for i in range(3)]
    path = write(tmp_path / "a.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert [(e.src, e.tgt) for e in read_pairs([path], languages=("en", "de"))][2] == ("cat 2", "Katze 2")
    assert find_task([path]) == "translation"
    parser = parser_of("jsonl", {}, ("en", "de"))
    parser.parse(json.dumps(rows[0]))
    assert json.loads(parser.render("dog", "Hund")) == {"id": "0", "translation": {"de": "Hund", "en": "dog"}}


def test_jsonl_keys_must_not_change(tmp_path):
    lines = ['{"translation": {"en": "one", "fr": "un"}}', '{"translation": {"en": "one", "de": "eins"}}']
    message = refusal(read_pairs([write(tmp_path / "a.jsonl", "\n".join(lines))]))
    assert ":2: " in message
    assert "earlier lines have the keys en, fr, this one en, de" in message


@pytest.mark.parametrize(
    ("keys", "advice"), [([], "Fix or delete"), (["src=de", "tgt=en"], "Fix --keys, or fix or delete")]
)
def test_a_line_without_two_texts_is_to_be_fixed_if_the_keys_are_known(tmp_path, keys, advice):
    path = write(tmp_path / "a.jsonl", '{"de": "Katze", "en": "cat"}\n{"de": "Hund", "en": 7}\n')
    message = refusal(read_pairs([path], keys=keys, languages=("de", "en")))
    assert ":2: " in message
    assert message.endswith(f'The line begins \'{{"de": "Hund", "en": 7}}\'.\n  {advice} the line.')
    assert keys or 'expected {"de": …, "en": …}' in message
    assert keys or "found {de: str, en: int}" in message


def test_wrong_tsv_column_count_is_reported_with_file_and_line(tmp_path):
    path = write(tmp_path / "a.tsv", "one\tun\none\tun\tuno\n")
    assert refusal(read_pairs([path])) == (
        f"{path}:2: expected 2 tab-separated columns (src, tgt), found 3.\n"
        f"  The line begins 'one\\tun\\tuno'.\n"
        f"  Fix the line, or use --format lines for one sentence per line."
    )


@pytest.mark.parametrize(
    "line",
    [
        "", "[1]", "7", "null", "{", '{"src": "a"}', '{"src": "a", "tgt": 7}', '{"src": "a", "tgt": "b", "id": 1}',
        '{"translation": ["a", "b"]}', '{"translation": {"en": "a"}}', '{"translation": {"src": "a", "tgt": "b"}}',
        '{"en": "a", "fr": "b"}', '{"src": "\\ud800", "tgt": "b"}', '{"src": "a\\u0000", "tgt": "b"}',
        "[" * 99_991, "9" * 9973,
    ],
)  # fmt: skip
def test_invalid_jsonl_line_is_reported_with_file_and_line(tmp_path, line):
    path = write(tmp_path / "a.jsonl", '{"src": "a", "tgt": "b"}\n' + line + "\n")
    message = refusal(read_pairs([path]))
    assert message.startswith(f"{path}:2: ")
    assert "\n  " in message


@pytest.mark.parametrize(("n_src", "n_tgt"), [(5, 3), (3, 5)])
def test_unequal_counts_are_reported_with_both_files_and_counts(tmp_path, n_src, n_tgt):
    src, tgt = write(tmp_path / "a.en", "one\n" * n_src), write(tmp_path / "a.fr", "un\n" * n_tgt)
    with pytest.raises(UnequalCountsError) as caught:
        list(read_pairs([src], [tgt]))
    assert (caught.value.n_src, caught.value.n_tgt) == (n_src, n_tgt)
    longer = src if n_src > n_tgt else tgt
    assert str(caught.value).startswith(f"{longer}:4: ")
    assert f"{src} has {n_src} lines, {tgt} has {n_tgt}" in str(caught.value)
    assert "add or remove" in str(caught.value)


def test_misalignment_is_reported_with_its_line(tmp_path):
    src, tgt = counting(211)
    del tgt[100]
    src_path, tgt_path = write(tmp_path / "a.en", "\n".join(src)), write(tmp_path / "a.fr", "\n".join(tgt))
    assert "from about line 101 on" in refusal(read_pairs([src_path], [tgt_path]))


USAGE = {
    "no-target": (["a.en"], []),
    "more-sources": (["a.en", "b.en"], ["a.fr"]),
    "target-of-tsv": (["a.tsv"], ["a.fr"]),
    "tsv-as-target": (["a.en"], ["a.tsv"]),
    "mixed": (["a.en", "a.tsv"], ["a.fr"]),
    "nothing": ([], []),
    "stdin-twice": (["-"], ["-"]),
}


@pytest.mark.parametrize("case", USAGE)
def test_incompatible_files_are_an_error_before_reading(tmp_path, case):
    src, tgt = ([Path(name) if name == "-" else write(tmp_path / name, "x\n") for name in side] for side in USAGE[case])
    with pytest.raises(ConfigError, match=r"\n  \w"):
        read_pairs(src, tgt)


def test_a_missing_second_file_is_reported_before_the_first_is_read(tmp_path):
    with pytest.raises(CorpusError, match=r"b\.fr: no such file"):
        read_pairs([write(tmp_path / "a.en", "x\n")], [tmp_path / "b.fr"])


def counting(n: int, seed: int = 7) -> tuple[list[str], list[str]]:
    """A toy parallel corpus: each source word has one target word."""
    rng = random.Random(seed)
    words = [
        [f"{chr(97 + i % 26)}{chr(97 + i // 26)}w" for i in rng.choices(range(89), k=rng.randint(3, 11))]
        for _ in range(n)
    ]
    return [" ".join(line) for line in words], [" ".join(word[::-1] + "é" for word in line) for line in words]


@given(st.integers(7, 200), st.integers(0, 1))
@settings(max_examples=13)
def test_misalignment_is_detected_at_a_deleted_line(at, side):
    sides = counting(211)
    del sides[side][at]
    guess = guess_misalignment(*sides)
    assert guess is not None
    assert abs(guess - (at + 1)) <= 3


def test_misalignment_is_detected_at_an_extra_blank_line():
    src, tgt = counting(211)
    src.insert(53, "")
    assert guess_misalignment(src, tgt) == 54


def test_missing_last_lines_are_no_misalignment_before_the_end():
    src, tgt = counting(211)
    assert guess_misalignment(src, tgt[:199]) in (None, 200)


def test_no_misalignment_is_detected_in_unrelated_files():
    src, tgt = counting(211)
    random.Random(11).shuffle(tgt)
    assert guess_misalignment(src, tgt[1:]) is None


def test_no_misalignment_is_detected_in_equal_lines():
    src, tgt = counting(211)
    for side in (src, tgt):
        side[80:120] = [side[80]] * 40
    del tgt[100]
    assert guess_misalignment(src, tgt) is None


def test_no_misalignment_is_detected_in_few_lines():
    assert guess_misalignment(["a"] * 5, ["b"] * 3) is None


@given(st.lists(st.tuples(st.text(CHARS, max_size=7), st.text(CHARS, max_size=7)), min_size=1, max_size=7))
@quick
def test_reading_restores_jsonl_pairs_of_any_text(folder, pairs):
    text = "".join(json.dumps({"src": src, "tgt": tgt}, ensure_ascii=False) + "\n" for src, tgt in pairs)
    path = write(folder / "p.jsonl", text)
    assert [(e.src, e.tgt) for e in read_pairs([path])] == pairs


@pytest.mark.parametrize(
    ("keys", "line", "pair"),
    [
        (["src=en", "tgt=fr"], {"en": "a", "fr": "b", "id": 3}, ("a", "b")),
        (["src=translation.en,tgt=translation.fr"], {"translation": {"en": "a", "fr": "b", "es": "c"}}, ("a", "b")),
        (["src=source", "tgt=target.0"], {"source": ["One.", "Two."], "target": ["x", "y"]}, ("One. Two.", "x")),
        (["text=body", "summary=title"], {"body": "a", "title": "b"}, ("a", "b")),
        ([], {"dialogue": "a", "summary": "b", "topic": "c"}, ("a", "b")),
        ([], {"article": "a", "highlights": "b"}, ("a", "b")),
    ],
)
def test_keys_name_the_fields_of_json_lines(tmp_path, keys, line, pair):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line) + "\n" + json.dumps(line) + "\n")
    assert [(e.src, e.tgt) for e in read_pairs([path], keys=keys)] == [pair, pair]


@pytest.mark.parametrize("keys", [["src"], ["src="], ["source=en"], ["src=a", "src=b"]])
def test_invalid_keys_option_is_an_error(tmp_path, keys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"en": "a", "fr": "b"}\n')
    with pytest.raises(ConfigError, match=r"--keys .*expected FIELD=KEY"):
        list(read_pairs([path], keys=keys))


def test_a_line_without_a_named_key_is_an_error_with_its_number(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"en": "a", "fr": "b"}\n{"en": "a"}\n')
    with pytest.raises(CorpusError, match=r"a\.jsonl:2: no key 'fr' .named by --keys"):
        list(read_pairs([path], keys=["src=en", "tgt=fr"]))


def test_tab_separated_pairs_are_detected_by_content(tmp_path):
    path = tmp_path / "deu.txt"
    path.write_text("Go.\tGeh.\nHi.\tHallo.\n")
    assert [(e.src, e.tgt) for e in read_pairs([path])] == [("Go.", "Geh."), ("Hi.", "Hallo.")]


@pytest.mark.parametrize("name", ["a.tsv", "a.txt"])
def test_a_blank_line_of_tsv_is_reported_with_the_task_that_has_them(tmp_path, name):
    path = write(tmp_path / name, "hte\tthe\n\nadn\tand\n")
    assert refusal(read_pairs([path])).startswith(f"{path}:2: expected 2 tab-separated columns")
    assert "Delete the line. For words with tags, train with --task tagging." in refusal(read_pairs([path]))


@pytest.mark.parametrize("name", ["a.pot", "a.docx", "a.pdf", "a.html.gz"])
def test_unsupported_formats_are_reported_with_the_supported_ones(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"a = b\n")
    with pytest.raises(CorpusError, match=r"which cannot be read.*\n.*TSV, CSV, JSONL, TMX, XLIFF, PO, CoNLL"):
        list(read_pairs([path], [path]))
