"""Training pairs with codes."""

import re
from itertools import islice

import numpy as np
import pytest

from glassformer.corpora.bilingual import Counts, read_entries
from glassformer.corpora.example import Example
from glassformer.documents.codes import ALONE, CLOSE, OPEN
from glassformer.errors import ConfigError
from glassformer.learning import translation as module
from glassformer.learning.inline_codes import COPIED, copied_word, with_code
from glassformer.learning.lexicon import Lexicon
from glassformer.learning.translation import TranslationObjective
from glassformer.models.transformer import TransformerConfig
from glassformer.tasks.translation import Translator
from glassformer.tokens.codes import CODE, CODE_TOKENS, code_ids
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig

PAIRS = [
    (f"the {adjective} {noun} saw {name}", f"{name} fut vu par le {nom} {adjectif}")
    for adjective, adjectif in (("red", "rouge"), ("black", "noir"), ("big", "grand"))
    for noun, nom in (("cat", "chat"), ("dog", "chien"), ("bird", "oiseau"))
    for name in ("Anna", "%s")
] * 3
LEXICON = Lexicon(PAIRS)


def made(n: int = 300) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Pairs, and what is made of them."""
    rng = np.random.default_rng(1)
    found = ((pair, with_code(pair, LEXICON, rng)) for pair in PAIRS * 20)
    return [(pair, result) for pair, result in islice(found, n) if result]


def test_both_sides_have_the_same_code_once():
    kinds = set()
    for pair, result in made():
        codes = [CODE.findall(text) for text in result]
        assert codes[0] == codes[1]
        assert codes[0] in ([ALONE], [OPEN, CLOSE])
        kinds.add(tuple(codes[0]))
        if codes[0] == [OPEN, CLOSE]:
            assert tuple(CODE.sub("", text) for text in result) == pair
    assert len(kinds) == 2


def test_a_code_alone_is_instead_of_a_word_of_both_sides():
    for pair, result in made():
        if ALONE in result[0]:
            word = next(name for name in ("Anna", "%s") if name in pair[0])
            assert tuple(text.replace(ALONE, word) for text in result) == pair


def test_tags_are_around_words_that_translate_each_other():
    inside = {
        tuple(re.search(f"{OPEN}(.*){CLOSE}", text)[1] for text in result) for _, result in made() if OPEN in result[0]
    }
    assert {("red cat", "chat rouge"), ("black", "noir")} <= inside
    meaning = {adjective: adjectif for (_, adjective, *_), (*_, adjectif) in (map(str.split, pair) for pair in PAIRS)}
    for src, tgt in inside:
        assert {meaning[word] for word in src.split() if word in meaning} == {
            word for word in tgt.split() if word in meaning.values()
        }


@pytest.mark.parametrize(
    ("pair", "word"),
    [
        (("see (Anna), now", "voir «Anna» !"), "Anna"), (("Anna Anna", "Anna x"), None), (("Anna", "Anna"), None),
        (("a ``x`` b", "u ``x``."), "``x``"), (("a b", "c d"), None), (("a , b", "c , d"), None),
    ],
)  # fmt: skip
def test_the_word_that_both_sides_have(pair, word):
    spans = copied_word(pair, np.random.default_rng(0))
    assert [text[slice(*span)] for text, span in zip(pair, spans or (), strict=False)] == ([word] * 2 if word else [])


@pytest.mark.slow
def test_the_time_of_the_pattern_is_bounded():
    assert COPIED.findall("(" * 20_000) == []
    assert len(COPIED.findall("a," * 20_000)) == 1


def test_a_part_of_a_code_gets_no_tags():
    pair = ("use :func:`cat` here", "utilisez :func:`chat` ici")
    lexicon = Lexicon([("cat", "chat"), ("here", "ici")] * 9)
    rng = np.random.default_rng(1)
    found = {with_code(pair, lexicon, rng) for _ in range(60)} - {None}
    assert all("`cat`" in src and "`chat`" in tgt for src, tgt in found)
    assert any(f"{OPEN}here{CLOSE}" in src for src, _ in found)


def test_a_pair_that_has_such_a_character_stays():
    assert with_code((f"a {ALONE}", "a"), LEXICON, np.random.default_rng(0)) is None


def objective(tokens=CODE_TOKENS, **options) -> TranslationObjective:
    tokenizer = Tokenizer.train([text for pair in PAIRS for text in pair], vocab_size=300, extra_special_tokens=tokens)
    ids = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1,
        max_len=64, **ids,
    )  # fmt: skip
    found = TranslationObjective(Translator.build(config, tokenizer))
    found.configure(TrainConfig(src=("a.en",), tgt=("a.fr",), out="run", **options))
    return found


def test_some_pairs_are_used_a_second_time_with_a_code_of_one_token():
    examples = [Example(src, tgt, "a.en", n) for n, (src, tgt) in enumerate(PAIRS)]
    logged, made_by = [], objective(inline_codes=True)
    found = list(made_by.extended(iter(examples), lambda: iter(examples), logged.append))
    with_codes = [example for example in found if CODE.search(example.src)]
    assert [example for example in found if not CODE.search(example.src)] == examples
    assert 0 < len(with_codes) < len(examples) / 2
    assert logged == [f"Inline codes: {len(with_codes)} pairs are used with a code as well."]
    assert found == list(made_by.extended(iter(examples), lambda: iter(examples), logged.append))
    rows, _ = made_by.encode(with_codes)
    codes = set(code_ids(made_by.tokenizer).values())
    for src, tgt in rows:
        assert [token for token in src if token in codes] == [token for token in tgt if token in codes] != []
    assert list(objective().extended(iter(examples), lambda: iter(examples), logged.append)) == examples


def test_a_model_without_the_tokens_cannot_be_trained_with_codes():
    with pytest.raises(ConfigError, match="--inline-codes: the model of --init-from was not trained with them"):
        objective(tokens=(), inline_codes=True)


BOLD = '<bpt i="1">&lt;b&gt;</bpt>{}<ept i="1">&lt;/b&gt;</ept>'
UNITS = [
    (f"Press {BOLD.format('Save')}.", f"Appuyez sur {BOLD.format('Enregistrer')}."),
    ('A<ph x="1">{0}</ph> B', 'B <ph x="1">{0}</ph>A'),
    (f"Only {BOLD.format('here')}", "Seulement ici"),
    ("plain", "simple"),
    (f"a \ue000 {BOLD.format('b')}", f"a \ue000 {BOLD.format('b')}"),
]
MARKED = [
    (f"Press {OPEN}Save{CLOSE}.", f"Appuyez sur {OPEN}Enregistrer{CLOSE}."),
    (f"A{ALONE} B", f"B {ALONE}A"),
    *[None] * 3,
]


def memory(path):
    rows = "".join(
        f'<tu><tuv xml:lang="en"><seg>{src}</seg></tuv><tuv xml:lang="fr"><seg>{tgt}</seg></tuv></tu>'
        for src, tgt in UNITS
    )
    path.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{rows}</body></tmx>', encoding="utf-8")


def xliff(path):
    coded = [[re.sub(r"<bpt.*?</bpt>(.*)<ept.*?</ept>", r'<g id="1">\1</g>', text) for text in pair] for pair in UNITS]
    rows = "".join(
        f'<trans-unit id="{i}"><source>{src}</source><target>{tgt}</target></trans-unit>'
        for i, (src, tgt) in enumerate(coded)
    )
    file = f'<file source-language="en" target-language="fr" original="a" datatype="html"><body>{rows}</body></file>'
    path.write_text(f'<xliff version="1.2">{file}</xliff>', encoding="utf-8")


@pytest.mark.parametrize(("write", "format"), [(memory, "tmx"), (xliff, "xliff")])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_the_codes_of_a_file_are_used_if_both_sides_have_them(tmp_path, write, format, is_swapped):
    path = tmp_path / f"file.{format}"
    write(path)
    languages = ("fr", "en") if is_swapped else ("en", "fr")
    examples = list(read_entries(path, format, languages, fuzzy=False, skip_bad=False, counts=Counts()))
    wanted = [pair and pair[::-1] if is_swapped else pair for pair in MARKED]
    assert [example.marked for example in examples] == wanted
    assert [CODE.search(example.src) for example in examples[:4]] == [None] * 4
    logged = []
    made_by = objective(inline_codes=True)
    found = list(made_by.extended(iter(examples), lambda: iter(examples), logged.append))
    assert [(example.src, example.tgt) for example in found if example.marked][1::2] == [*filter(None, wanted)]
    assert logged[0].endswith(", and 2 with those of their files.")
    assert list(objective().extended(iter(examples), lambda: iter(examples), logged.append)) == examples


def test_pairs_that_are_too_long_are_not_aligned(monkeypatch):
    tokenizer = Tokenizer.train([text for pair in PAIRS for text in pair], vocab_size=300)
    sizes = TransformerConfig(vocab_size=tokenizer.vocab_size, d_model=8, n_heads=2, d_ff=8, max_len=40)
    objective = TranslationObjective(Translator.build(sizes, tokenizer))
    long = Example(" ".join(f"a{i}" for i in range(50)), "b", "f", 1)
    examples = [long, *(Example(*pair, "f", 1) for pair in PAIRS)]
    aligned = []
    monkeypatch.setattr(module, "Lexicon", lambda pairs, tokenizer: aligned.append(pairs) or Lexicon(pairs))
    monkeypatch.setattr(module, "with_code", lambda pair, *_: aligned.append([pair]))
    monkeypatch.setattr(module, "CODE_FRACTION", 1.0)
    found = list(objective.with_codes(iter(examples), lambda: iter(examples), lambda message: None))
    assert found == examples
    assert len(aligned) == 1 + len(PAIRS)
    assert all(long.src not in pair for pairs in aligned for pair in pairs)


def test_tags_are_around_words_of_a_script_without_spaces():
    words = {"cat": "猫", "dog": "いぬ", "bird": "ことり", "sees": "みる", "eats": "たべる", "loves": "好き"}
    nouns, verbs = list(words)[:3], list(words)[3:]
    pairs = [(f"{a} {v} {b}", words[a] + words[b] + words[v]) for a in nouns for v in verbs for b in nouns if a != b]
    tokenizer = Tokenizer.train([text for pair in pairs + list(words.items()) * 9 for text in pair], vocab_size=310)
    lexicon, rng = Lexicon(pairs * 3, tokenizer), np.random.default_rng(0)
    assert set(words.items()) <= lexicon.pairs
    found = [made for pair in pairs * 5 if (made := with_code(pair, lexicon, rng))]
    inside = [tuple(re.search(f"{OPEN}(.*){CLOSE}", text)[1] for text in pair) for pair in found]
    assert {src for src, _ in inside} >= set(words)
    assert all(
        "".join(sorted(words[word] for word in src.split())) == "".join(sorted(split(tgt, words)))
        for src, tgt in inside
    )
    assert Lexicon(pairs * 3, tokenizer).phrase_pair("cat", "猫", rng) == ("cat", "猫")


def split(text, words):
    """The translations that a text consists of."""
    return re.findall("|".join(words.values()), text)


def test_a_word_that_both_sides_have_beside_letters_of_a_script_without_spaces():
    spans = copied_word(("open README now", "README文件を開く"), np.random.default_rng(0))
    assert spans == ((5, 11), (0, 6))
