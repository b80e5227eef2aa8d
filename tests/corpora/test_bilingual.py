"""corpora.bilingual: memories, XLIFF, gettext catalogues, archives and folders of them, and two catalogues by key."""

import gzip
import io
import tarfile
import zipfile

import pytest

from glassformer.corpora import bilingual
from glassformer.corpora.bilingual import both_sided_format, declared_languages, expanded
from glassformer.corpora.corpus import read_pairs
from glassformer.errors import ConfigError, CorpusError
from tests.documents.test_package import with_flag
from tests.documents.test_po import HEADER, MESSAGES, PO
from tests.documents.test_tmx import memory, tuv
from tests.documents.test_xliff import file, unit

TMX = memory(
    tuv("en", "The <hi>cat</hi>") + tuv("de", "Die Katze"),
    tuv("en", "A dog") + tuv("de", "Ein Hund", ' creationid="MT!"'), tuv("en", "Open") + tuv("de", "")
)  # fmt: skip
XLIFF = file(
    unit("The <x id='1'/>cat", "Die Katze"), unit("A dog", "Ein Hund", "", ' state="needs-translation"'), unit("Open")
)
ONE = (
    HEADER
    + 'msgid "The cat"\nmsgstr "Die Katze"\n\n#, fuzzy\nmsgid "A dog"\nmsgstr "Ein Hund"\n\nmsgid "Open"\nmsgstr ""\n'
)
BROKEN = HEADER + 'msgid "Good"\nmsgstr "Gut"\n\nmsgid "Bad\n'


def pairs(*paths, log=None, tgt=(), **options):
    return [(pair.src, pair.tgt) for pair in read_pairs(list(paths), list(tgt), log=log, **options)]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


FILES = {"a.tmx": TMX, "a.xlf": XLIFF, "a.xliff": XLIFF, "a.sdlxliff": XLIFF, "a.po": ONE, "A.TMX": TMX}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_packed", [False, True])
def test_translated_entries_are_pairs_and_the_log_says_what_was_left_out(tmp_path, name, is_packed):
    data = FILES[name].encode()
    path = write(tmp_path / (name + ".gz" * is_packed), gzip.compress(data) if is_packed else data)
    lines: list[str] = []
    assert pairs(path, log=lines.append) == [("The cat", "Die Katze")]
    (line,) = lines
    assert line.startswith(f"{path}: 1 pair ")
    assert "left out: 1 without a translation, 1 fuzzy or made by a machine (--fuzzy uses them)." in line
    assert " to de" in line
    lines.clear()
    assert pairs(path, fuzzy=True, log=lines.append) == [("The cat", "Die Katze"), ("A dog", "Ein Hund")]
    assert lines[0].endswith("; left out: 1 without a translation.")
    assert lines[0].startswith(f"{path}: 2 pairs ")


@pytest.mark.parametrize("name", ["a.tmx", "a.xlf", "a.po"])
def test_the_reverse_languages_swap_the_sides(tmp_path, name):
    path = write(tmp_path / name, FILES[name])
    assert pairs(path, languages=("en", "de")) == [("The cat", "Die Katze")]
    lines = []
    assert pairs(path, languages=("de", "en"), log=lines.append)[0] == ("Die Katze", "The cat")
    # A memory has no direction.
    assert ("entries the other way round, by the languages that the file names" in lines[0]) == (name != "a.tmx")


@pytest.mark.parametrize("name", ["a.xlf", "a.po"])
def test_other_languages_are_refused(tmp_path, name):
    with pytest.raises(CorpusError, match="not from en to fr"):
        pairs(write(tmp_path / name, FILES[name]), languages=("en", "fr"))


def test_pairs_have_the_file_and_the_line(tmp_path):
    path = write(tmp_path / "a.po", PO)
    (pair,) = read_pairs([path])
    assert (pair.src, pair.tgt, pair.path) == ("Save", "Sichern", str(path))
    assert PO.split("\n")[pair.line - 1] == 'msgid "Save"'


def zipped(files: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: dict[str, str | bytes], mode: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def catalogue(word: str) -> str:
    return f'{HEADER}msgid "{word}"\nmsgstr "{word.upper()}"\n'


MEMBERS = {
    "de/a.po": catalogue("a"),
    "de/b.po": catalogue("b"),
    "README": "no",
    "c.tmx": memory(tuv("en", "c") + tuv("de", "C")),
}
ARCHIVES = {
    "x.zip": zipped(MEMBERS), "x.tar": tarred(MEMBERS, "w"), "x.tar.gz": tarred(MEMBERS, "w:gz"),
    "x.tgz": tarred(MEMBERS, "w:gz"),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_the_files_of_an_archive_are_read(tmp_path, name):
    path = write(tmp_path / name, ARCHIVES[name])
    lines: list[str] = []
    found = list(read_pairs([path], log=lines.append))
    assert sorted((pair.src, pair.tgt) for pair in found) == [("a", "A"), ("b", "B"), ("c", "C")]
    assert {pair.path for pair in found} == {f"{path}/{name}" for name in MEMBERS if name != "README"}
    assert lines[0].startswith("3 files: 3 pairs")


def test_the_files_of_an_archive_may_have_other_archives_which_are_left_out(tmp_path):
    path = write(tmp_path / "x.zip", zipped({"a.po": catalogue("a"), "b.zip": "no"}))
    assert pairs(path) == [("a", "A")]


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def damaged() -> bytes:
    """A zip archive in which bytes of the first file are changed."""
    data = bytearray(zipped({"a.po": catalogue("word " * 500)}))
    for i in range(60, 90):
        data[i] ^= 0xFF
    return bytes(data)


LONG = {f"{i}.po": catalogue("".join(chr(97 + (i * j * 7919 + j * j) % 26) for j in range(5_000))) for i in range(6)}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.zip", truncated(ARCHIVES["x.zip"])), ("x.tar.gz", truncated(ARCHIVES["x.tar.gz"])), ("x.zip", b"hello"),
        ("x.tgz", b""),
        ("x.zip", with_flag(ARCHIVES["x.zip"])), ("x.zip", damaged()), ("x.tar.gz", truncated(tarred(LONG, "w:gz"))),
        ("x.tar", tarred(LONG, "w")[:10_000]),
    ],
)  # fmt: skip
def test_an_archive_that_cannot_be_read_is_one_clear_error(tmp_path, name, data):
    with pytest.raises(CorpusError, match=name):
        pairs(write(tmp_path / name, data))


def test_a_folder_is_read_as_the_files_in_it(tmp_path):
    for name in ("b/z.po", "b/a.po", "a.tmx", "notes.txt", "c/d/e.xlf", ".a.po", ".git/a.po", "b/.x/y/a.tmx"):
        write(tmp_path / "in" / name, "x")
    assert [str(path.relative_to(tmp_path)) for path in expanded((tmp_path / "in", tmp_path / "x.po"))] == [
        "in/a.tmx", "in/b/a.po", "in/b/z.po", "in/c/d/e.xlf", "x.po",
    ]  # fmt: skip
    with pytest.raises(CorpusError, match=r"without translated files \(\.tmx, \.xlf"):
        expanded((tmp_path / "in/c/none",) if write(tmp_path / "in/c/none/x.txt", "") else ())


def test_a_broken_catalogue_is_an_error_that_names_skip_bad(tmp_path):
    path = write(tmp_path / "x.zip", zipped({"a.po": catalogue("a"), "b.po": BROKEN, "c.po": catalogue("c")}))
    with pytest.raises(CorpusError, match=r"x\.zip/b\.po:10: not a line of a gettext catalogue") as caught:
        pairs(path)
    assert "--skip-bad" in str(caught.value)


def test_a_broken_catalogue_is_left_out_if_asked_for_and_the_log_says_so(tmp_path):
    path = write(tmp_path / "x.zip", zipped({"a.po": catalogue("a"), "b.po": BROKEN, "c.po": catalogue("c")}))
    lines: list[str] = []
    found = pairs(path, skip_bad=True, log=lines.append)
    assert {("a", "A"), ("c", "C")} <= {*found}
    assert lines[1].startswith("warning: 1 of 3 files cannot be read and was left out: ")
    assert "b.po:10: not a line" in lines[1]
    assert "\n" not in lines[1]


def test_a_broken_file_of_several_is_left_out(tmp_path):
    paths = [
        write(tmp_path / "a.po", catalogue("a")),
        write(tmp_path / "b.tmx", TMX[:-40]),
        write(tmp_path / "c.xlf", XLIFF[:-40]),
    ]
    lines: list[str] = []
    assert ("a", "A") in pairs(*paths, skip_bad=True, log=lines.append)
    assert "2 of 3 files cannot be read and were left out" in lines[1]
    with pytest.raises(CorpusError, match="not well-formed"):
        pairs(*paths)


def test_nothing_left_out_is_not_said(tmp_path):
    lines: list[str] = []
    pairs(write(tmp_path / "a.po", catalogue("a")), skip_bad=True, fuzzy=True, log=lines.append)
    assert lines == [f"{tmp_path / 'a.po'}: 1 pair to de."]


@pytest.mark.parametrize(("option", "name"), [("fuzzy", "--fuzzy"), ("skip_bad", "--skip-bad")])
def test_an_option_without_effect_is_refused(tmp_path, option, name):
    path = write(tmp_path / "a.tsv", "a\tb\n")
    with pytest.raises(ConfigError, match=f"{name}: without effect on pairs"):
        pairs(path, **{option: True})


def test_two_catalogues_are_paired_by_key(tmp_path):
    src = write(tmp_path / "en.properties", "# c\na=The cat\nb=A dog\nonly=here\nn={0,choice,0#a|1#b}\n")
    tgt = write(tmp_path / "de.properties", "b=Ein\\u0020Hund\na=Die Katze\nother=x\nn={0,choice,0#a|1#b}\n")
    lines: list[str] = []
    found = list(read_pairs([src], [tgt], log=lines.append))
    assert [(p.src, p.tgt, p.path, p.line) for p in found] == [
        ("The cat", "Die Katze", str(src), 2),
        ("A dog", "Ein Hund", str(src), 3),
    ]
    assert lines == [f"{src}: 2 pairs; left out: 1 without a translation, 1 with plural forms of ICU."]


def test_two_catalogues_of_android_are_paired_by_name_and_quantity(tmp_path):
    def xml(one, many):
        return (
            f'<resources><string name="a">{one} <b>é</b></string><plurals name="d"><item '
            f'quantity="other">{many}</item></plurals></resources>'
        )

    src = write(tmp_path / "values/strings.xml", xml("Cat", "%d cats"))
    tgt = write(tmp_path / "values-de/strings.xml", xml("Katze", "%d Katzen"))
    assert pairs(src, tgt=[tgt]) == [("Cat é", "Katze é"), ("%d cats", "%d Katzen")]


def test_catalogues_without_a_common_key_or_with_plain_text_are_refused(tmp_path):
    src, tgt = write(tmp_path / "a.properties", "a=b\n"), write(tmp_path / "b.properties", "c=d\n")
    with pytest.raises(CorpusError, match="no key in common"):
        pairs(src, tgt=[tgt])
    with pytest.raises(ConfigError, match="a catalogue and plain text"):
        pairs(src, tgt=[write(tmp_path / "x.txt", "x\n")])
    with pytest.raises(ConfigError, match="contains both sides"):
        pairs(write(tmp_path / "a.po", PO), tgt=[tgt])


def test_a_catalogue_beyond_the_limit_is_refused_and_a_memory_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(bilingual, "MAX_DOCUMENT_BYTES", 400)
    with pytest.raises(CorpusError, match=r"a\.po: more than 400 bytes"):
        pairs(write(tmp_path / "a.po", PO))
    assert pairs(write(tmp_path / "a.tmx", TMX)) == [("The cat", "Die Katze")]


def test_a_memory_of_several_languages_needs_two_names(tmp_path):
    path = write(tmp_path / "a.tmx", memory(tuv("en", "a") + tuv("de", "b") + tuv("fr", "c")))
    with pytest.raises(CorpusError, match="--languages en de"):
        pairs(path)
    assert pairs(path, languages=("fr", "de")) == [("c", "b")]
    for wrong in (("en",), ("en", "fr", "de")):
        with pytest.raises(ConfigError, match="two different codes"):
            pairs(path, languages=wrong)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.po", "po"), ("a.PO.gz", "po"), ("a.tmx", "tmx"), ("a.mqxliff", "xliff"), ("a.tar.gz", "archive"),
        ("a.ZIP", "archive"), ("a.txt", None), ("po", None),
        ("a.po.txt", None),
    ],
)  # fmt: skip
def test_the_format_of_a_name(tmp_path, name, format):
    assert both_sided_format(tmp_path / name) == format


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.tmx", TMX, ("en", "de")), ("a.xlf", XLIFF, ("en", "de")), ("a.po", PO, ()), ("a.tmx", "<tmx>", ()),
        ("a.txt", "x", ()),
        ("a.tmx", memory(tuv("en-US", "a") + tuv("en-GB", "b")), ()), ("x.zip", zipped({"a.xlf": XLIFF}), ("en", "de")),
    ],
)  # fmt: skip
def test_the_languages_that_a_file_declares(tmp_path, name, content, expected):
    assert declared_languages(write(tmp_path / name, content)) == expected
    assert declared_languages(tmp_path / "none.tmx") == ()


def test_plural_forms_and_obsolete_messages(tmp_path):
    text = MESSAGES.replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"')
    assert pairs(write(tmp_path / "a.po", HEADER + text)) == [
        ("Save", "Sichern"), ("%d file", "%d Datei"), ("%d files", "%d Dateien"),
    ]  # fmt: skip


@pytest.mark.parametrize("make", [zipped, lambda files: tarred(files, "w:gz")])
def test_an_archive_made_on_a_mac_with_packed_files(tmp_path, make):
    packed = gzip.compress(catalogue("b").encode())
    files = {"a.po": catalogue("a"), "__MACOSX/._a.po": "x\0", "b/._b.po": "\0", "b/b.po.gz": packed}
    path = write(tmp_path / ("x.zip" if make is zipped else "x.tar.gz"), make(files))
    whole = write(tmp_path / "y.zip", zipped({"a.po": catalogue("a"), "b.po": catalogue("b")}))
    assert pairs(path) == pairs(whole)
    folder = tmp_path / "folder"
    for name, text in (("a.po", catalogue("a")), ("._a.po", "\0"), ("__MACOSX/a.po", "\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert [file.name for file in expanded((folder,))] == ["a.po"]


def test_an_archive_without_translated_files_says_what_it_has(tmp_path):
    path = write(tmp_path / "en-fr.txt.zip", zipped({"x.en": "a", "x.fr": "b", "__MACOSX/._x.po": "c"}))
    with pytest.raises(
        CorpusError, match=r"without translated files \(\.tmx, .*\); it has x\.en, x\.fr\.\n  Unpack it"
    ):
        pairs(path)


def test_a_memory_with_variants_of_the_source_language(tmp_path):
    variants = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in
        (("en-US", "color"), ("en-GB", "colour"), ("fr", "couleur")))  # fmt: skip
    text = f'<tmx version="1.4"><header srclang="en-US"/><body><tu>{variants}</tu></body></tmx>'
    assert pairs(write(tmp_path / "a.tmx", text)) == [("color", "couleur")]
    one_language = text.replace('<tuv xml:lang="fr"><seg>couleur</seg></tuv>', "")
    assert pairs(write(tmp_path / "b.tmx", one_language)) == [("color", "colour")]
