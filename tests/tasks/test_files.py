"""tasks.files: documents are translated, each text once; files are written completely or not at all."""

import os
import re
from dataclasses import replace
from xml.etree import ElementTree

import polib
import pytest

from glassformer.decode_config import DecodeConfig
from glassformer.documents.po import NAMED
from glassformer.documents.reader import FORMATS
from glassformer.documents.tmx import tmx_units
from glassformer.documents.xliff import xliff_units
from glassformer.errors import ConfigError, CorpusError, UserError
from glassformer.tasks.files import Memo, TranslatedFile, outputs, read_file, translate_document, write_new
from glassformer.tasks.translated import Translation
from glassformer.tokens.tokenizer import Tokenizer
from tests.documents.test_office import body_of, run, word
from tests.documents.test_po import HEADER
from tests.documents.test_tmx import memory, read, tuv
from tests.documents.test_xliff import file, unit


class Capitals:
    """A task that translates into capitals, word by word; texts with "odd" with little confidence."""

    tokenizer = Tokenizer.train(["a b"], kind="char")

    def __init__(self, languages: tuple[str, ...] = ("en", "de")):
        self.calls: list[tuple[list[str], DecodeConfig]] = []
        self.languages = languages

    def translate(self, texts, options, progress=lambda n: None):
        self.calls.append((list(texts), options))
        progress(len(texts))
        return [[self.best(text, options)] for text in texts]

    def best(self, text: str, options: DecodeConfig) -> Translation:
        p = 0.2 if "odd" in text else 0.9
        words = tuple((each, p) for each in text.upper().split())
        is_untranslated = options.min_confidence is not None and p < options.min_confidence
        return Translation(
            text, text if is_untranslated else text.upper(), -1.0, [], [-1.0],
            words=words if options.confidence else None,
            is_untranslated=is_untranslated,
            alignment=tuple((i, i) for i in range(len(words))) if options.align else None,
        )  # fmt: skip


PO = (
    HEADER + 'msgid "Open"\nmsgstr ""\n\nmsgid "An odd text"\nmsgstr ""\n\n#, fuzzy\nmsgid "Old"\nmsgstr "Alt"\n\n'
    'msgid "Done"\nmsgstr "Fertig"\n'
)


def test_entries_without_a_translation_are_translated_and_counted():
    data, result = translate_document(Capitals(), read("a.po", PO), DecodeConfig())
    assert [(entry.msgid, entry.msgstr, entry.fuzzy) for entry in polib.pofile(data.decode())] == [
        ("Open", "OPEN", False), ("An odd text", "AN ODD TEXT", False), ("Old", "Alt", True), ("Done", "Fertig", False),
    ]  # fmt: skip
    assert (result.n_translated, result.n_kept, result.n_doubtful, result.notes) == (2, 2, 0, ())


def test_terms_that_are_missing_and_texts_that_are_cut_off_are_named():
    class Lacking(Capitals):
        def best(self, text, options):
            found = super().best(text, options)
            return replace(found, missing=("Tür", "Tor")) if "odd" in text else replace(found, is_truncated=True)

    _, result = translate_document(Lacking(), read("a.po", PO), DecodeConfig())
    assert result.notes == ("1 cut off at the maximum length", "1 without a term of the glossary: Tür, Tor")
    assert result.summary().endswith("maximum length, 1 without a term of the glossary: Tür, Tor.")


class Silent(Capitals):
    """Its translation of texts with "odd" is empty."""

    def best(self, text, options):
        found = super().best(text, options)
        return replace(found, text=" ") if "odd" in text else found


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", "# odd *text*\n\nAnother\n", "# odd *text*\n\nANOTHER\n"),
        ("a.html", "<p title='odd one'>Text</p>", "<p title='odd one'>TEXT</p>"),
        ("a.po", PO, None),
    ],
)
def test_texts_whose_translation_is_empty_stay_and_are_counted(name, content, expected):
    data, result = translate_document(Silent(), read(name, content), DecodeConfig())
    assert result.notes == ("1 as they were, because the model's translation is empty",)
    assert data.decode() == (expected or content.replace('Open"\nmsgstr ""', 'Open"\nmsgstr "OPEN"'))


def test_an_entry_of_xliff_whose_translation_is_empty_stays():
    text = file(unit("An odd text"), unit("Open"))
    data, result = translate_document(Silent(), read("a.xlf", text), DecodeConfig())
    assert unit("An odd text").strip() in data.decode()
    assert len(result.notes) == 1


@pytest.mark.parametrize(("only", "n", "n_kept"), [("empty", 2, 2), ("fuzzy", 3, 1), ("all", 4, 0)])
def test_the_choice_of_entries(only, n, n_kept):
    _, result = translate_document(Capitals(), read("a.po", PO), DecodeConfig(), only=only)
    assert (result.n_translated, result.n_kept) == (n, n_kept)


def test_less_confident_translations_of_a_file_of_two_languages_are_marked():
    task = Capitals()
    data, result = translate_document(task, read("a.po", PO), DecodeConfig(min_confidence=0.5))
    assert [(entry.msgstr, entry.fuzzy) for entry in polib.pofile(data.decode())][:2] == [
        ("OPEN", False),
        ("AN ODD TEXT", True),
    ]
    assert result.n_doubtful == 1
    assert {(options.confidence, options.min_confidence) for _, options in task.calls if _} == {(True, None)}


def test_less_confident_texts_of_a_file_of_one_language_stay():
    data, result = translate_document(
        Capitals(), read("a.md", "# Open\n\nAn odd *text*\n"), DecodeConfig(min_confidence=0.5)
    )
    assert data.decode() == "# OPEN\n\nAn odd *text*\n"
    assert (result.n_translated, result.n_doubtful, result.n_kept) == (2, 1, 0)


def test_a_text_that_occurs_often_is_translated_once():
    task = Capitals()
    seen: list[int] = []
    text = "- the same\n- the same\n- another\n- the same\n"
    data, result = translate_document(task, read("a.md", text), DecodeConfig(), progress=seen.append)
    assert data.decode() == text.upper()
    assert [texts for texts, _ in task.calls if texts] == [["the same", "another"]]
    assert (result.n_translated, sum(seen)) == (4, 2)


def test_a_memo_knows_the_texts_of_other_files_and_other_options():
    task = Capitals()
    memo = Memo(task)
    for options in (DecodeConfig(), DecodeConfig(), DecodeConfig(beam=2)):
        translate_document(task, read("a.md", "one\n\ntwo\n"), options, memo=memo)
    assert [texts for texts, _ in task.calls if texts] == [["one", "two"], ["one", "two"]]
    assert [options.beam for texts, options in task.calls if texts] == [4, 2]


def test_only_texts_with_codes_within_are_aligned():
    task = Capitals()
    document = read(
        "a.docx", word(f"<w:p>{run('The ')}{run('cat', '<w:b/>')}{run(' sat')}</w:p><w:p>{run('No codes')}</w:p>")
    )
    data, _ = translate_document(task, document, DecodeConfig())
    assert [(texts, options.align) for texts, options in task.calls if texts] == [
        (["No codes"], False),
        (["The cat sat"], True),
    ]
    assert re.sub("<[^>]*>", "", body_of(data)) == "THE CAT SATNO CODES"


def test_what_programs_put_in_is_protected_as_well_as_what_is_asked_for():
    task = Capitals()
    translate_document(task, read("a.po", PO), DecodeConfig(protect=("urls", "tags")))
    assert task.calls[0][1].protect == ("urls", "tags", "emails", "placeholders", "entities", NAMED)
    translate_document(task, read("a.md", "a\n"), DecodeConfig(protect=("units",)))
    assert task.calls[-1][1].protect == ("units", "urls", "emails")


def test_the_languages_of_the_model_are_written():
    html = read("a.html", "<html lang='en'><p>Cat</p>")
    assert b'lang="de"' in translate_document(Capitals(), html, DecodeConfig())[0]
    assert b"lang='en'" in translate_document(Capitals(()), html, DecodeConfig())[0]


@pytest.mark.parametrize("options", [{"nbest": 2}, {"align": True}, {"confidence": True}, {"prefix": "x"}])
def test_an_option_that_a_file_does_not_show_is_refused(options):
    with pytest.raises(ConfigError, match=f"--{next(iter(options))}: without effect on files"):
        translate_document(Capitals(), read("a.md", "a\n"), DecodeConfig(**options))
    translate_document(Capitals(), read("a.md", "a\n"), DecodeConfig(nbest=1, align=False, prefix=""))


def test_a_translation_that_cannot_be_written_is_an_error():
    class Other(Capitals):
        def best(self, text, options):
            return Translation(text, "5 €", -1.0, [], [])

    with pytest.raises(CorpusError, match="ISO-8859-1"):
        translate_document(Other(), read("a.po", PO.replace("UTF-8", "ISO-8859-1")), DecodeConfig())


@pytest.mark.parametrize(("to", "units_of"), [("tmx", tmx_units), ("xliff", xliff_units)])
def test_a_file_of_two_languages_for_review(to, units_of):
    text = "# Open\n\nAn odd *text* & <b>more</b>\n\nOpen\n"
    data, done = translate_document(
        Capitals(), read("a.md", text), DecodeConfig(min_confidence=0.5), to=to, name="a & b.md"
    )
    units = list(units_of("a", [data] if to == "tmx" else data, ("en", "de")))
    odd = ("An odd text & more", "AN ODD TEXT & MORE", "fuzzy")
    assert [(unit.src, unit.tgt, unit.state) for unit in units] == [("Open", "OPEN", "fuzzy"), *[odd] * (to == "xliff")]
    assert (done.n_translated, done.n_doubtful) == (3, 1)
    assert ('state="needs-translation"' in data.decode()) == (to == "xliff")
    ElementTree.fromstring(data)


def test_the_names_of_files_for_review(tmp_path):
    assert outputs([tmp_path / "a.md"], tmp_path / "out", FORMATS, "xliff") == [
        (tmp_path / "a.md", tmp_path / "out" / "a.md.xlf")
    ]


def test_languages_are_needed_for_a_file_for_review():
    with pytest.raises(ConfigError, match="--to: the model does not say its languages"):
        translate_document(task := Capitals(languages=()), read("a.md", "Open\n"), DecodeConfig(), to="tmx")
    assert task.calls == []


def test_the_summary_of_a_file(tmp_path):
    assert TranslatedFile(tmp_path, 1_200, 0, 0, 0, 0, ()).summary() == f"{tmp_path}: 1,200 texts translated."
    text = TranslatedFile(tmp_path, 3, 2, 1, 0, 0, ("a note",)).summary()
    assert text == f"{tmp_path}: 3 texts translated, 1 of them below the confidence asked for, 2 entries kept, a note."
    text = TranslatedFile(tmp_path, 3, 0, 0, 1, 2, ()).summary()
    assert text == f"{tmp_path}: 3 texts translated, 1 by the memory, 2 with a similar text of it."


def test_a_file_is_read_in_its_languages(tmp_path):
    path = tmp_path / "a.tmx"
    path.write_text(memory(tuv("en", "Cat") + tuv("de-CH", "")), encoding="utf-8")
    assert [segment.text for segment in read_file(path, ("en", "de")).segments] == ["Cat"]
    path = tmp_path / "a.po"
    path.write_text(PO, encoding="utf-8")
    assert len(read_file(path, ("en", "de-AT")).segments) == 4
    assert len(read_file(path, ()).segments) == 4
    with pytest.raises(CorpusError, match=r"a\.po: to de, and the model translates from en to fr"):
        read_file(path, ("en", "fr"))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [("a.md", b"", "a.md: empty file"), ("a.po", b"x\n", "a.po:1: not a line"), ("a.pdf", b"x", "format not supported"),
        ("none.md", None, "none.md: no such file"), ("", None, "is a folder")],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_clear_error(tmp_path, name, data, message):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(CorpusError, match=message):
        read_file(tmp_path / name, ("en", "de"))


def test_a_file_beyond_the_limit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("glassformer.tasks.files.MAX_DOCUMENT_BYTES", 3)
    (tmp_path / "a.md").write_bytes(b"abcd")
    with pytest.raises(CorpusError, match=r"a\.md: more than 3 bytes"):
        read_file(tmp_path / "a.md", ())


def test_a_new_file_is_written_with_its_folders_and_none_is_overwritten(tmp_path):
    path = tmp_path / "x" / "y" / "a.md"
    write_new(path, b"new")
    assert path.read_bytes() == b"new"
    with pytest.raises(UserError, match=r"a\.md: exists already, and is not overwritten"):
        write_new(path, b"other")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["a.md"]


def test_a_file_that_another_program_makes_meanwhile_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    fsync = os.fsync

    def late(number):
        fsync(number)
        path.write_bytes(b"other")

    monkeypatch.setattr("glassformer.tasks.files.os.fsync", late)
    with pytest.raises(UserError, match="exists already"):
        write_new(path, b"new")
    assert path.read_bytes() == b"other"
    assert os.listdir(tmp_path) == ["a.md"]


def test_a_file_that_cannot_be_written_completely_is_not_there(tmp_path, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("glassformer.tasks.files.os.fsync", full)
    with pytest.raises(UserError, match=r"a\.md: cannot be written \(No space left on device\)"):
        write_new(tmp_path / "a.md", b"new")
    assert os.listdir(tmp_path) == []


def test_a_folder_in_the_way_is_an_error(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(UserError, match="cannot be made a folder"):
        write_new(tmp_path / "x" / "a.md", b"new")


def test_files_of_folders_are_written_under_their_paths(tmp_path):
    for name in ("in/b/c.md", "in/a.PO", "in/x.pdf", "d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    out = tmp_path / "out"
    found = outputs([tmp_path / "in", tmp_path / "d.md"], out, FORMATS)
    assert found == [
        (tmp_path / "in/a.PO", out / "a.PO"),
        (tmp_path / "in/b/c.md", out / "b/c.md"),
        (tmp_path / "d.md", out / "d.md"),
    ]


def test_what_an_earlier_run_wrote_into_a_folder_of_the_input_is_no_input(tmp_path):
    for name in ("docs/a.md", "docs/fr/a.md", "docs/fr/.bulk/chunks/a.md/0.md", "docs/france/b.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    docs = tmp_path / "docs"
    for supported in (FORMATS, None):
        found = outputs([docs], docs / "fr", supported)
        assert found == [(docs / "a.md", docs / "fr/a.md"), (docs / "france/b.md", docs / "fr/france/b.md")]
    assert (docs / "a.md", docs / "a.md") in outputs([docs], docs, FORMATS)  # and is refused, as it exists


def test_hidden_files_and_those_in_hidden_folders_of_a_folder_are_no_input(tmp_path):
    folder = tmp_path / ".in"  # itself hidden, and named
    for name in ("a.md", ".b.md", ".ipynb_checkpoints/a-checkpoint.md", "x/.git/c.md", "x/.bulk/chunks/a.md/0.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    for supported in (FORMATS, None):
        assert outputs([folder], tmp_path / "out", supported) == [(folder / "a.md", tmp_path / "out/a.md")]


def test_two_files_of_one_name_and_a_folder_without_files_are_refused(tmp_path):
    for name in ("a/x.md", "b/x.md", "c/x.pdf"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(UserError, match=re.escape(f"{tmp_path}/b/x.md and {tmp_path}/a/x.md: would both be")):
        outputs([tmp_path / "a/x.md", tmp_path / "b/x.md"], tmp_path / "out", FORMATS)
    with pytest.raises(UserError, match="c: a folder without files that can be translated"):
        outputs([tmp_path / "c"], tmp_path / "out", FORMATS)
