"""Translation of texts that are longer than the maximum length."""

import pytest
import regex

from glassformer.decode_config import DecodeConfig
from glassformer.generate.rules import search_rules
from glassformer.generate.search import beam_search
from glassformer.models.decoding import decodable
from glassformer.models.transformer import TransformerConfig
from glassformer.tasks import splitting
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer

MAX_LEN = 23
TEXTS = ["The cat slept. The dog ran! Did it? Yes.", "one two three four five six seven"]


def translator_of(max_len: int) -> Translator:
    tokenizer = Tokenizer.train(TEXTS * 5, vocab_size=300)
    sizes = dict(d_model=8, n_heads=2, d_ff=11, n_encoder_layers=1, n_decoder_layers=1, max_len=max_len)
    return Translator.build(TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes), tokenizer)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return translator_of(MAX_LEN)


def split(translator: Translator, text: str) -> tuple[list[str], list[str]]:
    warnings: list[str] = []
    parts = splitting.split(text, translator.tokenizer, MAX_LEN - 1, warnings.append)
    return [translator.tokenizer.decode(ids) for _, ids in parts], warnings


def test_a_text_that_fits_is_one_part_without_a_warning(translator):
    assert split(translator, TEXTS[1]) == ([TEXTS[1]], [])


def test_a_long_text_is_split_at_sentence_ends(translator):
    text = " ".join(["The cat slept. The dog ran!"] * 7)
    parts, warnings = split(translator, text)
    assert " ".join(parts) == text
    assert all(part[-1] in ".!" for part in parts)
    assert all(len(translator.tokenizer.encode(part)) < MAX_LEN for part in parts)
    assert "split at sentence ends" in warnings[0]


def test_a_long_sentence_is_split_between_words_with_a_warning(translator):
    text = " ".join([TEXTS[1]] * 5)
    parts, warnings = split(translator, text)
    assert " ".join(parts) == text
    assert "split within a sentence" in warnings[0]


def test_a_word_longer_than_the_maximum_length_is_split_without_loss(translator):
    text = "z" * (3 * MAX_LEN)
    parts, warnings = split(translator, text)
    assert "".join(parts) == text
    assert "split within a sentence" in warnings[0]


@pytest.mark.parametrize("length", [MAX_LEN - 4, MAX_LEN - 3, MAX_LEN - 2])
def test_a_source_of_maximum_length_is_translated_in_one_part(translator, length):
    """The result equals that of a search with all tokens of the source."""
    warnings = []
    options = DecodeConfig(beam=1, max_length=3)
    ((result,),) = translator.translate(["z" * length], options, warn=lambda *warning: warnings.append(warning))
    t = translator.tokenizer
    src = [*t.encode("z" * length), t.eos_id]
    assert len(src) == length + 2  # a word begins with a space
    ((expected,),) = beam_search(
        decodable(translator.model),
        [src],
        [3],
        eos_id=t.eos_id,
        rules=search_rules((t.pad_id, t.bos_id)),
        beam=1,
    )
    assert result.tokens == [t.token(i) for i in expected.ids]
    assert result.log_probs == pytest.approx(expected.log_probs, rel=1e-5)
    assert not warnings


def test_a_source_one_token_longer_is_translated_in_parts_with_a_warning(translator):
    warnings = []
    options = DecodeConfig(beam=1, max_length=3)
    translator.translate(["a", "z" * (MAX_LEN - 1)], options, warn=lambda *warning: warnings.append(warning))
    ((index, message),) = warnings
    assert index == 1
    assert "translated in 2 parts" in message


def test_a_blank_text_comes_back(translator):
    assert translator(["", "  ", "\u3000"]) == ["", "  ", "\u3000"]


@pytest.mark.parametrize("options", [{}, {"protect": ("placeholders",)}, {"align": True}, {"nbest": 2}])
def test_white_space_around_a_text_and_between_its_parts_is_kept(translator, options):
    sentences = ["z" * 14 + ".", "y" * 14 + "!", "x" * 14 + "."]  # no two of them fit into a part
    spaces = [" ", "\t \t", "  ", "\u00a0 "]
    text = "".join(space + sentence for space, sentence in zip(spaces, sentences, strict=False)) + spaces[-1]
    options = DecodeConfig(beam=2, max_length=3, no_repeat_ngram_size=0, **options)
    outputs = translator.translate(sentences, options)
    ((best, *_),) = translator.translate([text], options)
    assert best.text == "".join(s + o[0].text for s, o in zip(spaces, outputs, strict=False)) + spaces[-1]
    assert best.source == text


SENTENCES = ["The cat.", "Dr. A ran!", "Did it?", "Yes.", "No."]


@pytest.mark.parametrize(("n", "sizes"), [(0, [5]), (1, [1] * 5), (2, [2, 2, 1]), (4, [4, 1]), (5, [5]), (9, [5])])
def test_a_text_is_translated_some_sentences_at_a_time(n, sizes):
    translator = translator_of(99)
    translator.sentences_at_once = (str(n),) if n else ()
    text, encoded = "  ".join(SENTENCES), translator.tokenizer.encode
    parts = splitting.split(text, translator.tokenizer, 98, pytest.fail, translator.n_sentences)
    own = ["  ".join(SENTENCES[sum(sizes[:i]) : sum(sizes[: i + 1])]) for i in range(len(sizes))]
    assert parts == [("  " if i else "", encoded(part)) for i, part in enumerate(own)]
    ((best, *_),) = translator.translate([text], options := DecodeConfig(beam=1))
    assert best.text == "  ".join(o[0].text for o in translator.translate(own, options))


def test_sentences_are_translated_one_by_one_unless_those_of_the_training_have_other_numbers():
    two, three = "One. Two.", "One. Two. Three."
    assert splitting.sentences_at_once([(two, two)] * 8 + [(two, "Both.")] * 2) == 1
    assert splitting.sentences_at_once([("One.", two)] * 90 + [(two, "Both.")] * 8 + [(three, "All.")] * 2) == 2
    assert splitting.sentences_at_once([("no end", "none"), ("", "")]) == splitting.sentences_at_once([]) == 1


def test_sentences_without_white_space_between_them_are_separated(translator):
    outputs = translator.translate(sentences := ["z" * 14 + "。", "y" * 14 + "。"], options := DecodeConfig(beam=1))
    ((best, *_),) = translator.translate(["".join(sentences)], options)
    assert best.text == " ".join(o[0].text for o in outputs)


def test_output_contains_no_newline(translator):
    assert "\n" not in "".join(best[0].text for best in translator.translate(["a b", "c\nd"]))


@pytest.mark.parametrize(("text", "end"), [("है। " * 9, "।"), ("أنت؟ " * 9, "؟"), ("「猫は寝た。」" * 9, "」")])
def test_sentences_of_other_scripts_end_with_their_marks(translator, text, end):
    parts, warnings = split(translator, text.strip())
    assert len(parts) > 1
    assert all(part.strip().endswith(end) for part in parts)
    assert "split at sentence ends" in warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        "驫龖靐" * 30,
        "👩‍🚀🎉" * 20,
        "猫が、" + "寝た" * 30,
        "è" * 90,
        "e\u0301a" * 90,
        "กำเปิ้ล" * 20,
        "ကျွန်ုပ်" * 9,
        "か\u3099葛\U000e0101" * 20,
    ],
)
def test_a_sentence_without_spaces_is_not_cut_within_a_letter(translator, text):
    parts, _ = split(translator, text)
    assert "".join(parts) == text
    assert not any("\ufffd" in part for part in parts)
    assert [letter for part in parts for letter in regex.findall(r"\X", part)] == regex.findall(r"\X", text)
    assert not any(part.endswith("เ") for part in parts)


def test_a_sentence_without_spaces_is_cut_after_a_clause(translator):
    text = ("ab" * 4 + "，") * 9
    parts, _ = split(translator, text)
    assert "".join(parts) == text
    assert all(part.endswith("，") for part in parts)
