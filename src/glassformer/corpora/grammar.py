"""The demo's English-French corpus: rules that build both languages side by side, and sentences drawn from them.

French is a function of the English text. Where English would leave it open (the gender of "we", the antecedent of
"it"), the rules raise `Undecided` and another sentence is drawn.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from glassformer.corpora.lexicon import (
    ADJECTIVES,
    ANIMATE,
    ASPIRATED,
    CONJUNCTIONS,
    DEGREES,
    DETERMINERS,
    EXCHANGES,
    FREQUENCIES,
    LASTING,
    MANNERS,
    NEGATIONS,
    NOUNS,
    OBJECT_REASONS,
    PREPOSITIONS,
    SEQUENCES,
    SUBJECT_REASONS,
    THEMES,
    TIMES,
    UNGRADED,
    VERBS,
    Adjective,
    Noun,
    Tense,
    Verb,
    adjectives_of,
    conjugate,
    english_past,
    english_s,
    fits,
    french_feminine,
    french_plural,
    nouns_of,
    principal_parts,
    verbs_of,
)

Pair = tuple[str, str]

REFERENCE: Pair = (
    "The black cat sat on the couch and the brown dog slept on the rug.",
    "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis.",
)
# One phenomenon each, held out of every corpus like the reference.
SHOWCASE: tuple[Pair, ...] = (
    ("The apple that the boy ate was good.", "La pomme que le garçon a mangée était bonne."),
    ("The table is old but it is pretty.", "La table est vieille mais elle est jolie."),
    (
        "The turtle slept on the rug because it was tired.",
        "La tortue dormait sur le tapis parce qu'elle était fatiguée.",
    ),
    (
        "The turtle slept on the rug because it was comfortable.",
        "La tortue dormait sur le tapis parce qu'il était confortable.",
    ),
    ("The girl bought a dress and she lost it.", "La fille a acheté une robe et elle l'a perdue."),
    ("The queen will talk to the heroes.", "La reine parlera aux héros."),
    ("My aunt did not see any small horses.", "Ma tante n'a pas vu de petits chevaux."),
    ("The old man never drinks any coffee.", "Le vieil homme ne boit jamais de café."),
    (
        "The women who went to the museum came back yesterday.",
        "Les femmes qui sont allées au musée sont revenues hier.",
    ),
    ("The mice are afraid of the king's beautiful white dogs.", "Les souris ont peur des beaux chiens blancs du roi."),
    ("I will repair the brown lamps tomorrow.", "Je réparerai les lampes marron demain."),
    ("The hedgehog stopped near the old castle.", "Le hérisson s'est arrêté près du vieux château."),
)


class Undecided(Exception):
    """The English would not decide the French, or would say nothing sensible."""


@dataclass(frozen=True)
class Text:
    """The same words in both languages; the French ones await `spell`."""

    en: str = ""
    fr: str = ""


@dataclass(frozen=True)
class Phrase(Text):
    """A noun phrase or a pronoun, with the features that verbs, adjectives and pronouns agree with."""

    kinds: str = "person"
    feminine: bool | None = None  # None: "I" and "we" do not tell
    plural: bool = False
    person: int = 3
    clitic: bool = False  # an object pronoun, which French puts before the verb
    determiner: str = ""
    adjectives: tuple[str, ...] = ()


VOWELS = "aeiouâàéèêëîïôœh"  # h too: the words that begin with h aspiré are listed
BEFORE_VOWEL = {"ce": "cet ", "ma": "mon ", "sa": "son "} | {
    word: word[:-1] + "'" for word in ("le", "la", "de", "ne", "je", "me", "se", "que")
}
CONTRACTIONS = {"de le": "du", "de les": "des", "à le": "au", "à les": "aux"}


def starts_with_vowel(word: str) -> bool:
    """Whether a French word elides the word before it."""
    return word[0] in VOWELS and word not in ASPIRATED


def spell(words: str) -> str:
    """French words as they are written side by side: elided (l'eau, cet arbre) and contracted (du, aux)."""
    words = re.sub(
        rf"\b({'|'.join(BEFORE_VOWEL)}) (?=([\w-]+))",
        lambda match: BEFORE_VOWEL[match[1]] if starts_with_vowel(match[2]) else match[0],
        words,
    )
    return re.sub(r"\b(?:de|à) les?\b(?!')", lambda match: CONTRACTIONS[match[0]], words)


def join(*parts: Text) -> Text:
    """Texts in a row."""
    return Text(" ".join(part.en for part in parts if part.en), " ".join(part.fr for part in parts if part.fr))


def agree(masculine: str, feminine: str, who: Phrase) -> str:
    """The form of an adjective or participle for the phrase it describes."""
    if who.feminine is None and masculine != feminine:
        raise Undecided(f"the gender of {who.en!r} is unknown")
    form = feminine if who.feminine else masculine
    return french_plural(form) if who.plural else form


def adjective_form(adjective: Adjective, who: Phrase) -> str:
    """The French adjective as it describes `who`."""
    if adjective.invariable:
        return adjective.fr
    return agree(adjective.fr, adjective.feminine or french_feminine(adjective.fr), who)


def article(determiner: str, noun: Noun, plural: bool, preposed: bool, negated: bool) -> Text:
    """A determiner in both languages; "a" is also "some" and, under negation, "any"."""
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
    """The column of PRONOUNS for a phrase."""
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
        kinds: what the pronoun's clause can be said of; a rival of these kinds would be as good an antecedent.

    Raises:
        Undecided: the English pronoun could stand for a rival.
    """
    if antecedent.person == 1:
        us = ("us", "nous") if antecedent.plural else ("me", "me")
        return replace(antecedent, en=us[0], fr=us[1], clitic=True) if role == "object" else antecedent
    en = PRONOUNS[role][english_pronoun(antecedent)]
    for rival in rivals:
        if rival.person == 3 and english_pronoun(rival) == english_pronoun(antecedent) and fits(rival.kinds, kinds):
            raise Undecided(f"{en!r} is {antecedent.en!r} or {rival.en!r}")
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
        raise Undecided(f"{subject.en} {head}: present or past")
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
    """A clause without its full stop.

    Args:
        verb: a key of VERBS.
        target: the object.
        rest: what follows the object.
        negation: a key of NEGATIONS, or nothing.
        adverb: a key of FREQUENCIES, or nothing.
        preceding: the head of a relative clause whose object this clause lacks; the participle agrees with it.
    """
    word = VERBS[verb]
    if tense == "future" and not word.future:
        raise Undecided(f"{verb!r} has no future in French")
    if fits((target or preceding or subject).kinds, "treat") and not fits(subject.kinds, "person"):
        raise Undecided(f"{subject.en} {verb}: for people only")
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
    """A preposition and what it governs."""
    return join(Text(preposition, PREPOSITIONS[preposition].fr), where)


def gap(head: Phrase) -> Phrase:
    """The silent subject of a relative clause."""
    return replace(head, en="", fr="")


def who(head: Phrase, rest: Text) -> Phrase:
    """`head` and a clause about it, whose subject is its gap."""
    relative = "who" if fits(head.kinds, "person") else "that"
    return replace(head, en=f"{head.en} {relative} {rest.en}", fr=f"{head.fr} qui {rest.fr}")


def that(head: Phrase, rest: Text) -> Phrase:
    """`head` and a clause that lacks it as its object."""
    return replace(head, en=f"{head.en} that {rest.en}", fr=f"{head.fr} que {rest.fr}")


def link(first: Text, conjunction: str, second: Text) -> Text:
    """Two clauses and the conjunction between them."""
    return join(first, Text(conjunction, CONJUNCTIONS[conjunction]), second)


def sentence(text: Text) -> Pair:
    """English and French with a capital and a full stop."""
    fr = spell(text.fr)
    return f"{text.en[0].upper()}{text.en[1:]}.", f"{fr[0].upper()}{fr[1:]}."


OWNED = "pet goods thing"  # what "my" and the others go with
MAX_WORDS = 17


@cache
def alike(one: str, other: str) -> bool:
    """Whether two adjectives would contradict or repeat each other about one thing."""
    return one == other or any(fits(one, theme) and fits(other, theme) for theme in THEMES)


def draw_adjectives(rng: Random, noun: Noun) -> list[str]:
    """No, one or two adjectives; two stand on both sides of the French noun."""
    # "mon beau père" and "petite nièce" would be heard as other relatives.
    fitting = [row for row in adjectives_of(noun.kinds) if not (row.before and fits(noun.kinds, "kin"))]
    n = rng.choice((0, 0, 0, 1, 1, 1, 2))
    if not n or not fitting:
        return []
    first = rng.choice(fitting)
    others = [row.en for row in fitting if first.before and not row.before and not alike(row.en, first.en)]
    return [first.en, *([rng.choice(others)] if n == 2 and others else [])]


def possessive(rng: Random, owner: Phrase | None) -> str:
    """The possessive determiner of an owner, or any when there is no person to own."""
    if owner is None or not fits(owner.kinds, "person"):
        return rng.choice(("my", "our", "his", "her", "their"))
    if owner.person == 1:
        return "our" if owner.plural else "my"
    return PRONOUNS["owner"][english_pronoun(owner)]


def draw_determiner(rng: Random, noun: Noun, plural: bool, subject: Phrase | None, definite: bool) -> str:
    """A determiner that suits the noun; what a person has is their own."""
    if fits(noun.kinds, "kin"):
        return possessive(rng, subject)
    choices = ["the"] * 7 + ["a"] * (0 if definite else 4)
    if not noun.mass:
        choices += ["this"]
        choices += ["two", "three", "many"] if plural and not definite else []
        choices += ["every"] if subject is None and not plural else []
        choices += [possessive(rng, subject)] * 2 if fits(noun.kinds, OWNED) else []
    return rng.choice(choices)


def draw_phrase(
    rng: Random,
    kinds: str,
    subject: Phrase | None = None,
    *,
    negated: bool = False,
    definite: bool = False,
    one: bool = False,
) -> Phrase:
    """A noun phrase of these kinds; `subject` is that of its clause when it is not the subject itself."""
    noun = rng.choice(nouns_of(kinds))
    plural = not (noun.mass or one or fits(noun.kinds, "parent")) and rng.random() < 0.4
    determiner, owner = draw_determiner(rng, noun, plural, subject, definite), None
    if fits(noun.kinds, "kin pet thing") and rng.random() < 0.15:
        person = rng.choice(nouns_of("person"))
        determiner, owned = "the", person.en
        owner_plural = not fits(person.kinds, "parent") and rng.random() < 0.3
        owner = noun_phrase(draw_determiner(rng, person, True, None, True), owned, plural=owner_plural)
    return noun_phrase(determiner, noun.en, *draw_adjectives(rng, noun), plural=plural, negated=negated, owner=owner)


def draw_subject(rng: Random, kinds: str = ANIMATE, *pronouns: Phrase) -> Phrase:
    """A noun phrase, or a pronoun that needs no antecedent."""
    if fits(kinds, "person") and rng.random() < 0.2:
        return rng.choice(pronouns or (I, WE, HE, SHE))
    return draw_phrase(rng, kinds)


def draw_place(rng: Random, subject: Phrase, verb: Verb) -> Text:
    """Where or with whom the verb happens."""
    preposition = PREPOSITIONS[rng.choice(verb.adjuncts.split(", "))]
    kinds = preposition.outdoors if fits(subject.kinds, "large") else preposition.kinds
    if not kinds:
        raise Undecided(f"{subject.en} {preposition.en}: nothing to say")
    one = preposition.en == "in" or not subject.plural or rng.random() < 0.6
    return place(preposition.en, draw_phrase(rng, kinds, subject, definite=True, one=one))


def draw_state(rng: Random, subject: Phrase, tense: Tense, negation: str = "") -> Text:
    """What the subject is like."""
    if subject.determiner == "a" or (negation and subject.determiner in ("every", "many")):
        raise Undecided(f"{subject.en} is: nothing to say")
    adjective = rng.choice(
        [
            row.en
            for row in adjectives_of(subject.kinds)
            if row.predicative
            and not (tense == "future" and fits(row.en, LASTING))
            and not any(alike(row.en, other) for other in subject.adjectives)
        ]
        or [""]
    )
    if not adjective:
        raise Undecided(f"{subject.en} is: nothing to say")
    degree = "" if negation or fits(adjective, UNGRADED) else rng.choice(("", "", *DEGREES))
    return state(subject, adjective, tense, negation, degree)


def draw_target(rng: Random, subject: Phrase, verb: Verb, negated: bool = False) -> Phrase | None:
    """The verb's object, if it takes one."""
    if not verb.objects:
        return None
    if verb.generic and rng.random() < 0.4:
        noun = rng.choice([noun for noun in nouns_of(verb.objects) if not fits(noun.kinds, "person")])
        return noun_phrase("", noun.en, plural=not noun.mass)
    return draw_phrase(rng, verb.objects, subject, negated=negated, definite=verb.definite, one=verb.one_object)


def draw_circumstance(rng: Random, subject: Phrase, verb: Verb, tense: Tense, timed: bool) -> list[Text]:
    """How, where and when, or less."""
    manners = [manner for manner, (_, verbs) in MANNERS.items() if fits(verb.en, verbs)]
    if timed and manners and rng.random() < 0.3:
        manner = rng.choice(manners)
        return [Text(manner, MANNERS[manner][0])]
    if verb.adjuncts and (verb.placed or rng.random() < 0.6):
        return [draw_place(rng, subject, verb)]
    if timed and not verb.stative and rng.random() < 0.25:
        time = rng.choice(tuple(TIMES[tense]))
        return [Text(time, TIMES[tense][time])]
    return []


def draw_clause(rng: Random, subject: Phrase, tense: Tense, negated: bool = False, act: bool = False) -> Text:
    """Something that the subject is or does; with `act`, does."""
    if not fits(subject.kinds, ANIMATE) or (not act and rng.random() < 0.12):
        return draw_state(rng, subject, tense, "not" if negated else "")
    if negated and subject.determiner in ("every", "many"):
        raise Undecided(f"not {subject.en}: which of them?")
    verb = rng.choice(verbs_of(subject.kinds))
    habitual = not verb.stative or (not verb.objects and tense != "future")
    negation = adverb = ""
    if negated:
        negation = rng.choice(["not"] * 3 + ["never"] * habitual + ["no longer"] * (tense == "present"))
    elif habitual and (verb.stative or tense == "present") and rng.random() < 0.3:
        adverb = rng.choice(tuple(FREQUENCIES))
    target = draw_target(rng, subject, verb, bool(negation))
    circumstance = draw_circumstance(rng, subject, verb, tense, timed=not adverb and negation in ("", "not"))
    if verb.recipients:
        whom = draw_phrase(rng, verb.recipients, subject, definite=True)
        circumstance = [Text(f"to {whom.en}", f"à {whom.fr}")]
    return clause(subject, verb.en, tense, target, *circumstance, negation=negation, adverb=adverb)


def draw_tense(rng: Random) -> Tense:
    """The past a little more often: only there do participles agree."""
    return rng.choice(("past", "past", "past", "present", "present", "future", "future"))


THINGS = "food thing furniture natural landmark machine"


def draw_simple(rng: Random) -> Text:
    """The black cat sat on the couch."""
    subject = draw_subject(rng, rng.choice((ANIMATE, ANIMATE, ANIMATE, ANIMATE, THINGS)))
    return draw_clause(rng, subject, draw_tense(rng), negated=rng.random() < 0.3)


def draw_first_person(rng: Random) -> Text:
    """We often dance in the garden."""
    return draw_clause(rng, rng.choice((I, WE)), draw_tense(rng), negated=rng.random() < 0.3, act=True)


def draw_coordination(rng: Random) -> Text:
    """The cat slept and the dog ate; the cat slept but the dog did not sleep."""
    tense, negated = draw_tense(rng), rng.random() < 0.4
    first = draw_clause(rng, draw_subject(rng), tense)
    second = draw_clause(rng, draw_subject(rng, ANIMATE, I, WE), tense, negated)
    return link(first, "but" if negated else "and", second)


def draw_subject_relative(rng: Random) -> Text:
    """The boy who sang is hungry."""
    head, tense = draw_phrase(rng, ANIMATE), draw_tense(rng)
    if fits(head.kinds, "kin"):
        raise Undecided(f"{head.en} who: there is but one")
    inner = draw_clause(rng, gap(head), tense, negated=rng.random() < 0.15)
    return draw_clause(rng, who(head, inner), tense, act=True)


TRANSITIVE = [verb for verb in VERBS.values() if verb.objects and not (verb.preposition or verb.recipients)]


def draw_object_relative(rng: Random) -> Text:
    """The apple that the boy ate was good; the girl found the key that the boy lost."""
    verb, tense = rng.choice(TRANSITIVE), draw_tense(rng)
    noun = rng.choice(nouns_of(verb.objects))
    if fits(noun.kinds, "kin"):
        raise Undecided(f"the {noun.en} that: whose")
    determiner, plural = rng.choice(("the", "the", "the", "this")), not noun.mass and rng.random() < 0.55
    head = noun_phrase(determiner, noun.en, *draw_adjectives(rng, noun)[:1], plural=plural)
    whole = that(head, clause(draw_subject(rng, verb.subjects), verb.en, tense, preceding=head))
    if rng.random() < 0.5:
        return draw_state(rng, whole, rng.choice((tense, "present")))
    outer = rng.choice([row for row in VERBS.values() if fits(noun.kinds, row.objects) and row is not verb])
    if outer.recipients:
        raise Undecided(f"{outer.en} {whole.en}: to whom")
    return clause(draw_subject(rng, outer.subjects), outer.en, tense, whole)


def draw_contrast(rng: Random) -> Text:
    """The table is old but it is pretty."""
    tense, subject = draw_tense(rng), draw_phrase(rng, f"{ANIMATE} {THINGS}")
    denied = rng.choice((0, 1, None))
    first = draw_state(rng, subject, tense, "not" if denied == 0 else "")
    said = tuple(word for word in first.en.split() if word in ADJECTIVES)
    it = replace(pronoun(subject), adjectives=said)
    return link(first, "but", draw_state(rng, it, tense, "not" if denied == 1 else ""))


def draw_object_reason(rng: Random) -> Text:
    """The girl bought the dress because it was pretty."""
    verb = VERBS[rng.choice(tuple(OBJECT_REASONS))]
    tense, adjective = draw_tense(rng), ADJECTIVES[rng.choice(OBJECT_REASONS[verb.en].split())]
    subject = draw_subject(rng, verb.subjects)
    target = draw_phrase(rng, verb.objects, subject, definite=verb.definite, one=verb.one_object)
    if not fits(target.kinds, adjective.kinds) or any(alike(adjective.en, other) for other in target.adjectives):
        raise Undecided(f"{target.en} {adjective.en}")
    it = pronoun(target, rivals=[subject], kinds=adjective.kinds)
    reason = state(it, adjective.en, "past" if tense == "past" else "present")
    return link(clause(subject, verb.en, tense, target), "because", reason)


def draw_subject_reason(rng: Random) -> Text:
    """The cat slept on the rug because it was tired (or, of the rug, comfortable)."""
    verb = VERBS[rng.choice(tuple(SUBJECT_REASONS))]
    tense, reason = draw_tense(rng), rng.choice(SUBJECT_REASONS[verb.en])
    then: Tense = "past" if tense == "past" else "present"
    subject = draw_subject(rng, verb.subjects)
    if reason in ADJECTIVES and any(alike(reason, other) for other in subject.adjectives):
        raise Undecided(f"{subject.en} {reason}")
    target = draw_target(rng, subject, verb)
    where = []
    if "on" in verb.adjuncts.split(", ") and not fits(subject.kinds, "large") and rng.random() < 0.7:
        seat = draw_phrase(rng, "seat", subject, definite=True, one=not subject.plural)
        where = [place("on", seat)]
        if rng.random() < 0.5 and "comfortable" not in seat.adjectives:
            it = pronoun(seat, rivals=[subject], kinds="seat")
            return link(clause(subject, verb.en, tense, None, *where), "because", state(it, "comfortable", then))
    if verb.placed and not where:
        raise Undecided(f"{subject.en} {verb.en}: where")
    it = pronoun(subject, rivals=[target] if target else [], kinds=ANIMATE)
    second = clause(it, reason, then) if reason in VERBS else state(it, reason, then)
    return link(clause(subject, verb.en, tense, target, *where), "because", second)


def draw_sequence(rng: Random) -> Text:
    """The boy bought an apple and he ate it."""
    first, second = (VERBS[verb] for verb in rng.choice(SEQUENCES))
    tense, subject = draw_tense(rng), draw_subject(rng, first.subjects)
    target = draw_phrase(rng, first.objects, subject, definite=first.definite, one=first.one_object)
    if not fits(target.kinds, second.objects):
        raise Undecided(f"{second.en} {target.en}")
    negated = rng.random() < 0.25
    again = clause(
        pronoun(subject, rivals=[target], kinds=ANIMATE),
        second.en,
        tense,
        pronoun(target, "object", rivals=[subject], kinds=ANIMATE),
        negation="not" * negated,
    )
    return link(clause(subject, first.en, tense, target), "but" if negated else "and", again)


def draw_exchange(rng: Random) -> Text:
    """The boy helped the girl and she thanked him."""
    first, second = rng.choice(EXCHANGES)
    tense, subject = draw_tense(rng), draw_subject(rng, "person")
    target = draw_phrase(rng, "person", subject, definite=True)
    negated = rng.random() < 0.25
    again = clause(
        pronoun(target, rivals=[subject], kinds="person"),
        second,
        tense,
        pronoun(subject, "object", rivals=[target], kinds="person"),
        negation="not" * negated,
    )
    return link(clause(subject, first, tense, target), "but" if negated else "and", again)


# Weights. The first person has the most to give: each verb has two forms in each tense that no other subject shows.
PATTERNS: dict[Callable[[Random], Text], int] = {
    draw_simple: 20,
    draw_first_person: 36,
    draw_coordination: 14,
    draw_subject_relative: 8,
    draw_object_relative: 22,
    draw_contrast: 7,
    draw_object_reason: 12,
    draw_subject_reason: 9,
    draw_sequence: 20,
    draw_exchange: 8,
}
NOUN_FORMS = frozenset(form for noun in NOUNS.values() for form in (noun.en, noun.en_plural or english_s(noun.en)))


def sentences(rng: Random) -> Iterator[Pair]:
    """Endless sentences of the grammar's language, with repetitions."""
    patterns, weights = tuple(PATTERNS), tuple(PATTERNS.values())
    while True:
        draw = rng.choices(patterns, weights)[0]
        try:
            text = draw(rng)
        except Undecided:
            continue
        nouns = [word for word in text.en.replace("'", " ").split() if word in NOUN_FORMS]
        if 4 <= len(text.en.split()) <= MAX_WORDS and len(nouns) == len(set(nouns)):
            yield sentence(text)


PATIENCE = 10_000  # draws in a row that bring nothing new before we give up


def take(n: int, source: Iterator[Pair], *known: Iterable[Pair]) -> list[Pair]:
    """The next n distinct pairs, of which no side is a side of a known pair."""
    if n < 0:
        raise ValueError(f"asked for {n} sentence pairs")
    seen_en = {en for pairs in known for en, _ in pairs}
    seen_fr = {fr for pairs in known for _, fr in pairs}
    pairs: list[Pair] = []
    wasted = 0
    while len(pairs) < n:
        en, fr = next(source)
        if en in seen_en or fr in seen_fr:
            wasted += 1
            if wasted == PATIENCE:
                raise ValueError(f"asked for {n:,} distinct sentence pairs, the grammar gave {len(pairs):,}")
            continue
        wasted = 0
        seen_en.add(en)
        pairs.append((en, fr))
    return pairs


HELD_OUT: tuple[Pair, ...] = (REFERENCE, *SHOWCASE)


def sample_pairs(n: int, seed: int) -> list[Pair]:
    """n distinct pairs (English, French), the same for the same seed; never one of REFERENCE or SHOWCASE.

    Raises:
        ValueError: n is negative, or more than the grammar gives.
    """
    return take(n, sentences(Random(seed)), HELD_OUT)


def split_pairs(n_train: int, n_held_out: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Training and held-out pairs: they share words, never a whole sentence in either language.

    The held-out pairs depend on the seed alone, not on n_train.
    """
    source = sentences(Random(seed))
    held_out = take(n_held_out, source, HELD_OUT)
    return take(n_train, source, HELD_OUT, held_out), held_out
