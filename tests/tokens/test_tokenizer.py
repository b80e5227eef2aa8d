import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.errors import UserError
from glassformer.tokens.tokenizer import DEFAULT_SPECIAL_TOKENS, Tokenizer

TEXTS = [
    "the black cat sat on the couch , and the brown dog slept on the rug .",
    "le chat noir était assis sur le canapé et le chien marron dormait sur le tapis .",
    "<s> is not a token here, nor is </s>, nor <pad>",
    "Ωμέγα 猫が寝ている 🐈‍⬛ \u2028 end",
] * 7
KINDS = ("bpe", "unigram")

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # UTF-8 cannot encode lone surrogates
quick = settings(max_examples=200)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request) -> Tokenizer:
    return Tokenizer.train(TEXTS, kind=request.param, vocab_size=311)


@given(text=ANY_TEXT)
@quick
def test_any_text_is_decoded_to_itself(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


TRICKY = {
    "nothing": "", "a space": " ", "leading spaces": "   cat", "trailing spaces": "cat   ", "tabs": "\tcat\t\tdog\t",
    "no-break spaces": "\u00a0cat\u202f!", "line separator": "a\u2028b\u2029c\x85d", "line ends": "a\r\nb\rc\n",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈", "combining": "e\u0301\u0323\u0323", "right to left": "‏שלום‎ abc", "nul": "a\x00b",
    "last code point": "\U0010ffff", "bom": "\ufeffcat", "replacement": "\ufffd", "special": "</s>",
}  # fmt: skip


@pytest.mark.parametrize("text", TRICKY.values(), ids=TRICKY)
def test_unusual_text_is_decoded_to_itself(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_lone_surrogates_are_replaced(tokenizer):
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) in ("a?b", "a\ufffdb")


def test_lone_surrogates_in_one_text_do_not_change_the_others(tokenizer):
    texts = ["a b", "a\ud83d", "\ude00 b", "", "é"]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


@pytest.mark.parametrize("name", DEFAULT_SPECIAL_TOKENS)
def test_names_of_special_tokens_in_a_text_are_encoded_as_text(tokenizer, name):
    ids = tokenizer.encode(f"a {name}{name} b{name}")
    assert not set(ids) & {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    assert tokenizer.decode(ids) == f"a {name}{name} b{name}"


def test_decoding_skips_special_tokens(tokenizer):
    ids = tokenizer.encode("the cat")
    assert tokenizer.decode([tokenizer.bos_id, *ids, tokenizer.eos_id, tokenizer.pad_id]) == "the cat"


def test_ids_are_below_the_vocabulary_size(tokenizer):
    ids = [i for text in (*TEXTS, *TRICKY.values()) for i in tokenizer.encode(text)]
    assert 0 <= min(ids) <= max(ids) < tokenizer.vocab_size


def test_encoding_a_batch_equals_encoding_each_text(tokenizer):
    texts = [*TEXTS, *TRICKY.values()]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


def test_a_frequent_first_word_is_the_same_token_as_elsewhere():
    tokenizer = Tokenizer.train(["cat sees cat"] * 97, vocab_size=290)
    first, *_, last = tokenizer.encode("cat sees cat")
    assert first == last


def test_a_single_word_gets_the_tokens_that_it_has_within_a_text():
    tokenizer = Tokenizer.train(["cat sees cat"] * 97, vocab_size=290, add_prefix_space=False)
    within = tokenizer.encode("sees cat")[len(tokenizer.encode("sees")) :]
    assert tokenizer.encode("cat") != within
    assert tokenizer.for_words().encode_words(["cat"]) == [within]
    assert tokenizer.for_words().decode(within) == "cat"


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_that_needs_no_space_before_a_word_is_kept(kind):
    tokenizer = Tokenizer.train(TEXTS, kind=kind, vocab_size=293)
    assert tokenizer.for_words() is tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_a_trained_vocabulary_does_not_exceed_the_requested_size(kind):
    assert Tokenizer.train(TEXTS, kind=kind, vocab_size=293).vocab_size <= 293


def test_training_again_gives_the_same_tokenizer():
    first, second = (Tokenizer.train(TEXTS, vocab_size=311) for _ in range(2))
    assert first.to_json() == second.to_json()


def test_merges_shorten_the_text():
    short, long = (Tokenizer.train(TEXTS, vocab_size=size) for size in (400, 260))
    assert len(short.encode(TEXTS[0])) < len(long.encode(TEXTS[0]))


def test_json_gives_the_same_ids(tokenizer):
    again = Tokenizer.from_json(tokenizer.to_json())
    texts = [*TEXTS, *TRICKY.values()]
    assert again.encode_batch(texts) == tokenizer.encode_batch(texts)


def test_a_tokenizer_without_a_special_token_is_refused(tokenizer):
    damaged = tokenizer.to_json().replace("</s>", "</t>")
    with pytest.raises(UserError, match="</s>"):
        Tokenizer.from_json(damaged)


def use(text: str) -> None:
    tokenizer = Tokenizer.from_json(text)
    ids = tokenizer.encode("the cat </s> 🐈 sat")
    tokenizer.decode(ids)


def outcome(text: str) -> str:
    """Outcome of loading a damaged tokenizer: it works or raises a UserError. Other exceptions are not caught."""
    try:
        use(text)
    except UserError:
        return "refused"
    return "works"


def test_a_json_with_any_byte_changed_works_or_is_refused(tokenizer):
    data, rng = tokenizer.to_json().encode(), random.Random(5)
    outcomes = []
    for _ in range(211):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 5))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        outcomes.append(outcome(damaged.decode("utf-8", "replace")))
    assert "refused" in outcomes


def test_a_json_cut_off_anywhere_is_refused(tokenizer):
    text, rng = tokenizer.to_json(), random.Random(7)
    assert {outcome(text[: rng.randrange(len(text.rstrip()))]) for _ in range(53)} == {"refused"}


def value_paths(value, path=()):
    """Paths of all values in a JSON value, except those of the vocabulary."""
    yield path
    if isinstance(value, dict):
        for key in [*value][:11]:
            yield from value_paths(value[key], (*path, key))
    elif isinstance(value, list):
        for i in range(min(len(value), 3)):
            yield from value_paths(value[i], (*path, i))


def test_a_json_with_any_value_replaced_or_removed_works_or_is_refused(tokenizer):
    text = tokenizer.to_json()
    for path in [*value_paths(json.loads(text))][1:]:
        for new in (None, -1, 7, 1e300, "", "x", [], {}, [[]], KeyError):
            value = document = json.loads(text)
            for key in path[:-1]:
                value = value[key]
            if new is KeyError:
                del value[path[-1]]
            else:
                value[path[-1]] = new
            outcome(json.dumps(document))


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "word", "char", "byte"])
def test_the_bytes_of_tokens_make_up_the_text(kind):
    texts = ["The cat slept über 中文字 🙂 naïve.", "don't stop now 12"]
    tokenizer = Tokenizer.train(texts * 20, kind=kind, vocab_size=400)
    for text in [*texts, "Ünter 中"]:
        ids = tokenizer.encode(text)
        joined = b"".join(tokenizer.token_bytes[i] for i in ids)
        assert joined.decode().removeprefix(" ") == tokenizer.decode(ids).removeprefix(" ")
    assert tokenizer.token_bytes[tokenizer.eos_id] == b""
