"""Translation memories: an equal text is not translated anew; of a similar text, the translation is repaired."""

import json
import os
import random
from dataclasses import replace

import pytest

from glassformer.corpora.memory import Match
from glassformer.data.dataset import IDS, Dataset
from glassformer.decode_config import DecodeConfig
from glassformer.documents.words import unit_spans
from glassformer.errors import ConfigError, CorpusError
from glassformer.models.transformer import TransformerConfig
from glassformer.tasks import repair
from glassformer.tasks.confidence import N_FEATURES, Confidence
from glassformer.tasks.memories import memory_of, read_memory, training_text
from glassformer.tasks.repair import repaired
from glassformer.tasks.translated import record_of
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from tests.documents.test_tmx import memory, tuv

TEXTS = ["the cat sat on the mat", "die Katze saß auf der Matte", "a dog came", "1. ein Hund kam %s"] * 9
TMX = memory(
    tuv("en", "the cat sat on the mat") + tuv("de", "die Katze saß auf der Matte"),
    tuv("en", "a dog came") + tuv("de", "ein Hund %s kam"),
    tuv("en", "cats") + tuv("de", "Katzen", ' creationid="MT!"'),
)


def translator(*, max_len: int = 64) -> Translator:
    tokenizer = Tokenizer.train(TEXTS, vocab_size=300)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=32, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1,
        max_len=max_len, pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
    )  # fmt: skip
    task = Translator.build(config, tokenizer)
    task.languages = ("en", "de")
    return task


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "memory.tmx"
    path.write_text(TMX)
    return path


def test_an_equal_text_is_not_translated_anew(path):
    (found,), (marked,) = translator().translate(
        [" the cat sat on the mat", "1. a dog came"], memory=[path], align=True, beam=1
    )
    assert found.text == " die Katze saß auf der Matte"
    assert found.match == Match("the cat sat on the mat", "die Katze saß auf der Matte", 1.0)
    assert (found.log_probs, bool(found.alignment)) == ([], True)
    assert marked.text == "1. ein Hund %s kam"


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_training_text_that_the_tokens_do_not_have_is_refused(tmp_path, kind):
    tokenizer = Tokenizer.train(TEXTS, vocab_size=300, kind=kind, lowercase=kind == "wordpiece")
    for name, content in tokenizer.files().items():
        (tmp_path / name).write_text(content)
    row = (tokenizer.encode("A cat"), tokenizer.encode("Die Katze saß"))
    Dataset.write(tmp_path / "data" / "train", [row], {"src": IDS, "tgt": IDS}, tokenizer.vocab_size)
    (tmp_path / "data" / "dev.jsonl").write_text(json.dumps({"src": "A cat", "tgt": "Die Katze saß"}) + "\n")
    if kind == "bpe":
        assert list(training_text(tmp_path)) == [("A cat", "Die Katze saß")]
    else:
        with pytest.raises(ConfigError, match="2 of 2 texts of its dev set differ"):
            list(training_text(tmp_path))


@pytest.mark.parametrize("options", [{"ban": ("Hund",)}, {"prefix": "der"}])
def test_a_translation_of_the_memory_that_may_not_be_is_not_used(path, options):
    found = translator().translate(["a dog came"], memory=[path], max_length=6, **options)[0][0]
    assert found.text != "ein Hund %s kam"


def test_terms_that_the_translation_of_the_memory_lacks_are_reported(path, tmp_path):
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("dog\tKöter\n")
    (found,) = translator().translate(["a dog came"], memory=[path], glossary=glossary)
    assert (found[0].text, found[0].missing) == ("ein Hund %s kam", ("Köter",))


def test_the_least_similarity_needs_a_memory():
    with pytest.raises(ConfigError, match="min_match: has no effect without a memory"):
        translator().translate(["a dog came"], min_match=0.5)


def test_a_changed_memory_is_read_again(path):
    task = translator()
    assert task("a dog came", memory=[path]) == "ein Hund %s kam"
    path.write_text(TMX.replace("ein Hund", "der Hund"))
    assert task("a dog came", memory=[path]) == "der Hund %s kam"


def test_tables_folders_and_the_text_of_a_training_are_memories(path, tmp_path):
    (tmp_path / "pairs.tsv").write_text("a bird\tein Vogel\n")
    paths = (path.parent, tmp_path / "pairs.tsv")
    assert read_memory(paths, (), ("en", "de")).translations.keys() == {
        "the cat sat on the mat",
        "a dog came",
        "a bird",
    }


NAME_ANOTHER = "\n  Name a memory of the languages of the model, or a table with the columns source and target."


def test_a_table_in_the_other_order_is_read_in_the_direction_of_the_model(tmp_path):
    (tmp_path / "a.csv").write_text("de,en\nb,a\n")
    assert read_memory((tmp_path / "a.csv",), (0.0,), ("en", "de")).exact("a").target == "b"


def test_files_without_translations_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(ConfigError, match=r"--memory .*a.txt: has no translations"):
        translator().translate(["a"], memory=[tmp_path / "a.txt"])
    (tmp_path / "a.tmx").write_text(memory(tuv("en", "a")))
    with pytest.raises(ConfigError, match=r"a.tmx: no text with a translation from en to de"):
        translator().translate(["a"], memory=[tmp_path / "a.tmx"])
    (tmp_path / "c.po").write_text("nothing\n")
    with pytest.raises(CorpusError, match=r"c\.po:1: not a line of a gettext catalogue") as found:
        translator().translate(["a"], memory=[tmp_path / "c.po"])
    assert "--skip-bad" not in str(found.value)
    (tmp_path / "d.tmx").write_text(memory(tuv("en", "a") + tuv("de", "b") + tuv("fr", "c")))
    with pytest.raises(CorpusError, match="texts in 3 languages") as found:
        read_memory((tmp_path / "d.tmx",), (0.0,), ())
    assert str(found.value).endswith(NAME_ANOTHER)
    assert "--" not in str(found.value)
    for text in ("fr,en\na,b\n", "id,x,y\n1,a,b\n"):
        (tmp_path / "e.csv").write_text(text)
        with pytest.raises(CorpusError) as found:
            translator().translate(["a"], memory=[tmp_path / "e.csv"])
        assert str(found.value).endswith(NAME_ANOTHER)
        assert "--" not in str(found.value)
    with pytest.raises(CorpusError, match="no such file"):
        translator().translate(["a"], memory=[tmp_path / "b.tmx"])


LINKS = [(0, 0), (1, 1), (2, 2), (3, 3)]
"""Each word is aligned to that at its position."""


@pytest.mark.parametrize(
    ("source", "output", "links", "match", "of_match", "expected"),
    [
        # a word, two words for one, a word less, a word more
        ("a b c", "u v w", LINKS, ("a x c", "p q r"), LINKS, "p v r"),
        ("a b c", "u v1 v2 w", [(0, 0), (1, 1), (1, 2), (2, 3)], ("a x c", "p q r"), LINKS, "p v1 v2 r"),
        ("a c", "u w", LINKS, ("a x c", "p q r"), LINKS, "p r"),
        ("a b c", "u v w", LINKS, ("a c", "p r"), LINKS, "p v r"),
        ("b a", "v u", LINKS, ("a", "p"), LINKS, "v p"),
        # another order of words
        ("a b c", "w u v", [(0, 1), (1, 2), (2, 0)], ("a b x", "q p r"), [(0, 1), (1, 2), (2, 0)], "w p r"),
        # names and codes are replaced wherever they are
        ("use :f:`x` now", "jetzt :f:`x` so", [], ("use :f:`y` now", "nun :f:`y`: so"), [], "nun :f:`x`: so"),
        # nothing is known of what differs
        ("a b c", "u v w", [(0, 0), (2, 2)], ("a x c", "p q r"), LINKS, None),
        ("a b c", "u v w", LINKS, ("a x c", "p q r"), [(0, 0)], None),
        # the words of another part are between its words
        ("a b c", "u v w", LINKS, ("a x c", "p q r"), [(0, 1), (1, 0), (1, 2)], None),
        ("a b c", "u v w", LINKS, ("a c", "r p"), [(0, 1), (1, 0)], None),
        ("{a}", "{a}", LINKS, ("a", "a"), LINKS, "{a}"),
        # the punctuation of what is replaced stays
        ("a b.", "u. v.", LINKS, ("a x!", "p (q)!"), LINKS, "p (v)!"),
        ("a b?", "u v ?", [(0, 0), (1, 1), (1, 2)], ("a x?", "p q ?"), [(0, 0), (1, 1), (1, 2)], "p v ?"),
        ("a b c", "u v, w", LINKS, ("a c", "p. r"), LINKS, "p v. r"),
        ("a b c", "u v w", LINKS, ("a c", "p) r"), LINKS, None),
        ("a", "u", LINKS, ("a b.", "p q."), LINKS, None),
        ("a b", "u ?", LINKS, ("a x", "p q"), LINKS, None),
        ("a - c", "u - w", LINKS, ("a c", "p r"), LINKS, "p - r"),
        ("a ! c", "u ! w", LINKS, ("a c", "p r"), LINKS, None),
        ("a b", "u v", LINKS, ("a x", "p ?"), LINKS, None),
        # letters of scripts without spaces
        ("open door", "門を開く", [(1, 0), (0, 2)], ("open it", "窓をあけて。"), [(1, 0), (0, 2)], "門をあけて。"),
        ("see door", "ドアを見る", [(1, 0), (0, 2)], ("see it", "窓を見て"), [(1, 0), (0, 2)], "ドアを見て"),
        ("go to A B", "A Bへ行", [(2, 0), (3, 1), (0, 3)], ("go to it", "家へ"), [(2, 0), (0, 1)], "A Bへ"),
    ],
)  # fmt: skip
def test_what_differs_is_replaced(source, output, links, match, of_match, expected):
    n = [len(unit_spans(text)) for text in (source, output, *match)]
    links = [(s, t) for s, t in links if s < n[0] and t < n[1]]
    of_match = [(s, t) for s, t in of_match if s < n[2] and t < n[3]]
    assert repaired(source, output, links, Match(*match, 0.8), of_match) == expected


@pytest.mark.parametrize("seed", range(300))
def test_any_texts_and_links_are_repaired_or_not(seed):
    rng = random.Random(seed)
    words = ["a", "b.", "(c", "d)", "?", ",", "e", "猫", "が。", "f,"]
    texts = [" ".join(rng.choices(words, k=rng.randrange(6))) for _ in range(4)]
    n = [len(unit_spans(text)) for text in texts]
    links, of_match = ([(rng.randrange(s), rng.randrange(t)) for _ in range(5) if s and t] for s, t in (n[:2], n[2:]))
    found = repaired(texts[0], texts[1], links, Match(texts[2], texts[3], 0.8), of_match)
    assert found is None or set(found.replace(" ", "")) <= set("".join(texts[1:]).replace(" ", ""))


def test_a_similar_text_is_used_if_the_model_does_not_say_it_already(path, monkeypatch):
    task = translator()
    monkeypatch.setattr(repair, "repaired", lambda *_: "die Katze saß auf einer Matte")
    plain, used = (
        task.translate(["the cat sat on a mat"], memory=each, max_length=5, beam=1)[0] for each in ((), (path,))
    )
    assert (plain[0].match, used[0].text) == (None, "die Katze saß auf einer Matte")
    assert used[0].match.similarity == pytest.approx(5 / 6)
    assert (plain[0].is_truncated, used[0].is_truncated) == (True, False)
    assert used[0].log_probs == task.score(["the cat sat on a mat"], [used[0].text])[0]
    assert used[0].tokens == [task.tokenizer.token(i) for i in used[0].ids]
    assert record_of(used)["match"]["source"] == "the cat sat on the mat"
    assert json.loads(json.dumps(record_of(used))) == record_of(used)
    task.confidence = Confidence((0.0,) * N_FEATURES, (1.0,) * N_FEATURES, (0.0,) * N_FEATURES + (-3.0,), 1)
    (sure,) = task.translate(["the cat sat on a mat"], memory=[path], max_length=5, beam=1, confidence=True)[0]
    assert [(word, p == pytest.approx(5 / 6)) for word, p in sure.words] == [
        (word, word != "einer") for word in ["die", "Katze", "saß", "auf", "einer", "Matte"]
    ]
    for options in ({"min_match": 0.9}, {"ban": ("einer",)}, {"prefix": "der"}):
        (best,) = task.translate(["the cat sat on a mat"], memory=[path], max_length=5, beam=1, **options)[0]
        assert not (best.match and best.match.used)
    monkeypatch.setattr(repair, "MIN_SURPRISE", 1e9)
    (unused,) = task.translate(["the cat sat on a mat"], memory=[path], max_length=5, beam=1)[0]
    assert unused == replace(plain[0], match=replace(used[0].match, used=False))
    assert record_of([unused])["match"]["used"] is False


def test_a_similar_text_without_protected_spans(path, monkeypatch):
    seen = []
    monkeypatch.setattr(repair, "repaired", lambda *given: seen.append(given) or "ein Hund kam heute")
    ((found,),) = translator().translate(
        ["a dog %d came now"], memory=[path], min_match=0.5, max_length=5, protect=["placeholders"]
    )
    assert (seen[0][0], seen[0][3].target) == ("a dog came now", "ein Hund kam")
    assert found.text.replace(" %d", "") == "ein Hund kam heute"
    assert "%d" in found.text
    assert (found.match.target, found.match.used) == ("ein Hund %s kam", True)


def test_a_repaired_text_that_lacks_a_term_is_not_used(path, tmp_path, monkeypatch):
    monkeypatch.setattr(repair, "repaired", lambda *_: "ein Hund kam heute")
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("dog\tKöter\n")
    (found,) = translator().translate(["a dog came now"], memory=[path], glossary=glossary, max_length=5)
    assert "Köter" in found[0].text


def test_a_text_that_is_too_long_keeps_its_translation(path, monkeypatch):
    monkeypatch.setattr(repair, "repaired", lambda *_: "ein " * 40)
    (found,) = translator(max_len=32).translate(["a dog came now"], memory=[path], max_length=5)
    assert not found[0].match.used


def test_an_equal_text_in_capitals_keeps_its_translation(tmp_path):
    path = tmp_path / "memory.tsv"
    path.write_text("en\tde\nUSB\tUSB-Anschluss\nWARNING\tWarnung\na dog\tein Hund\n")
    wanted = {"USB": "USB-Anschluss", "WARNING": "Warnung", "a dog": "ein Hund"}
    for (found,), target in zip(translator().translate([*wanted], memory=(path,)), wanted.values(), strict=True):
        assert (found.text, found.recased) == (target, False)


def test_white_space_of_a_repaired_text_stays():
    match = Match("the blue house ?", "la maison bleue\u00a0?", 0.8)
    links = [(0, 0), (1, 2), (2, 1), (3, 3)]
    assert repaired("the red house ?", "la maison rouge ?", links, match, links) == "la maison rouge\u00a0?"


def test_a_repair_that_is_the_output_uses_nothing_of_the_memory(path, monkeypatch):
    task = translator()
    monkeypatch.setattr(repair, "MIN_SURPRISE", -1.0)
    match = Match("the cat sat on the rug", "x", 0.8)
    ((output,),) = task.translate(["a dog came"])
    monkeypatch.setattr(repair, "repaired", lambda *arguments: output.text)
    (found,) = repair.from_similar(task, [("a dog came", output, match)], DecodeConfig(), None)
    assert not found.match.used


def test_a_folder_is_read_again_when_a_file_in_it_has_changed(path, tmp_path):
    folder = tmp_path / "memories" / "more"
    folder.mkdir(parents=True)
    (folder / "a.tmx").write_text(memory(tuv("en", "a dog came") + tuv("de", "ein Hund kam")))
    options = DecodeConfig(memory=(tmp_path / "memories",))
    task = translator()
    assert memory_of(task, options) is (first := memory_of(task, options))
    os.utime(folder / "a.tmx", (1, 1))
    assert memory_of(task, options) is not first
    (folder / "a.tmx").write_text(memory(tuv("en", "a dog came") + tuv("de", "ein Hund ist da")))
    assert first.exact("a dog came").target == "ein Hund kam"
    assert memory_of(task, options).exact("a dog came").target == "ein Hund ist da"
    (folder / "b.tmx").write_text(memory(tuv("en", "a cat") + tuv("de", "eine Katze")))
    assert len(memory_of(task, options)) == 2
