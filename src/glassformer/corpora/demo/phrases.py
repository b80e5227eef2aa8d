"""Grammar rules that build English and French in parallel: noun phrases, verbs, clauses, sentences.

The French text is a function of the English text. If the English text does not determine it (the gender of "we", the
antecedent of "it"), the rules raise `AmbiguousError`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from glassformer.corpora.demo.inflection import (
    Tense,
    conjugate,
    english_past,
    english_s,
    french_feminine,
    french_plural,
    principal_parts,
)
from glassformer.corpora.demo.lexicon import (
    ADJECTIVES,
    ASPIRATED,
    CONJUNCTIONS,
    DEGREES,
    DETERMINERS,
    FREQUENCIES,
    NEGATIONS,
    NOUNS,
    PREPOSITIONS,
    VERBS,
    Adjective,
    Noun,
    Verb,
    fits,
)

Pair = tuple[str, str]


class AmbiguousError(Exception):
    """The English sentence does not determine the French one, or makes no sense."""


@dataclass(frozen=True)
class Text:
    """A text in both languages. The French words are not yet elided and contracted by `spell`."""

    en: str = ""
    fr: str = ""


@dataclass(frozen=True)
class Phrase(Text):
    """A noun phrase or a pronoun, with its agreement features."""

    kinds: str = "person"
    feminine: bool | None = None  # None: unknown, for "I" and "we"
    plural: bool = False
    person: int = 3
    clitic: bool = False  # an object pronoun, which French puts before the verb
    determiner: str = ""
    adjectives: tuple[str, ...] = ()


VOWELS = "aeiouâàéèêëîïôœh"  # with h; words that begin with h aspiré are listed in the lexicon
BEFORE_VOWEL = {"ce": "cet ", "ma": "mon ", "sa": "son "} | {
    word: word[:-1] + "'" for word in ("le", "la", "de", "ne", "je", "me", "se", "que")
}
CONTRACTIONS = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}


def starts_with_vowel(word: str) -> bool:
    """Whether the word before a French word is elided."""
    return word[0] in VOWELS and word not in ASPIRATED


def spell(words: str) -> str:
    """Apply French elision (l'eau, cet arbre) and contraction (du, aux)."""
    words = re.sub(
        rf"\b({'|'.join(BEFORE_VOWEL)}) (?=([\w-]+))",
        lambda match: BEFORE_VOWEL[match[1]] if starts_with_vowel(match[2]) else match[0],
        words,
    )
    return re.sub(r"\b(?:de|à) les?\b(?!')", lambda match: CONTRACTIONS[match[0]], words)


def join(*parts: Text) -> Text:
    """Concatenate texts, separated by spaces."""
    return Text(" ".join(part.en for part in parts if part.en), " ".join(part.fr for part in parts if part.fr))


def agree(masculine: str, feminine: str, described: Phrase) -> str:
    """Form of an adjective or participle that agrees with the phrase it describes.

    Raises:
        AmbiguousError: the form depends on an unknown gender.
    """
    if described.feminine is None and masculine != feminine:
        raise AmbiguousError(f"the gender of {described.en!r} is unknown")
    form = feminine if described.feminine else masculine
    return french_plural(form) if described.plural else form


def adjective_form(adjective: Adjective, described: Phrase) -> str:
    """Form of a French adjective that agrees with `described`."""
    if adjective.invariable:
        return adjective.fr
    return agree(adjective.fr, adjective.feminine or french_feminine(adjective.fr), described)


def article(determiner: str, noun: Noun, plural: bool, preposed: bool, negated: bool) -> Text:
    """A determiner in both languages. "a" includes "some" and, under negation, "any"."""
    row = DETERMINERS[determiner]
    by_gender = row.fr_f if noun.gender == "f" else row.fr_m
    en, fr = (row.en_plural, row.fr_plural) if plural else (row.en, by_gender)
    if determiner == "a" and noun.mass:
        en, fr = "some", "de la" if noun.gender == "f" else "de le"
    if determiner == "a" and (negated or (plural and preposed)):
        fr = "de"
    return Text("any" if negated and en == "some" else en, fr)


def noun_phrase(
    determiner: str,
    noun: str,
    *adjectives: str,
    plural: bool = False,
    negated: bool = False,
    owner: Phrase | None = None,
) -> Phrase:
    """A noun with its determiner and adjectives, in English order.

    Args:
        determiner: a key of DETERMINERS.
        negated: the object of a negated verb, where un, une and des become de.
        owner: the possessor, with "the": the king's dog, le chien du roi.
    """
    word, described = NOUNS[noun], [ADJECTIVES[adjective] for adjective in adjectives]
    phrase = Phrase("", "", word.kinds, word.gender == "f", plural)
    before = [adjective_form(adjective, phrase) for adjective in described if adjective.before]
    after = [adjective_form(adjective, phrase) for adjective in described if not adjective.before]
    noun_fr = (word.fr_plural or french_plural(word.fr)) if plural else word.fr
    for adjective in described:
        if adjective.before_vowel and not phrase.feminine and not plural and starts_with_vowel(noun_fr):
            before = [adjective.before_vowel]
    start = article(determiner, word, plural, bool(before), negated)
    noun_en = (word.en_plural or english_s(word.en)) if plural else word.en
    words_en = [*adjectives, noun_en]
    start_en = "an" if start.en == "a" and words_en[0][0] in "aeiou" else start.en
    words_fr = [*before, noun_fr, *after]
    if owner:
        start_en = owner.en + ("'" if owner.en.endswith("s") and owner.plural else "'s")
        words_fr += ["de", owner.fr]
    en, fr = " ".join(filter(None, [start_en, *words_en])), " ".join([start.fr, *words_fr])
    return Phrase(en, fr, word.kinds, phrase.feminine, plural, determiner=determiner, adjectives=adjectives)


I = Phrase("I", "je", person=1)  # noqa: E741
WE = Phrase("we", "nous", person=1, plural=True)
HE = Phrase("he", "il", feminine=False)
SHE = Phrase("she", "elle", feminine=True)


def english_pronoun(antecedent: Phrase) -> int:
    """Index of the pronoun of a phrase in the rows of PRONOUNS."""
    if antecedent.plural:
        return 3
    return (1 if antecedent.feminine else 0) if fits(antecedent.kinds, "person") else 2


PRONOUNS = {
    "subject": ("he", "she", "it", "they"),
    "object": ("him", "her", "it", "them"),
    "owner": ("his", "her", "its", "their"),
}


def pronoun(antecedent: Phrase, role: str = "subject", rivals: Iterable[Phrase] = (), kinds: str = "") -> Phrase:
    """The pronoun for `antecedent`, with its gender in French.

    Args:
        role: "subject" or "object".
        rivals: the other phrases of the sentence.
        kinds: kinds that fit the position of the pronoun; a rival of these kinds is a possible antecedent.

    Raises:
        AmbiguousError: the English pronoun could also refer to a rival.
    """
    if antecedent.person == 1:
        us = ("us", "nous") if antecedent.plural else ("me", "me")
        return replace(antecedent, en=us[0], fr=us[1], clitic=True) if role == "object" else antecedent
    en = PRONOUNS[role][english_pronoun(antecedent)]
    for rival in rivals:
        if rival.person == 3 and english_pronoun(rival) == english_pronoun(antecedent) and fits(rival.kinds, kinds):
            raise AmbiguousError(f"{en!r} is {antecedent.en!r} or {rival.en!r}")
    if role == "object":
        fr = "les" if antecedent.plural else "la" if antecedent.feminine else "le"
    else:
        fr = ("elle" if antecedent.feminine else "il") + "s" * antecedent.plural
    return replace(antecedent, en=en, fr=fr, clitic=role == "object")


def english_verb(subject: Phrase, verb: Verb, tense: Tense, negation: str, adverb: str) -> str:
    """The English verb group, with do-support for "not"."""
    head, _, rest = verb.en.partition(" ")
    singular = not subject.plural and subject.person == 3
    past = verb.past or english_past(head)
    between = negation or adverb
    if past == head and not singular and tense != "future":
        raise AmbiguousError(f"{subject.en} {head}: present or past")
    if tense == "future":
        words = ["will", between, head]
    elif head == "be" and tense == "present":
        words = ["are" if subject.plural else "is" if singular else "am", between]
    elif head == "be":
        words = ["were" if subject.plural else "was", between]
    elif negation == "not":
        words = ["did" if tense == "past" else "does" if singular else "do", "not", head]
    else:
        words = [between, past if tense == "past" else english_third(head) if singular else head]
    return " ".join(filter(None, [*words, rest]))


def english_third(head: str) -> str:
    """The third person singular of the present."""
    return "has" if head == "have" else english_s(head)


def french_verb(
    subject: Phrase, verb: Verb, tense: Tense, negation: str, adverb: str, clitic: str, preceding: Phrase | None
) -> str:
    """The French verb group: ne, clitics, the finite verb, pas, the adverb, the participle."""
    compound = tense == "past" and not verb.stative
    if verb.reflexive:
        clitic = "se" if subject.person == 3 else "nous" if subject.plural else "me"
    infinitive = ("être" if verb.with_etre else "avoir") if compound else verb.fr
    finite = conjugate(infinitive, "present" if compound else tense, subject.person, subject.plural)
    words = ["ne" if negation else "", clitic, finite, NEGATIONS.get(negation, ""), FREQUENCIES.get(adverb, "")]
    participle = principal_parts(verb.fr)[-1]
    agrees_with = subject if verb.with_etre else preceding
    if compound:
        words.append(agree(participle, french_feminine(participle), agrees_with) if agrees_with else participle)
    if verb.fr == "être" and verb.complement:
        words.append(agree(verb.complement, french_feminine(verb.complement), subject))
    else:
        words.append(verb.complement)
    return " ".join(filter(None, words))


def clause(
    subject: Phrase,
    verb: str,
    tense: Tense,
    target: Phrase | None = None,
    *rest: Text,
    negation: str = "",
    adverb: str = "",
    preceding: Phrase | None = None,
) -> Text:
    """Build a clause, without a full stop.

    Args:
        verb: a key of VERBS.
        target: the object.
        rest: texts after the object.
        negation: a key of NEGATIONS, or "".
        adverb: a key of FREQUENCIES, or "".
        preceding: head of a relative clause, which is the object of this clause; the participle agrees with it.
    """
    word = VERBS[verb]
    if tense == "future" and not word.future:
        raise AmbiguousError(f"{verb!r} has no future in French")
    if fits((target or preceding or subject).kinds, "treat") and not fits(subject.kinds, "person"):
        raise AmbiguousError(f"{subject.en} {verb}: for people only")
    clitic = target.fr if target and target.clitic else ""
    head = Text(
        english_verb(subject, word, tense, negation, adverb),
        french_verb(subject, word, tense, negation, adverb, clitic, target if clitic else preceding),
    )
    what = Text(target.en, "" if clitic else f"{word.preposition} {target.fr}".strip()) if target else Text()
    return join(subject, head, what, *rest)


def state(subject: Phrase, adjective: str, tense: Tense, negation: str = "", degree: str = "") -> Text:
    """A clause with "be" and an adjective."""
    how = Text(degree, DEGREES.get(degree, ""))
    what = Text(adjective, adjective_form(ADJECTIVES[adjective], subject))
    return clause(subject, "be", tense, None, how, what, negation=negation)


def place(preposition: str, where: Phrase) -> Text:
    """A prepositional phrase."""
    return join(Text(preposition, PREPOSITIONS[preposition].fr), where)


def empty_subject(head: Phrase) -> Phrase:
    """The empty subject of a relative clause."""
    return replace(head, en="", fr="")


def with_subject_relative(head: Phrase, rest: Text) -> Phrase:
    """`head` with a relative clause whose subject it is."""
    relative = "who" if fits(head.kinds, "person") else "that"
    return replace(head, en=f"{head.en} {relative} {rest.en}", fr=f"{head.fr} qui {rest.fr}")


def with_object_relative(head: Phrase, rest: Text) -> Phrase:
    """`head` with a relative clause whose object it is."""
    return replace(head, en=f"{head.en} that {rest.en}", fr=f"{head.fr} que {rest.fr}")


def link(first: Text, conjunction: str, second: Text) -> Text:
    """Two clauses joined by a conjunction."""
    return join(first, Text(conjunction, CONJUNCTIONS[conjunction]), second)


def sentence(text: Text) -> Pair:
    """Complete sentence pair with a capital letter and a full stop."""
    fr = spell(text.fr)
    return f"{text.en[0].upper()}{text.en[1:]}.", f"{fr[0].upper()}{fr[1:]}."
