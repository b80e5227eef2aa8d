"""Tables as they are found: delimiters, quoting, encodings, header rows, and which columns hold text and label."""

import csv
import gzip
import io
from itertools import islice
from pathlib import Path

import pytest

from glassformer.cli.files import pair_sides
from glassformer.corpora.corpus import read_pairs
from glassformer.corpora.detect import find_task
from glassformer.corpora.doctor.records import open_readers
from glassformer.corpora.labeled import read_labeled
from glassformer.corpora.languages import languages_of
from glassformer.corpora.tables import open_table
from glassformer.errors import ColumnsError, ConfigError, CorpusError

N = 23
TEXT = "the film number {} was long"


def rows_as_csv(rows: list[list[str]], delimiter: str = ",") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


def lines(*cells: str, n: int = N) -> str:
    """A TSV file whose cells contain the number of the row, or alternate where they have a |."""
    return "".join(
        "\t".join(cell.format(i).split("|")[i % len(cell.split("|"))] for cell in cells) + "\n" for i in range(n)
    )


AIRLINE = ["tweet_id", "airline_sentiment", "airline_sentiment_confidence", "airline", "name", "text", "tweet_location"]

WILD: dict[str, tuple[str, bytes, str, tuple[str, str | None, str]]] = {
    # name of the file, content, task, the first example
    "airline tweets": (
        "Tweets.csv",
        rows_as_csv(
            [AIRLINE]
            + [[f"57{i}", ["neutral", "negative"][i % 2], "0.65", ["Delta", "United"][i % 2], f"n{i}",
                f'late, "again"\nflight {i}', "Boston"] for i in range(N)]
        ).encode(),
        "classification", ('late, "again"\nflight 0', None, "neutral"),
    ),
    "SMS spam": ("SMSSpamCollection", lines("ham|spam", TEXT).encode(), "classification",
                 (TEXT.format(0), None, "ham")),
    "SMS spam with v1, v2": (
        "spam.csv",
        rows_as_csv([["v1", "v2", "", "", ""]] + [[["ham", "spam"][i % 2], f"win £{i}, call us now", "", "", ""]
                                                  for i in range(N)]).encode("latin-1"),
        "classification", ("win £0, call us now", None, "ham"),
    ),
    "MSR paraphrase": (
        "msr.txt",
        ("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n" + lines("1|0", "70{}", "80{}", '"' + TEXT, TEXT + ' ."')
         ).encode(),
        "classification", ('"' + TEXT.format(0), TEXT.format(0) + ' ."', "1"),
    ),
    "STS": ("sts.tsv", lines("4.5|2|0.25", TEXT, "a longer film {}").encode(), "regression",
            (TEXT.format(0), "a longer film 0", "4.5")),
    "answer selection": (
        "train.csv", rows_as_csv([["qtext", "label", "atext"], *[[f"who is it {i} ?", str(i % 2), f"it is , {i}"]
                                                                 for i in range(N)]]).encode(),
        "classification", ("who is it 0 ?", "it is , 0", "0"),
    ),
    "wellformedness": ("train.tsv", lines(TEXT + " ?", "0.2|1.0|0.6").encode(), "regression",
                       (TEXT.format(0) + " ?", None, "0.2")),
    "semicolons": ("a.csv", b"text;label\none, two;x\nthree, four;y\n", "classification", ("one, two", None, "x")),
    "pipes": ("a.csv", b"text|label\none, two|x\nthree|y\n", "classification", ("one, two", None, "x")),
    "text, sentiment": ("a.csv", b"text,sentiment\none,x\n", "classification", ("one", None, "x")),
    "Message, Category": ("a.csv", b"Category,Message\nham,one\n", "classification", ("one", None, "ham")),
    "UTF-16": ("a.csv", "text,label\r\n\u00e9t\u00e9,x\r\n".encode("utf-16"), "classification", ("été", None, "x")),
    "CR": ("a.csv", b"text,label\rone,x\rtwo,y\r", "classification", ("one", None, "x")),
    "quoted TSV": ("a.tsv", b'text\tlabel\n"a ""b"" c"\tx\n', "classification", ('a "b" c', None, "x")),
}  # fmt: skip


@pytest.mark.parametrize("case", WILD)
def test_a_file_from_the_wild_is_read_without_options(tmp_path, case):
    name, content, task, first = WILD[case]
    path = tmp_path / name
    path.write_bytes(content)
    assert find_task([path]) == task
    examples = list(read_labeled([path]))
    assert (examples[0].text, examples[0].text2, examples[0].label) == first
    header = {"text", "label", "v1", "Quality", "airline_sentiment", "sentiment", "Category"}
    assert not header & {example.label for example in examples}


def test_what_was_detected_is_logged_in_one_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("tweet;sentiment\ncaf\xe9, noir;x\n".encode("latin-1"))
    logged: list[str] = []
    list(read_labeled([path], log=logged.append))
    assert logged == [
        f"{path}: semicolon-separated, Windows-1252, header row; text = column 'tweet', label = column 'sentiment'."
        " Other columns: --keys text=… label=…"
    ]


def test_two_possible_labels_are_an_error_with_the_option_to_type(tmp_path):
    path = tmp_path / "SICK.txt"
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    path.write_text(header + lines("{}", TEXT, TEXT, "4.5|3.2", "NEUTRAL|ENTAILMENT"))
    with pytest.raises(ColumnsError, match=r"relatedness_score or entailment_judgment may be the label") as caught:
        find_task([path])
    assert caught.value.keys == "--keys text=sentence_A text2=sentence_B label=relatedness_score"
    keys = caught.value.keys.split()[1:]
    assert {e.label for e in read_labeled([path], keys)} == {"4.5", "3.2"}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_one_option_names_the_columns_of_all_formats(tmp_path, suffix):
    contents = {
        "csv": "text,tweet,stars\nno,yes,5\n",
        "tsv": "text\ttweet\tstars\nno\tyes\t5\n",
        "jsonl": '{"text": "no", "tweet": "yes", "stars": 5}\n',
    }
    path = tmp_path / f"a.{suffix}"
    path.write_text(contents[suffix])
    (example,) = read_labeled([path], ["text=tweet", "label=stars"])
    assert (example.text, example.label) == ("yes", "5")


def test_a_column_that_does_not_exist_is_an_error_with_the_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,tweet,stars\nno,yes,5\n")
    with pytest.raises(ConfigError, match=r"no column 'twet' .*\n  Header row: text, tweet, stars\n  Row: no"):
        list(read_labeled([path], ["text=twet", "label=stars"]))


@pytest.mark.parametrize(
    "content", [b"text,label\n" + "été à Noël".encode() + b",x\nbad \xe9,x\n", b"\xce\xe9\xe8\n" * 9]
)
def test_what_is_not_western_text_is_not_taken_for_it(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match="not UTF-8"):
        list(read_labeled([path], ["text=1", "label=1"]))


def test_pairs_are_read_from_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('en,fr\n"one, two","un, deux"\nthree,trois\n')
    assert find_task([path]) == "translation"
    assert [(e.src, e.tgt, e.line) for e in read_pairs([path])] == [("one, two", "un, deux", 2), ("three", "trois", 3)]
    assert [e.src for e in read_pairs([path], keys=["src=fr", "tgt=en"])] == ["un, deux", "trois"]
    assert languages_of([path], ()) == ("en", "fr")
    logged: list[str] = []
    list(read_pairs([path], log=logged.append))
    found = "source = column 'en', target = column 'fr'. Other columns: --keys src=… tgt=…"
    assert logged == [f"{path}: comma-separated, header row; {found}"]
    other = tmp_path / "b.csv"
    other.write_text("id,first,second\n1,a b c,d e f\n")
    with pytest.raises(ColumnsError, match="the columns of source and target are not known"):
        list(read_pairs([other]))
    assert [(e.src, e.tgt) for e in read_pairs([other], keys=["src=first", "tgt=3"])] == [("a b c", "d e f")]


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.tsv.gz"])
@pytest.mark.parametrize("header", ["", "English\tFrench\r\n"])
@pytest.mark.parametrize(("codec", "encoding"), [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16"), ("cp1252", "Windows")])
def test_tsv_of_pairs_may_have_the_encodings_of_csv(tmp_path, name, header, codec, encoding):
    data = (header + "the coffee\tle café\r\nthe summer\tl’été\r\nwinter\thiver\r\n").encode(codec)
    path, messages = tmp_path / name, []
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    expected = [("the coffee", "le café"), ("the summer", "l’été"), ("winter", "hiver")]
    assert find_task([path]) == "translation"
    assert pair_sides([path]) == ((path,), ())
    assert [(pair.src, pair.tgt) for pair in read_pairs([path], log=messages.append)] == expected
    assert messages[0].startswith(f"{path}: tab-separated, {encoding}")
    assert "header row; source = column " in messages[0]
    (reader,) = open_readers(((path,), ()), None)
    assert [(record.src, record.tgt) for record in reader] == expected


@pytest.mark.parametrize(
    ("header", "keys"),
    [
        ("Deutsch,Englisch", ["src=1", "tgt=2"]),
        ("English,Español", ["src=1", "tgt=2"]),
        ("note,en,fr", ["src=2", "tgt=3"]),
        ("note,input,output", ["src=2", "tgt=3"]),
        ("note,text,summary", ["text=2", "summary=3"]),
    ],
)
def test_a_header_in_columns_that_are_named_by_number_is_no_pair(tmp_path, header, keys):
    path, messages = tmp_path / "a.csv", []
    row = "x," * (header.count(",") - 1) + "ein Hund,a dog\n"
    path.write_text(f"{header}\n{row * 3}")
    pairs = [(pair.line, pair.src) for pair in read_pairs([path], keys=keys, log=messages.append)]
    assert pairs == [(2, "ein Hund"), (3, "ein Hund"), (4, "ein Hund")]
    names = "source = column {!r}, target = column {!r}".format(*header.split(",")[-2:])
    assert messages == [f"{path}: comma-separated, header row; {names}. Other columns: --keys src=… tgt=…"]


@pytest.mark.parametrize("first", ["der Hund,the dog", "Deutsch,German", "auf Deutsch,in Englisch bitte"])
def test_a_first_row_of_texts_is_a_pair_and_that_is_reported(tmp_path, first):
    path, messages = tmp_path / "a.csv", []
    path.write_text(f"{first}\nein Hund,a dog\n")
    pairs = [f"{pair.src},{pair.tgt}" for pair in read_pairs([path], keys=["src=1", "tgt=2"], log=messages.append)]
    assert pairs == [first, "ein Hund,a dog"]
    found = "no header row; source = column '1', target = column '2'. The first row is a pair."
    assert messages == [f"{path}: comma-separated, {found}"]


def test_the_header_of_a_tsv_file_of_pairs_is_no_pair(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("en\tfr\nthe cat\tle chat\n")
    assert [e.src for e in read_pairs([path])] == ["the cat"]


def test_a_quote_that_is_text_is_kept_in_tsv(tmp_path):
    path: Path = tmp_path / "a.tsv"
    path.write_text('text\tlabel\n"hello" she said\tx\n"bye\ty\n')
    assert not open_table(path).is_quoted


def test_a_cell_may_be_as_long_as_a_line(tmp_path):
    text = "word " * 40_000
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f'"{text}, {i}",{"yes" if i % 2 else "no"}\n' for i in range(4)))
    assert [example.text for example in read_labeled([path])] == [f"{text}, {i}" for i in range(4)]


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;"])
@pytest.mark.parametrize("rest", ["", ";"])
def test_the_first_line_of_excel_names_the_delimiter(tmp_path, first, rest):
    path = tmp_path / "a.csv"
    rows = "".join(f"film {i}, was long;{('good', 'bad')[i % 2]}{rest}\r\n" for i in range(20))
    path.write_bytes(f"\ufeff{first}\r\ntext;label\r\n{rows}".encode())
    examples = list(read_labeled([path]))
    assert find_task([path]) == "classification"
    assert len(examples) == 20
    assert (examples[0].text, examples[0].label, examples[0].line) == ("film 0, was long", "good", 3)


def test_cells_of_several_lines_are_read_wherever_the_sample_ends(tmp_path):
    path = tmp_path / "a.tsv"
    for n in (60, 199, 200, 201, 300):
        path.write_text("text\tlabel\n" + "".join(f'"good\nsecond {i}\nthird"\t{"ab"[i % 2]}\n' for i in range(n)))
        assert [example.text for example in read_labeled([path])] == [f"good\nsecond {i}\nthird" for i in range(n)]


def test_a_tsv_file_of_quoted_cells_has_no_quotes_in_its_texts(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('"id"\t"text"\t"label"\n' + "".join(f'{i}\t"good film {i}"\t"{"ab"[i % 2]}"\n' for i in range(9)))
    assert [(e.text, e.label) for e in read_labeled([path])][:2] == [("good film 0", "a"), ("good film 1", "b")]


def test_a_row_of_csv_without_cells_at_the_end_has_blank_ones(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,label,note\na film,good,x\na dull film,bad\nno label\n")
    rows = read_labeled([path])
    assert [(row.text, row.label) for row in islice(rows, 2)] == [("a film", "good"), ("a dull film", "bad")]
    with pytest.raises(CorpusError, match=r"a\.csv:4: expected 3 columns \(text, label, note\), found 1"):
        next(rows)
    path.write_text("en,fr,note\nOne,Un,x\nTwo,Deux\n")
    keys = ["src=en", "tgt=fr"]
    assert [pair.tgt for pair in read_pairs([path], keys=keys)] == ["Un", "Deux"]
    path = path.rename(tmp_path / "a.tsv")  # in which a text may be on two lines by mistake
    path.write_text("en\tfr\tnote\nOne\tUn\tx\nTwo\tDeux\n")
    with pytest.raises(CorpusError, match=r"a\.tsv:3: expected 3 columns"):
        list(read_pairs([path], keys=keys))


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_source_and_target_are_known_among_other_columns(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    rows = ["Source,Target,comment,score", "One dog,Un chien,x,0.9", "Two dogs,Deux chiens,,0.8"]
    path.write_text("\n".join(rows).replace(",", "," if suffix == "csv" else "\t") + "\n")
    assert find_task([path]) == "translation"
    assert [(pair.src, pair.tgt) for pair in read_pairs([path])] == [
        ("One dog", "Un chien"),
        ("Two dogs", "Deux chiens"),
    ]


def test_a_table_with_a_label_has_no_pairs(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("source,text,target\n" + "".join(f"web,a film of the year {i},{'ab'[i % 2]}\n" for i in range(20)))
    assert find_task([path]) == "classification"
