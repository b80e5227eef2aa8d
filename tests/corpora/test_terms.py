"""Glossaries, and patterns of protected spans."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.corpora.terms import (
    MAX_WINDOW,
    PATTERNS,
    Glossary,
    Required,
    Term,
    checked_pattern,
    matches,
    protect_pattern,
    unmet,
)
from glassformer.errors import ConfigError, CorpusError
from tests.documents.test_tbx import VERSION2


def spans(text, *protect):
    return [text[a:b] for a, b in matches(protect_pattern(protect or ("all",)), text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Click {count} of %d items, %(name)s and ${x}", ["{count}", "%d", "%(name)s", "${x}"]),
        ("$t(messages) in $t(box, {'n': {{n}}}) of $t (x)", ["$t(messages)", "$t(box, {'n': {{n}}})", "$t"]),
        ("{{ user }} {0} $HOME %1$s %@ %%", ["{{ user }}", "{0}", "$HOME", "%1$s", "%@"]),
        ("%1$.2f %1$lld %zu %,d %n Total %1$,d", ["%1$.2f", "%1$lld", "%zu", "%,d", "%n", "%1$,d"]),
        (
            "%{count} #{name} {0, number} {d,date,short} {1, 2} {a b}",
            ["%{count}", "#{name}", "{0, number}", "{d,date,short}"],
        ),
        ("<b>bold</b> &amp; <br/> a < b > c &#39;", ["<b>", "</b>", "&amp;", "<br/>", "&#39;"]),
        (
            "AT&amp;T, R&amp;D-Team, A&amp;B&amp;C, cats&amp;dogs, xR&amp;D",
            ["AT&amp;T", "R&amp;D", "A&amp;B&amp;C", "&amp;", "&amp;"],
        ),
        ("see https://a.org/x?y=1, or mail a.b@c.de.", ["https://a.org/x?y=1", "a.b@c.de"]),
        ("a 5 km run at 3.5 GHz and 10 % of 7€, 12 men", ["5 km", "3.5 GHz", "10 %", "7€"]),
        ("100% sure, 5 o'clock, Route 66", ["100%"]),
        ("详情见https://a.b/c，谢谢。请联系info@a.com谢谢 $HOME目录", ["https://a.b/c", "info@a.com", "$HOME"]),
        ("“http://a.b/c” is down, https://a.b/c—and Https://A.B", ["http://a.b/c", "https://a.b/c", "Https://A.B"]),
        (
            "https://a.org/Dog_(animal) (see https://a.org/x) WWW.A.B.",
            ["https://a.org/Dog_(animal)", "https://a.org/x", "WWW.A.B"],
        ),
        ("共%d个文件 %s件の %1$s的文件 %s까지 %1개 50%después", ["%d", "%s", "%1$s", "%s", "%1"]),
        ("10 000 km, 1 234 567,89 €, 1'000 km, 5 km以内", ["10 000 km", "1 234 567,89 €", "1'000 km", "5 km"]),
        ("gọi 3 lần, 5 tấn, 10 gửi, 5 kg이다, %dửa, $größe, In 1990, 500 km", ["5 kg", "$größe", "500 km"]),
        ("5 m/s and 3 kWh/m², 60 km/h, 5 m/x", ["5 m/s", "3 kWh/m²", "60 km/h", "5 m"]),
        ("", []),
    ],
)
def test_default_patterns(text, expected):
    assert spans(text) == expected


def test_names_and_regular_expressions_are_joined():
    assert spans("Photoshop CC opens <b>x</b> {y}", "tags", r"Photo\w+(?: CC)?") == ["Photoshop CC", "<b>", "</b>"]
    assert protect_pattern(()) is None


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("(", "not a regular expression"),
        ("a*", "matches the empty text"),
        (r"\b", "matches the empty text"),
        ("(a+)+", "too long"),
        ("(?:a|bc)*d", "too long"),
        (".*a.*b.*c.*d", "too long"),
        ("(?i)x", "sets flags"),
        (r"(x)\1", "refers to a group"),
    ],
)
def test_unsuitable_patterns_are_refused(pattern, what):
    with pytest.raises(ConfigError, match=f"--protect .*{what}"):
        checked_pattern(pattern)


@pytest.mark.parametrize("name", PATTERNS)
@given(text=st.text(alphabet="{}%<>/&;:@.a0 -$(s", max_size=60))
def test_default_patterns_pass_the_check_of_time_by_being_bounded(name, text):
    assert all(0 <= a < b <= len(text) for a, b in matches(re.compile(PATTERNS[name]), text))


@pytest.mark.parametrize("unit", ["{", "<a ", "1,", "a@", "http://", "a.-", "&a", "%("])
def test_long_hostile_texts_take_linear_time(unit):
    start = time.perf_counter()
    list(matches(protect_pattern(("all",)), unit * (300_000 // len(unit))))
    assert time.perf_counter() - start < 20  # 0.1 s here; without bounds, hours


def test_matches_are_found_beyond_the_window():
    text = "word " * MAX_WINDOW + "{x}"
    assert spans(text) == ["{x}"]


def glossary(**terms):
    return Glossary(Term(tuple(a.split("|")), tuple(b.split("|"))) for a, b in terms.items())


def found(text, terms):
    return [(text[r.start : r.end], r.targets) for r in Glossary(terms).find(text)]


def test_of_overlapping_terms_the_first_and_longest_is_found():
    terms = [
        Term(("fire",), ("Feuer",)),
        Term(("fire truck", "fire trucks"), ("Feuerwehrauto",)),
        Term(("truck",), ("Lkw",)),
    ]
    assert found("A fire truck, a truck and firemen", terms) == [
        ("fire truck", ("Feuerwehrauto",)),
        ("truck", ("Lkw",)),
    ]


def test_lower_case_stands_for_any_case():
    terms = [Term(("dog",), ("Hund",)), Term(("US",), ("USA",))]
    assert [a for a, _ in found("Dog DOG us US", terms)] == ["Dog", "DOG", "US"]


def test_rows_of_one_term_are_joined():
    assert found("a dog", [Term(("dog",), ("Hund",)), Term(("dog",), ("Hündin",))]) == [("dog", ("Hund", "Hündin"))]


def test_a_term_must_occur_as_whole_word_and_as_often():
    required = list(glossary(dog="Hund|Hunde").find("dog and dog"))
    assert unmet(required, "Hund und Hunde") == []
    assert unmet(required, "Ein Hund und eine Hundehütte") == required[1:]
    assert unmet(list(glossary(big="groß").find("big")), "Groß!") == []


def test_a_glossary_file(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("# comment\ndog|dogs\tHund | Hunde\n\nred car\trotes Auto\n", encoding="utf-8")
    assert [r.targets for r in Glossary.read(path).find("Dogs in a red car")] == [("Hund", "Hunde"), ("rotes Auto",)]


def test_bad_rows_of_a_glossary_are_named(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\ncat Katze\na\tb\tc\n|x\ty\n\t\n")
    with pytest.raises(
        CorpusError, match=r"(?s)line 2: 1 columns instead.*line 3: 3 columns instead.*line 4: an empty form"
    ):
        Glossary.read(path)
    path.write_text("# nothing\n")
    with pytest.raises(CorpusError, match="without terms"):
        Glossary.read(path)
    with pytest.raises(CorpusError, match="no such file"):
        Glossary.read(tmp_path / "missing.tsv")


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("en,fr\ncat,chat|chats\n", ("en", "fr")), ("fr,en\nchat|chats,cat\n", ("en", "fr")),
        ("id;fr-FR;en-GB;note\n1;chat|chats;cat;\n", ("en", "fr")), ("source,target\ncat,chat|chats\n", ("en", "fr")),
        ("source;target\ncat;chat|chats\n", ()), ("note,src,tgt\nx,cat,chat|chats\n", ()),
        ('cat,"chat|chats"\n', ("en", "fr")), ("en\tfr\ncat\tchat|chats\n", ("en", "fr")),
        ("fr\ten\nchat|chats\tcat\n", ("en", "fr")),
        ("\ufeffEnglish,French\ncat,chat|chats\n", ()), ("French,English\nchat|chats,cat\n", ("en", "fr")),
        ("English,French\ncat,chat|chats\n", ("en", "fr")),
    ],
)  # fmt: skip
def test_a_glossary_in_a_table(tmp_path, text, languages):
    path = tmp_path / ("terms.tsv" if "\t" in text else "terms.csv")
    path.write_text(text, encoding="utf-8")
    assert Glossary.read(path, languages).terms == (Term(("cat",), ("chat", "chats")),)


@pytest.mark.parametrize(
    ("text", "languages", "message"),
    [
        ("id,en,de\n1,cat,Katze\n", ("en", "fr"), "by the languages en and fr, or source and target"),
        ("1,cat,chat\n2,dog,chien\n", ("en", "fr"), "the columns of source and target are not known"),
        ("en,fr\ncat,chat,x\n", ("en", "fr"), "terms.csv:2"), ("en,fr\ncat,\n", ("en", "fr"), "line 2: an empty form"),
        ("en,fr\n", ("en", "fr"), "a glossary without terms"),
        ("en\tde\ncat\tKatze\n", ("en", "fr"), "by the languages en and fr, or source and target"),
    ],
)  # fmt: skip
def test_a_table_that_is_no_glossary(tmp_path, text, languages, message):
    path = tmp_path / ("terms.tsv" if "\t" in text else "terms.csv")
    path.write_text(text, encoding="utf-8")
    with pytest.raises((ConfigError, CorpusError), match=message):
        Glossary.read(path, languages)


def test_a_glossary_in_tbx_needs_languages(tmp_path):
    path = tmp_path / "terms.tbx"
    path.write_text(VERSION2)
    assert Glossary.read(path, ("en", "fr")).terms == (Term(("hard drive", "disk"), ("disque dur",)),)
    with pytest.raises(ConfigError, match="of which languages"):
        Glossary.read(path)


@pytest.mark.parametrize(
    ("term", "text", "n"),
    [
        ("猫", "这只猫睡了。", 1), ("人工智能", "我喜欢人工智能。", 1), ("ความรัก", "ฉันชอบความรักมาก", 1),
        ("カー", "カードとカー", 1), ("カード", "このカードは", 1), ("cat", "这只cat睡了", 1),
        ("कम", "पानी की कमी है", 0), ("मत", "इसकी कीमत ज्यादा है", 0), ("मत", "यह मत है", 1),
        ("resume", "resume\u0301 it, resume it", 1), ("café", "le café noir", 1), ("a", "á a b", 1),
        ("ก", "กี", 0), ("中", "中国的中", 2),
    ],
)  # fmt: skip
def test_terms_of_all_scripts_are_whole_words(term, text, n):
    assert len(found(text, [Term((term,), ("x",))])) == n
    required = Required(0, 1, (term,))
    assert len(unmet([required] * 3, text)) == 3 - n


@pytest.mark.parametrize("n", range(940, 1002, 7))
def test_a_match_at_the_end_of_a_window_is_whole(n):
    tag = '<a href="http://a.b/c" title="some title here" class="c">'
    text = "x" * (n // 2) + " " + "y" * (n - n // 2) + tag + "link</a> " + "word " * 300 + "{name}"
    assert spans(text) == [tag, "</a>", "{name}"]
    assert spans("文" * n + "{name}" + "文" * n) == ["{name}"]


def test_what_is_before_a_window_is_seen():
    assert spans("a" * (MAX_WINDOW // 2) + "5 kg, " + "b " * MAX_WINDOW) == []


@pytest.mark.parametrize(
    ("terms", "source", "output", "n_unmet"),
    [
        ({"dog": "Hund|der Hund"}, "The dog and the dog", "Der Hund läuft.", 1),
        ({"dog": "Hund|der Hund"}, "The dog and the dog", "Der Hund und ein Hund", 0),
        ({"server": "Server", "mail server": "Mail Server"}, "The server and the mail server", "Der Mail Server", 1),
        (
            {"server": "Server", "mail server": "Mail Server"},
            "The server and the mail server",
            "Server, Mail Server",
            0,
        ),
        ({"server": "Server", "mail server": "Mail Server"}, "server, mail server", "Mail Server, Mail Server", 0),
        ({"dog": "Hund", "hound": "Hund"}, "a dog and a hound", "ein Hund", 1),
        ({"car": "Wagen", "vehicle": "Auto|Wagen"}, "the car and the vehicle", "der Wagen und das Auto", 0),
        ({"dog": "Hund", "hound": "Hund"}, "a dog and a hound", "ein Hund und ein Hund", 0),
    ],
)
def test_a_place_is_that_of_one_term(terms, source, output, n_unmet):
    assert len(unmet(list(glossary(**terms).find(source)), output)) == n_unmet


@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("machine learning", "We like machine\u00a0learning."), ("machine\u00a0learning", "We like machine learning."),
        ("don't", "We don’t."), ("l’eau", "l'eau"), ("e-mail", "an e\u2011mail"),
    ],
)  # fmt: skip
def test_terms_are_found_in_other_typography(term, text):
    assert len(list(glossary(**{term: "x y"}).find(text))) == 1
    assert not unmet([Required(0, 1, ("l'été",))], "de l’été")
