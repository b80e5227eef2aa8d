"""corpora.doctor with translation memories, XLIFF and gettext catalogues."""

from pathlib import Path

import pytest

from glassformer.corpora.corpus import read_pairs
from glassformer.corpora.doctor.diagnosis import diagnose
from glassformer.corpora.doctor.repair import repair_corpus
from glassformer.errors import ConfigError, CorpusError
from tests.documents.test_po import HEADER
from tests.documents.test_tmx import memory, tuv
from tests.documents.test_xliff import file, unit

N = 40
CLEAN = [(f"The dog number {i} sees the old house.", f"Der Hund Nummer {i} sieht das alte Haus.") for i in range(N)]
BAD = [
    ("A copy of a text", "A copy of a text"),
    ("The cafÃ© is here", "Das Café ist hier"),
    CLEAN[3],
    ("Long text in this language", "x"),
]


def tmx(pairs) -> str:
    return memory(*(tuv("en", src) + tuv("de", tgt) for src, tgt in pairs))


def xliff(pairs) -> str:
    return file(*(unit(src, tgt) for src, tgt in pairs))


def po(pairs) -> str:
    return HEADER + "\n".join(f'msgid "{src}"\nmsgstr "{tgt}"\n' for src, tgt in pairs)


MAKERS = {"a.tmx": tmx, "a.xlf": xliff, "a.po": po}
made = pytest.mark.parametrize("name", MAKERS)


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


@made
def test_a_clean_file_has_no_findings(tmp_path, name):
    result = diagnose([write(tmp_path / name, MAKERS[name]([*CLEAN, ("Open the window", "")]))])
    assert (result.n_pairs, result.counts, result.has_errors) == (N, {}, False)


@made
def test_each_issue_is_found_at_its_line(tmp_path, name):
    text = MAKERS[name]([*CLEAN, *BAD])
    result = diagnose([write(tmp_path / name, text)])
    assert result.n_pairs == N + len(BAD)
    found = {finding.kind: finding.line for finding in result.findings}
    assert {"copy", "mojibake", "duplicate", "length-ratio"} <= {*found}
    assert {finding.path for finding in result.findings} == {str(tmp_path / name)}
    if name == "a.tmx":
        assert (found["copy"], found["mojibake"]) == (N + 1, N + 2)
    else:
        assert "A copy" in text.split("\n")[found["copy"] - 1]
        assert "cafÃ©" in text.split("\n")[found["mojibake"] - 1]


@made
def test_a_repaired_file_is_a_memory_without_issues(tmp_path, name):
    path = write(tmp_path / name, MAKERS[name]([*CLEAN, *BAD]))
    result = repair_corpus([path], [], tmp_path / "out", languages=("en", "de") if name == "a.po" else ())
    assert (result.n_pairs, result.n_kept) == (N + len(BAD), N + 1)
    assert result.repaired == {"mojibake": 1}
    target = tmp_path / "out" / "a.tmx"
    assert target in result.files
    assert diagnose([target]).counts == {}
    found = [(pair.src, pair.tgt) for pair in read_pairs([target])]
    assert found == [*CLEAN, ("The café is here", "Das Café ist hier")]
    assert list(read_pairs([target], languages=("de", "en")))
    dropped = (tmp_path / "out" / "dropped.tsv").read_text(encoding="utf-8")
    assert [line.split("\t")[2].split(",")[0] for line in dropped.splitlines()[1:]] == [
        "copy",
        "duplicate",
        "length-ratio",
    ]
    assert path.read_text(encoding="utf-8") == MAKERS[name]([*CLEAN, *BAD])


@pytest.mark.parametrize(
    ("name", "languages", "expected"),
    [("a.tmx", (), ["en", "de"]), ("a.xlf", (), ["en-US", "de"]),
        ("a.po", ("en", "de"), ["en", "de"]), ("a.xlf", ("de", "en"), ["de", "en"])],
)  # fmt: skip
def test_the_memory_names_the_languages(tmp_path, name, languages, expected):
    path = write(tmp_path / name, MAKERS[name](CLEAN))
    repair_corpus([path], [], tmp_path / "out", languages=languages)
    text = (tmp_path / "out" / "a.tmx").read_text(encoding="utf-8")
    assert f'srclang="{expected[0]}"' in text
    first = text[text.index("<tu>") : text.index("</tu>")]
    sides = CLEAN[0][:: -1 if languages == ("de", "en") else 1]
    assert first == "<tu>" + "".join(tuv(code, side) for code, side in zip(expected, sides, strict=True))


@pytest.mark.parametrize("header", [HEADER, HEADER.replace("Language: de", "X: y")])
def test_a_catalogue_does_not_name_its_source_language(tmp_path, header):
    path = write(tmp_path / "a.po", po(CLEAN).replace(HEADER, header))
    with pytest.raises(ConfigError, match=r"a\.po: of which languages\? .*\n.* --languages en fr"):
        repair_corpus([path], [], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_pair_of_a_held_out_file_is_dropped(tmp_path):
    path = write(tmp_path / "a.tmx", tmx(CLEAN))
    held_out = write(tmp_path / "dev.po", po(CLEAN[:2]))
    assert diagnose([path], held_out={"dev": ([held_out], [])}).counts["overlap-pair"] == 2
    assert repair_corpus([path], [], tmp_path / "out", held_out={"dev": ([held_out], [])}).n_kept == N - 2


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.tmx", tmx(CLEAN)[:-60]), ("a.xlf", xliff(CLEAN)[:-60]), ("a.po", po(CLEAN) + "msgid bad\n")],
)
def test_a_file_that_cannot_be_read_to_its_end_is_a_finding_and_not_repaired(tmp_path, name, content):
    path = write(tmp_path / name, content)
    result = diagnose([path])
    assert result.counts["unreadable"] == 1
    assert result.has_errors
    with pytest.raises(CorpusError, match=name):
        repair_corpus([path], [], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_files_that_would_be_one_memory_are_refused(tmp_path):
    paths = [write(tmp_path / "a.po", po(CLEAN)), write(tmp_path / "a.xlf", xliff(CLEAN))]
    with pytest.raises(CorpusError, match="two files would have one name there"):
        repair_corpus(paths, [], tmp_path / "out")


def test_files_of_a_folder_keep_their_paths_in_it(tmp_path):
    names = [Path("a/LC_MESSAGES/x.po"), Path("b/LC_MESSAGES/x.po")]
    for n, name in enumerate(names):
        (tmp_path / name).parent.mkdir(parents=True)
        write(tmp_path / name, po(CLEAN[n::2]))
    result = repair_corpus(
        [tmp_path / name for name in names],
        [],
        tmp_path / "out",
        languages=("en", "de"),
        names={tmp_path / name: name for name in names},
    )
    written = [tmp_path / "out" / name.with_suffix(".tmx") for name in names]
    assert result.files == [*written, tmp_path / "out" / "dropped.tsv"]
    assert [[pair.src for pair in read_pairs([path])] for path in written] == [
        [src for src, _ in CLEAN[n::2]] for n in range(2)
    ]


def test_only_files_of_one_name_are_named_before_any_is_read(tmp_path):
    (tmp_path / "b").mkdir()
    paths = [tmp_path / name for name in ("a.po", "x.po", "b/x.po")]
    for path in paths:
        write(path, "no catalogue")
    with pytest.raises(CorpusError, match="one name there") as caught:
        repair_corpus(paths, [], tmp_path / "out")
    assert f"x.tmx ({paths[1]}, {paths[2]})" in str(caught.value)
    assert "a.tmx" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "what"), [(["x.zip"], "an archive"), (["a.properties", "b.properties"], "a catalogue of one language")]
)
def test_archives_and_catalogues_of_one_language_are_refused(tmp_path, names, what):
    paths = [write(tmp_path / name, "a=b\n") for name in names]
    with pytest.raises(ConfigError, match=f"{what}, which is not examined"):
        diagnose(paths[:1], paths[1:])


def test_characters_that_xml_does_not_have_are_not_written(tmp_path):
    path = write(tmp_path / "a.po", po([*CLEAN, ("A bell \\a here", "Eine Glocke \\a hier")]))
    repair_corpus([path], [], tmp_path / "out", languages=("en", "de"))
    assert [pair.src for pair in read_pairs([tmp_path / "out" / "a.tmx"])][-1].split() == ["A", "bell", "here"]
