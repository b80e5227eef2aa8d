"""Which answers are not used for training."""

import pytest

from glassformer.synthetic.answers import Answer
from glassformer.synthetic.filters import Filter, Language, typical_ratio

SUBJECTS = ["Der alte Mann", "Eine junge Frau", "Das kleine Kind", "Der schwarze Hund", "Mein bester Freund"]
VERBS = ["sieht", "findet", "verkauft", "zeichnet", "vergisst", "beschreibt", "trägt", "sucht"]
OBJECTS = ["ein rotes Fahrrad", "das große Haus am See", "einen sehr schönen Baum", "die Zeitung von gestern"]
GERMAN = [f"{s} {v} {o} am Morgen." for s in SUBJECTS for v in VERBS for o in OBJECTS]
GERMAN += [f"Gestern {v} {s.lower()} noch {o}, und das jeden Tag." for s in SUBJECTS for v in VERBS for o in OBJECTS]


@pytest.fixture(scope="module")
def language() -> Language:
    return Language(GERMAN)


def reason(source: str, text: str, language: Language | None = None, **answer) -> str:
    return Filter(language, of_chats=True).reason(source, text, Answer((text,), **answer))


def test_usual_translations_are_used(language):
    for text in GERMAN[::7]:
        assert reason("The old man finds a red bicycle in the morning.", text, language) == ""
    assert reason("Hello!", "Hallo!", language) == ""
    assert reason("Berlin", "Berlin", language) == ""


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("A dog.", " ", "empty"),
        ("A dog.", "Ein Hund.\nA dog is an animal.", "more lines than the source"),
        ("A dog runs.", "Sure! Here is the translation: Ein Hund läuft.", "talks about the translation"),
        ("A dog runs.", "Translation: Ein Hund läuft.", "talks about the translation"),
        ("A dog runs.", "I'm sorry, but I cannot do that.", "talks about the translation"),
        ("The old man finds a red bicycle.", "The old man finds a red bicycle.", "equal to the source"),
        ("A dog.", "Ein Hund, " + "der durch den Wald läuft und bellt " * 2, "much longer or shorter than the source"),
        ("word " * 60, "Wort", "much longer or shorter than the source"),
        ("The old man eats a salad.", "Salat Salat Salat Salat.", "repeats itself"),
        ("The old man saw a house.", "Le vieil homme a vu une maison rouge.", "in another language"),
        ("The old man saw a house.", "Старик увидел красный дом у озера", "in another language"),
        ("The old man saw a house.", "The old man has seen a house here.", "in another language"),
    ],
)
def test_others_are_not_used(language, source, text, expected):
    assert reason(source, text, language) == expected


def test_what_the_answer_says_of_itself():
    assert Filter().reason("a", "", Answer()) == "refused by the endpoint"
    assert reason("a", "b", is_truncated=True) == "cut at the maximum length"
    assert Filter(min_score=-1).reason("a", "b", Answer(("b",), score=-1.5)) == "improbable"
    assert Filter(min_score=-1).reason("a", "b", Answer(("b",), score=-0.5)) == ""


def test_a_source_that_talks_like_that_is_translated():
    assert reason("Here is the list: a, b", "Hier ist die Liste: a, b") == ""


def test_few_sentences_do_not_tell_a_language():
    few = Language(GERMAN[:50])
    assert not few.is_known
    assert few.has("This may be anything, of whatever language.")


def test_the_report_has_the_counts_and_the_first_of_each():
    filter_ = Filter()
    used = [filter_.accepts(source, text, Answer((text,))) for source, text in (("a b", ""), ("c", "d"), ("e", ""))]
    assert used == [False, True, False]
    assert filter_.report(3) == "2 of 3 translations are not used:\n  2 empty: 'a b' -> ''"
    assert Filter().report(3) == "All 3 translations are used."


def test_the_usual_length():
    assert typical_ratio([("ab", "abcd"), ("ab", "abc"), ("", "x"), ("ab", "abcdefgh")]) == 2.0
    assert typical_ratio([]) == 1.0


@pytest.mark.parametrize("text", ["I can't come.", "I'm sorry, I'm late.", "Note: the door is open."])
def test_translators_do_not_talk_about_their_translations(text):
    assert Filter(of_chats=True).reason("Je ne peux pas.", text, Answer((text,))) == "talks about the translation"
    assert Filter().reason("Je ne peux pas.", text, Answer((text,))) == ""
