import math
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glassformer.errors import ConfigError
from glassformer.tokens.wordpiece import BERT_SPECIALS, count_words, train_wordpiece, wordpiece_tokenizer

UNLIMITED = 10**6  # larger than any vocabulary: training ends when no merge increases the likelihood
PLAIN = {"lowercase": False, "strip_accents": False}
TEXTS = [
    "the black cat sat on the couch , and the brown dog slept on the rug .",
    "Le chat noir était assis sur le canapé ; le chien marron dormait sur le tapis .",
    "unaffable unable affable table stable able",
]
quick = settings(max_examples=200)


def log_likelihood(words, counts):
    """Log-likelihood of segmented words; the probability of a token is its relative frequency."""
    tokens = Counter()
    for cut, count in zip(words, counts, strict=True):
        for token in cut:
            tokens[token] += count
    return math.fsum(c * math.log(c / tokens.total()) for c in tokens.values())


def merge(cut, left, right):
    merged, i = [], 0
    while i < len(cut):
        both = cut[i : i + 2] == [left, right]
        merged.append(left + right.removeprefix("##") if both else cut[i])
        i += 2 if both else 1
    return merged


def characters(word):
    return [word[0], *("##" + character for character in word[1:])]


def merges_by_trial(word_counts, n_merges, min_gain=0.0):
    """Tokens in order of merging, with their gains, by trying every pair on the whole corpus."""
    words, counts = [characters(word) for word in word_counts], list(word_counts.values())
    found = []
    while len(found) < n_merges:
        before = log_likelihood(words, counts)
        gains = {
            pair: log_likelihood([merge(cut, *pair) for cut in words], counts) - before
            for pair in {pair for cut in words for pair in pairwise(cut)}
        }
        best = max(gains.values(), default=-math.inf)
        equal = 1e-11 * (1 - before)
        if not gains or best < min_gain - equal:
            break
        left, right = min(pair for pair, gain in gains.items() if gain >= best - equal)
        words = [merge(cut, left, right) for cut in words]
        found.append((left + right.removeprefix("##"), best))
    return found


def merged_tokens(word_counts, **options):
    vocab = train_wordpiece(word_counts, UNLIMITED, special_tokens=[], **options)
    return [token for token in vocab if len(token.removeprefix("##")) > 1]


def random_words(rng, n_words, letters, max_length):
    return {
        "".join(rng.choices(letters, k=rng.randint(1, max_length))): rng.choice((1, 1, 2, 3, 5, 17, 101))
        for _ in range(n_words)
    }


WORD_COUNTS = st.dictionaries(st.text("ab", min_size=1, max_size=7), st.integers(1, 23), min_size=1, max_size=11)


@given(WORD_COUNTS)
@example({"aaaa": 1})
@example({"aaaaaaa": 5, "aa": 3, "baaa": 2})
@quick
def test_merges_equal_those_of_brute_force_with_two_letters(word_counts):
    expected = [token for token, _ in merges_by_trial(word_counts, UNLIMITED)]
    assert merged_tokens(word_counts) == expected


@pytest.mark.parametrize("seed", range(5))
def test_merges_equal_those_of_brute_force_with_many_letters(seed):
    word_counts = random_words(random.Random(seed), 43, "aaaabbbccdefg", 11)
    expected = [token for token, _ in merges_by_trial(word_counts, 61)]
    assert merged_tokens(word_counts)[: len(expected)] == expected


def test_the_gain_is_not_the_frequency():
    # "ab" is the most frequent pair, but not more frequent than expected by chance; "q" never occurs without "u".
    word_counts = {"ab": 30, "aa": 30, "bb": 30, "ba": 30, "cab": 5, "qu": 20}
    pairs = Counter()
    for word, count in word_counts.items():
        for pair in pairwise(characters(word)):
            pairs[pair] += count
    assert max(pairs, key=pairs.__getitem__) == ("a", "##b")
    assert merged_tokens(word_counts)[0] == "qu"


def test_the_gain_is_not_the_frequency_over_the_product_of_frequencies():
    word_counts = {"qu": 97, "xz": 1, "a": 53, "b": 31}
    pairs = {("q", "##u"): 97 / 97**2, ("x", "##z"): 1 / 1}
    assert max(pairs, key=pairs.__getitem__) == ("x", "##z")
    assert merged_tokens(word_counts)[0] == "qu"


def test_a_merge_that_lowers_the_likelihood_is_not_made():
    word_counts = {"bbbb": 5, "b": 1}
    assert merges_by_trial(word_counts, 1, min_gain=-math.inf)[0][1] < 0
    assert merged_tokens(word_counts) == []


def test_no_merge_gains_less_than_the_threshold():
    word_counts = random_words(random.Random(7), 31, "abcde", 7)
    gains = [gain for _, gain in merges_by_trial(word_counts, UNLIMITED)]
    threshold = gains[len(gains) // 2]
    expected = [token for token, _ in merges_by_trial(word_counts, UNLIMITED, min_gain=threshold)]
    assert 0 < len(expected) < len(gains)
    assert merged_tokens(word_counts, min_gain=threshold) == expected


@pytest.mark.parametrize("words", ["xy xd cy cd", "cy cd", "xd cd"])
def test_among_equal_gains_the_pair_first_by_code_points_is_merged(words):
    assert merged_tokens(dict.fromkeys(words.split(), 3))[0] == "cd"


def test_gains_that_differ_only_by_rounding_are_equal():
    # b 25 -> 4 and ##b 46 -> 25, or ##b 46 -> 4: the same except for 25 log 25, subtracted and added again.
    assert merged_tokens({"baaab": 4, "bbba": 21})[0] == "##bb"


@given(WORD_COUNTS)
@quick
def test_no_token_is_created_twice(word_counts):
    tokens = merged_tokens(word_counts, min_gain=-math.inf)
    assert len(tokens) == len(set(tokens))


@pytest.mark.parametrize("vocab_size", [67, 71, 83])
def test_the_vocabulary_has_the_requested_size(vocab_size):
    assert len(train_wordpiece(count_words(TEXTS, **PLAIN), vocab_size)) == vocab_size


def test_a_smaller_vocabulary_is_a_prefix_of_a_larger_one():
    word_counts = count_words(TEXTS, **PLAIN)
    assert train_wordpiece(word_counts, 83)[:67] == train_wordpiece(word_counts, 67)


def test_the_vocabulary_is_special_tokens_then_characters_then_merges():
    vocab = train_wordpiece({"ba": 5, "c": 2}, 9, special_tokens=["<x>", "<y>"])
    assert vocab == ["<x>", "<y>", "a", "b", "c", "##a", "##b", "ba"]


def test_a_vocabulary_too_small_for_the_characters_is_refused():
    with pytest.raises(ConfigError, match="2 special tokens and 5 single characters are needed"):
        train_wordpiece({"ba": 5, "c": 2}, 6, special_tokens=["<x>", "<y>"])


@pytest.mark.parametrize("word_counts", [{"": 1}, {"a": 0}, {"##a": 1}, {"<x>a": 1}], ids=str)
def test_words_that_cannot_be_counted_are_refused(word_counts):
    with pytest.raises(ValueError, match="count"):
        train_wordpiece(word_counts, 97, special_tokens=["<x>"])


def test_the_rarest_characters_are_left_out():
    assert train_wordpiece({"ab": 5, "cd": 4, "abe": 3}, 97, special_tokens=[], max_characters=4) == [
        *"abcd", "##a", "##b", "##c", "##d", "ab", "cd",
    ]  # fmt: skip


def test_words_too_long_to_encode_are_ignored_in_training():
    assert merged_tokens({"ab" * 51: 7}) == []


def test_the_order_of_the_counts_changes_nothing():
    words = [*random_words(random.Random(11), 211, "abcdefgh", 11).items()]
    shuffled = random.Random(3).sample(words, len(words))
    assert merged_tokens(dict(shuffled)) == merged_tokens(dict(words))


def test_the_best_pair_is_found_among_thousands():
    letters = [chr(0x1200 + i) for i in range(293)]
    word_counts = {"qu": 10**6, **random_words(random.Random(13), 1009, letters, 17)}
    vocab = train_wordpiece(word_counts, 701)
    assert next(token for token in vocab[len(BERT_SPECIALS) :] if len(token.removeprefix("##")) > 1) == "qu"


def test_no_words_give_the_special_tokens_alone():
    assert train_wordpiece({}, 97) == list(BERT_SPECIALS)


@pytest.fixture(scope="module")
def vocab():
    return train_wordpiece(count_words(TEXTS, **PLAIN), 97)


@pytest.fixture(scope="module")
def tokenizer(vocab):
    return wordpiece_tokenizer(vocab, **PLAIN)


def tokenize(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).tokens


def longest_first(word, vocab):
    tokens, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            token = ("##" if start else "") + word[start:end]
            if token in vocab:
                break
        else:
            return ["[UNK]"]
        tokens.append(token)
        start = end
    return tokens


@given(st.text([*sorted(set("unaffable table stable") - {" "}), "x"], min_size=1, max_size=13))
@quick
def test_the_longest_unit_matches_first(tokenizer, vocab, word):
    assert tokenize(tokenizer, word) == longest_first(word, vocab)


LETTERS = sorted({letter for word in count_words(TEXTS, **PLAIN) if len(word) > 1 for letter in word})


@given(st.text(LETTERS, min_size=1, max_size=23))
@quick
def test_a_word_of_known_letters_is_decoded_to_itself(tokenizer, word):
    assert tokenizer.decode(tokenizer.encode(word).ids) == word


def test_training_and_encoding_split_text_into_the_same_words():
    tokenizer = wordpiece_tokenizer(BERT_SPECIALS, lowercase=True, strip_accents=True)
    text = "L'Été,\x00 no\u00a0end…\u200b don't 猫が [SEP] ¿É\u0301h?\ud800"
    seen = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text.replace("\ud800", "")))
    assert count_words([text], lowercase=True, strip_accents=True) == Counter(word for word, _ in seen)


def test_cjk_characters_are_separate_words():
    assert count_words(["abc猫犬def 한국"], **PLAIN) == Counter(["abc", "猫", "犬", "def", "한국"])


def test_characters_that_only_occur_as_words_have_no_continuation():
    vocab = train_wordpiece(count_words(["猫犬, ab"], **PLAIN), 97, special_tokens=[])
    assert vocab == [",", "a", "b", "犬", "猫", "##a", "##b", "ab"]


@pytest.mark.parametrize(
    ("lowercase", "strip_accents", "expected"),
    [(False, False, "É"), (True, False, "é"), (False, True, "E"), (True, True, "e")],
)
def test_case_and_accents_are_removed_on_request(lowercase, strip_accents, expected):
    options = {"lowercase": lowercase, "strip_accents": strip_accents}
    tokenizer = wordpiece_tokenizer([*BERT_SPECIALS, "É", "é", "E", "e"], **options)
    assert (tokenize(tokenizer, "É"), [*count_words(["É"], **options)]) == ([expected], [expected])


def test_an_encoded_text_is_between_cls_and_sep(tokenizer):
    assert tokenizer.encode("sat on").tokens == ["[CLS]", *tokenize(tokenizer, "sat on"), "[SEP]"]


def test_the_second_text_and_its_sep_have_type_1():
    encoding = wordpiece_tokenizer([*BERT_SPECIALS, "a", "b", "c"], **PLAIN).encode("a b", "c")
    assert encoding.tokens == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"]
    assert encoding.type_ids == [0, 0, 0, 0, 1, 1]


def test_ids_are_indices_into_the_vocabulary(tokenizer, vocab):
    assert [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())] == vocab


def test_decoding_can_skip_special_tokens(tokenizer):
    ids = [tokenizer.token_to_id(token) for token in BERT_SPECIALS]
    assert tokenizer.decode([*ids, *tokenizer.encode("sat").ids]) == "sat"


@pytest.mark.parametrize("vocab", [[*BERT_SPECIALS[1:], "a"], [*BERT_SPECIALS, "a", "a"]], ids=("missing", "twice"))
def test_a_vocabulary_with_a_missing_special_token_or_a_duplicate_is_refused(vocab):
    with pytest.raises(ValueError, match="missing special tokens"):
        wordpiece_tokenizer(vocab, **PLAIN)
