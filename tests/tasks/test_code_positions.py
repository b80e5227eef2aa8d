"""Where codes belong, with a task whose scores say it."""

from types import SimpleNamespace

import pytest

from glassformer.documents.codes import ALONE, CLOSE, OPEN
from glassformer.documents.inline import detach, put_at, put_back
from glassformer.documents.spans import TAG
from glassformer.tasks import code_positions as module
from glassformer.tasks.code_positions import code_positions, relation
from glassformer.tasks.translated import Translation
from glassformer.tokens.codes import CODE, CODE_TOKENS, code_ids, encode_with_codes
from glassformer.tokens.tokenizer import Tokenizer


class Scorer:
    """A task that finds a code the more probable the nearer it is to where it is known to belong."""

    def __init__(self, *wanted: str, tokens: tuple[str, ...] = CODE_TOKENS):
        self.tokenizer = Tokenizer.train(["the black cat sat der Hund"], kind="char", extra_special_tokens=tokens)
        self.config = SimpleNamespace(max_len=200)
        self.wanted = [self.ids(text) for text in wanted]
        self.sources: list[list[int]] = []

    def ids(self, text: str) -> list[int]:
        return [*encode_with_codes(self.tokenizer, [text])[0], self.tokenizer.eos_id]

    def log_probs(self, sources, targets, source_of, precision):
        self.sources += sources
        return [[-min((distance(ids, wanted) for wanted in self.wanted), default=0)] for ids in targets]

    def recased(self, text: str, side: int = 0) -> str:
        return text.lower()


def distance(first: list[int], second: list[int]) -> float:
    """How far the codes of two texts are from each other; large if the texts differ."""
    codes = [[i for i, token in enumerate(ids) if token in CODES] for ids in (first, second)]
    kinds = [[token for token in ids if token in CODES] for ids in (first, second)]
    if kinds[0] != kinds[1]:
        return 1000.0
    return float(sum(abs(a - b) for a, b in zip(*codes, strict=True)))


CODES = set(code_ids(Scorer().tokenizer).values())


def sentence(text: str):
    return detach(text, [match.span() for match in TAG.finditer(text)])


def result(task: Scorer, source: str, target: str, alignment=()) -> str:
    detached = sentence(source)
    (positions,) = code_positions(
        task, [detached], [Translation(detached.core, target, 0.0, [], [])], [alignment], "fp32"
    )
    return put_at(detached, target, positions)


@pytest.mark.parametrize(
    ("source", "target", "wanted", "expected"),
    [
        ("a <x/> b c d", "u v w z", f"u v w {ALONE} z", "u v w <x/> z"),
        ("a b <x/> c", "u v w", f"{ALONE} u v w", "<x/> u v w"),
        ("a <b>b</b> c d e", "u v w y z", f"u v {OPEN}w y{CLOSE} z", "u v <b>w y</b> z"),
        ("a <b>b c</b> d e f", "u v w x y z", f"u v w x y {OPEN}z{CLOSE}", "u v w x y <b>z</b>"),
        ("a <b>b c</b> d e f", "u v w x y z", f"{OPEN}u{CLOSE} v w x y z", "<b>u</b> v w x y z"),
    ],
)
def test_a_code_is_put_where_the_model_finds_it_most_probable(source, target, wanted, expected):
    assert result(Scorer(wanted), source, target) == expected


def test_a_model_without_the_tokens_is_not_asked():
    task = Scorer("{}", tokens=())
    alignment = [(0, 1), (1, 0)]
    assert result(task, "a <x/> b", "u v", alignment) == put_back(sentence("a <x/> b"), "u v", alignment)
    assert task.sources == []


def test_the_alignment_has_a_say_where_tags_belong():
    task = Scorer(f"{OPEN}u{CLOSE} v w z")
    links = [(0, 0), (1, 2), (2, 3), (3, 1)]
    assert result(task, "a <b>b c</b> d", "u v w z", links) == "u v <b>w z</b>"
    assert result(task, "a <b>b c</b> d", "u v w z") != "u v <b>w z</b>"
    assert result(Scorer(f"{ALONE} u v w z"), "a <x/> b c d", "u v w z", links) == "<x/> u v w z"


def test_the_source_has_one_code_at_a_time():
    task = Scorer()
    result(task, "a <b>b <x/> c</b> d", "u v w z")
    assert [task.ids(f"a {OPEN}b c{CLOSE} d"), task.ids(f"a b {ALONE} c d")] == [
        each for i, each in enumerate(task.sources) if each not in task.sources[:i]
    ]


def test_pairs_that_are_beside_each_other_stay_so():
    found = result(Scorer(f"u {OPEN}v{CLOSE} w z"), "a <b>b</b> <i>c</i> d", "u v w z")
    assert found in ("u <b>v</b> <i>w</i> z", "<i>u</i> <b>v</b> w z")


def test_an_untranslated_text_and_one_without_words():
    detached = sentence("a <x/> b c")
    translation = Translation("a b c", "a b c", 0.0, [], [], is_untranslated=True)
    task = Scorer()
    (positions,) = code_positions(task, [detached], [translation], [()], "fp32")
    assert (put_at(detached, "a b c", positions), task.sources) == ("a <x/> b c", [])
    assert result(task, "a <x/> b c", "") == " <x/>"


def test_texts_that_are_too_long_keep_the_position_of_the_alignment():
    task = Scorer(f"{ALONE} u v")
    task.config.max_len = 8
    assert result(task, "a <x/> b c d e f", "uuu vvv www", [(0, 0), (1, 1), (2, 2)]) == "uuu <x/> vvv www"


def test_the_case_that_the_model_knows():
    task, detached = Scorer(), sentence("THE <x/> CAT SAT")
    code_positions(task, [detached], [Translation("", "DER HUND", 0.0, [], [], recased=True)], [()], "fp32")
    assert task.sources[0] == task.ids(f"the {ALONE} cat sat")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 2), (2, 3), "beside"), ((3, 4), (0, 2), "beside"), ((1, 2), (0, 3), "within"), ((0, 3), (1, 2), "around"),
        ((0, 2), (1, 3), "crossed"),
    ],
)  # fmt: skip
def test_how_spans_lie(first, second, expected):
    assert relation(first, second) == expected


def test_codes_are_one_token_each_and_texts_do_not_make_them():
    task = Scorer()
    ids = code_ids(task.tokenizer)
    (found,) = encode_with_codes(task.tokenizer, [f"the {OPEN} cat {CLOSE}{ALONE}"])
    plain = task.tokenizer.encode_batch(["the", "cat"])
    assert found == [*plain[0], ids[OPEN], *plain[1], ids[CLOSE], ids[ALONE]]
    assert not CODES & set(task.tokenizer.encode("<x> </x> <x/>"))
    assert CODE.split(f"a{OPEN}b") == ["a", OPEN, "b"]
    no_codes = Tokenizer.train(["a"], kind="char")
    assert encode_with_codes(no_codes, ["a"]) == no_codes.encode_batch(["a"])


def test_the_codes_of_several_sentences(monkeypatch):
    sentences = [sentence(text) for text in ("a <x/> b", "a b", "a <b>b</b> <i>c</i> d", "<x/> a")]
    translations = [Translation(each.core, "u v w z", 0.0, [], []) for each in sentences]
    task = Scorer(f"u v w {ALONE} z", f"u v w {OPEN}z{CLOSE}")
    found = []
    for n in (64, 1):
        monkeypatch.setattr(module, "SENTENCES_TOGETHER", n)
        found.append(code_positions(task, sentences, translations, [()] * 4, "fp32"))
    assert found[0] == found[1]
    assert [len(positions) for positions in found[0]] == [1, 0, 4, 0]
    assert put_at(sentences[0], "u v w z", found[0][0]) == "u v w <x/> z"
