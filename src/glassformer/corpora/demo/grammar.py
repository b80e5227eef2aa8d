"""Generator of the English-French demo corpus: sentences sampled from the rules of `phrases`.

If the English text does not determine the French text, another sentence is sampled.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from random import Random

from glassformer.corpora.demo.inflection import Tense, english_s
from glassformer.corpora.demo.lexicon import (
    ADJECTIVES,
    ANIMATE,
    DEGREES,
    EXCHANGES,
    FREQUENCIES,
    LASTING,
    MANNERS,
    NOUNS,
    OBJECT_REASONS,
    PREPOSITIONS,
    SEQUENCES,
    SUBJECT_REASONS,
    THEMES,
    TIMES,
    UNGRADED,
    VERBS,
    Noun,
    Verb,
    adjectives_of,
    fits,
    nouns_of,
    verbs_of,
)
from glassformer.corpora.demo.phrases import (
    HE,
    PRONOUNS,
    SHE,
    WE,
    AmbiguousError,
    I,
    Pair,
    Phrase,
    Text,
    clause,
    empty_subject,
    english_pronoun,
    link,
    noun_phrase,
    place,
    pronoun,
    sentence,
    state,
    with_object_relative,
    with_subject_relative,
)

OWNED = "pet goods thing"  # kinds that take possessive determiners
MAX_WORDS = 17


@cache
def incompatible(one: str, other: str) -> bool:
    """Whether two adjectives contradict or repeat each other."""
    return one == other or any(fits(one, theme) and fits(other, theme) for theme in THEMES)


def sample_adjectives(rng: Random, noun: Noun) -> list[str]:
    """Sample 0 to 2 adjectives; of two, one precedes and one follows the French noun."""
    # "mon beau père" and "petite nièce" would be understood as other relatives.
    fitting = [row for row in adjectives_of(noun.kinds) if not (row.before and fits(noun.kinds, "kin"))]
    n = rng.choice((0, 0, 0, 1, 1, 1, 2))
    if not n or not fitting:
        return []
    first = rng.choice(fitting)
    others = [row.en for row in fitting if first.before and not row.before and not incompatible(row.en, first.en)]
    return [first.en, *([rng.choice(others)] if n == 2 and others else [])]


def possessive(rng: Random, owner: Phrase | None) -> str:
    """The possessive determiner of an owner, or a random one if the owner is not a person."""
    if owner is None or not fits(owner.kinds, "person"):
        return rng.choice(("my", "our", "his", "her", "their"))
    if owner.person == 1:
        return "our" if owner.plural else "my"
    return PRONOUNS["owner"][english_pronoun(owner)]


def sample_determiner(rng: Random, noun: Noun, plural: bool, subject: Phrase | None, definite: bool) -> str:
    """Sample a determiner for the noun; for relatives, the possessive of the subject."""
    if fits(noun.kinds, "kin"):
        return possessive(rng, subject)
    choices = ["the"] * 7 + ["a"] * (0 if definite else 4)
    if not noun.mass:
        choices += ["this"]
        choices += ["two", "three", "many"] if plural and not definite else []
        choices += ["every"] if subject is None and not plural else []
        choices += [possessive(rng, subject)] * 2 if fits(noun.kinds, OWNED) else []
    return rng.choice(choices)


def sample_phrase(
    rng: Random,
    kinds: str,
    subject: Phrase | None = None,
    *,
    negated: bool = False,
    definite: bool = False,
    one: bool = False,
) -> Phrase:
    """Sample a noun phrase of these kinds. `subject` is the subject of the clause, unless it is this phrase."""
    noun = rng.choice(nouns_of(kinds))
    plural = not (noun.mass or one or fits(noun.kinds, "parent")) and rng.random() < 0.4
    determiner, owner = sample_determiner(rng, noun, plural, subject, definite), None
    if fits(noun.kinds, "kin pet thing") and rng.random() < 0.15:
        person = rng.choice(nouns_of("person"))
        determiner, owned = "the", person.en
        owner_plural = not fits(person.kinds, "parent") and rng.random() < 0.3
        owner = noun_phrase(sample_determiner(rng, person, True, None, True), owned, plural=owner_plural)
    return noun_phrase(determiner, noun.en, *sample_adjectives(rng, noun), plural=plural, negated=negated, owner=owner)


def sample_subject(rng: Random, kinds: str = ANIMATE, *pronouns: Phrase) -> Phrase:
    """Sample a noun phrase, or a pronoun without an antecedent."""
    if fits(kinds, "person") and rng.random() < 0.2:
        return rng.choice(pronouns or (I, WE, HE, SHE))
    return sample_phrase(rng, kinds)


def sample_place(rng: Random, subject: Phrase, verb: Verb) -> Text:
    """Sample an adverbial of place or company for the verb."""
    preposition = PREPOSITIONS[rng.choice(verb.adjuncts.split(", "))]
    kinds = preposition.outdoors if fits(subject.kinds, "large") else preposition.kinds
    if not kinds:
        raise AmbiguousError(f"{subject.en} {preposition.en}: nothing to say")
    one = preposition.en == "in" or not subject.plural or rng.random() < 0.6
    return place(preposition.en, sample_phrase(rng, kinds, subject, definite=True, one=one))


def sample_state(rng: Random, subject: Phrase, tense: Tense, negation: str = "") -> Text:
    """Sample a clause with "be" and an adjective."""
    if subject.determiner == "a" or (negation and subject.determiner in ("every", "many")):
        raise AmbiguousError(f"{subject.en} is: nothing to say")
    adjective = rng.choice(
        [
            row.en
            for row in adjectives_of(subject.kinds)
            if row.predicative
            and not (tense == "future" and fits(row.en, LASTING))
            and not any(incompatible(row.en, other) for other in subject.adjectives)
        ]
        or [""]
    )
    if not adjective:
        raise AmbiguousError(f"{subject.en} is: nothing to say")
    degree = "" if negation or fits(adjective, UNGRADED) else rng.choice(("", "", *DEGREES))
    return state(subject, adjective, tense, negation, degree)


def sample_target(rng: Random, subject: Phrase, verb: Verb, negated: bool = False) -> Phrase | None:
    """Sample an object of the verb, or None for intransitive verbs."""
    if not verb.objects:
        return None
    if verb.generic and rng.random() < 0.4:
        noun = rng.choice([noun for noun in nouns_of(verb.objects) if not fits(noun.kinds, "person")])
        return noun_phrase("", noun.en, plural=not noun.mass)
    return sample_phrase(rng, verb.objects, subject, negated=negated, definite=verb.definite, one=verb.one_object)


def sample_circumstance(rng: Random, subject: Phrase, verb: Verb, tense: Tense, timed: bool) -> list[Text]:
    """Sample adverbials of manner, place and time, or some of them."""
    manners = [manner for manner, (_, verbs) in MANNERS.items() if fits(verb.en, verbs)]
    if timed and manners and rng.random() < 0.3:
        manner = rng.choice(manners)
        return [Text(manner, MANNERS[manner][0])]
    if verb.adjuncts and (verb.placed or rng.random() < 0.6):
        return [sample_place(rng, subject, verb)]
    if timed and not verb.stative and rng.random() < 0.25:
        time = rng.choice(tuple(TIMES[tense]))
        return [Text(time, TIMES[tense][time])]
    return []


def sample_clause(rng: Random, subject: Phrase, tense: Tense, negated: bool = False, act: bool = False) -> Text:
    """Sample a clause about the subject: a state or an action; with `act`, an action."""
    if not fits(subject.kinds, ANIMATE) or (not act and rng.random() < 0.12):
        return sample_state(rng, subject, tense, "not" if negated else "")
    if negated and subject.determiner in ("every", "many"):
        raise AmbiguousError(f"not {subject.en}: which of them?")
    verb = rng.choice(verbs_of(subject.kinds))
    habitual = not verb.stative or (not verb.objects and tense != "future")
    negation = adverb = ""
    if negated:
        negation = rng.choice(["not"] * 3 + ["never"] * habitual + ["no longer"] * (tense == "present"))
    elif habitual and (verb.stative or tense == "present") and rng.random() < 0.3:
        adverb = rng.choice(tuple(FREQUENCIES))
    target = sample_target(rng, subject, verb, bool(negation))
    circumstance = sample_circumstance(rng, subject, verb, tense, timed=not adverb and negation in ("", "not"))
    if verb.recipients:
        whom = sample_phrase(rng, verb.recipients, subject, definite=True)
        circumstance = [Text(f"to {whom.en}", f"à {whom.fr}")]
    return clause(subject, verb.en, tense, target, *circumstance, negation=negation, adverb=adverb)


def sample_tense(rng: Random) -> Tense:
    """Sample a tense. The past is more frequent, since participles agree only there."""
    return rng.choice(("past", "past", "past", "present", "present", "future", "future"))


THINGS = "food thing furniture natural landmark machine"


def sample_simple(rng: Random) -> Text:
    """The black cat sat on the couch."""
    subject = sample_subject(rng, rng.choice((ANIMATE, ANIMATE, ANIMATE, ANIMATE, THINGS)))
    return sample_clause(rng, subject, sample_tense(rng), negated=rng.random() < 0.3)


def sample_first_person(rng: Random) -> Text:
    """We often dance in the garden."""
    return sample_clause(rng, rng.choice((I, WE)), sample_tense(rng), negated=rng.random() < 0.3, act=True)


def sample_coordination(rng: Random) -> Text:
    """The cat slept and the dog ate; the cat slept but the dog did not sleep."""
    tense, negated = sample_tense(rng), rng.random() < 0.4
    first = sample_clause(rng, sample_subject(rng), tense)
    second = sample_clause(rng, sample_subject(rng, ANIMATE, I, WE), tense, negated)
    return link(first, "but" if negated else "and", second)


def sample_subject_relative(rng: Random) -> Text:
    """The boy who sang is hungry."""
    head, tense = sample_phrase(rng, ANIMATE), sample_tense(rng)
    if fits(head.kinds, "kin"):
        raise AmbiguousError(f"{head.en} who: there is but one")
    inner = sample_clause(rng, empty_subject(head), tense, negated=rng.random() < 0.15)
    return sample_clause(rng, with_subject_relative(head, inner), tense, act=True)


TRANSITIVE = [verb for verb in VERBS.values() if verb.objects and not (verb.preposition or verb.recipients)]


def sample_object_relative(rng: Random) -> Text:
    """The apple that the boy ate was good; the girl found the key that the boy lost."""
    verb, tense = rng.choice(TRANSITIVE), sample_tense(rng)
    noun = rng.choice(nouns_of(verb.objects))
    if fits(noun.kinds, "kin"):
        raise AmbiguousError(f"the {noun.en} that: whose")
    determiner, plural = rng.choice(("the", "the", "the", "this")), not noun.mass and rng.random() < 0.55
    head = noun_phrase(determiner, noun.en, *sample_adjectives(rng, noun)[:1], plural=plural)
    whole = with_object_relative(head, clause(sample_subject(rng, verb.subjects), verb.en, tense, preceding=head))
    if rng.random() < 0.5:
        return sample_state(rng, whole, rng.choice((tense, "present")))
    outer = rng.choice([row for row in VERBS.values() if fits(noun.kinds, row.objects) and row is not verb])
    if outer.recipients:
        raise AmbiguousError(f"{outer.en} {whole.en}: to whom")
    return clause(sample_subject(rng, outer.subjects), outer.en, tense, whole)


def sample_contrast(rng: Random) -> Text:
    """The table is old but it is pretty."""
    tense, subject = sample_tense(rng), sample_phrase(rng, f"{ANIMATE} {THINGS}")
    denied = rng.choice((0, 1, None))
    first = sample_state(rng, subject, tense, "not" if denied == 0 else "")
    used = tuple(word for word in first.en.split() if word in ADJECTIVES)
    it = replace(pronoun(subject), adjectives=used)
    return link(first, "but", sample_state(rng, it, tense, "not" if denied == 1 else ""))


def sample_object_reason(rng: Random) -> Text:
    """The girl bought the dress because it was pretty."""
    verb = VERBS[rng.choice(tuple(OBJECT_REASONS))]
    tense, adjective = sample_tense(rng), ADJECTIVES[rng.choice(OBJECT_REASONS[verb.en].split())]
    subject = sample_subject(rng, verb.subjects)
    target = sample_phrase(rng, verb.objects, subject, definite=verb.definite, one=verb.one_object)
    if not fits(target.kinds, adjective.kinds) or any(incompatible(adjective.en, other) for other in target.adjectives):
        raise AmbiguousError(f"{target.en} {adjective.en}")
    it = pronoun(target, rivals=[subject], kinds=adjective.kinds)
    reason = state(it, adjective.en, "past" if tense == "past" else "present")
    return link(clause(subject, verb.en, tense, target), "because", reason)


def sample_subject_reason(rng: Random) -> Text:
    """The cat slept on the rug because it was tired (or, of the rug, comfortable)."""
    verb = VERBS[rng.choice(tuple(SUBJECT_REASONS))]
    tense, reason = sample_tense(rng), rng.choice(SUBJECT_REASONS[verb.en])
    then: Tense = "past" if tense == "past" else "present"
    subject = sample_subject(rng, verb.subjects)
    if reason in ADJECTIVES and any(incompatible(reason, other) for other in subject.adjectives):
        raise AmbiguousError(f"{subject.en} {reason}")
    target = sample_target(rng, subject, verb)
    where = []
    if "on" in verb.adjuncts.split(", ") and not fits(subject.kinds, "large") and rng.random() < 0.7:
        seat = sample_phrase(rng, "seat", subject, definite=True, one=not subject.plural)
        where = [place("on", seat)]
        if rng.random() < 0.5 and "comfortable" not in seat.adjectives:
            it = pronoun(seat, rivals=[subject], kinds="seat")
            return link(clause(subject, verb.en, tense, None, *where), "because", state(it, "comfortable", then))
    if verb.placed and not where:
        raise AmbiguousError(f"{subject.en} {verb.en}: where")
    it = pronoun(subject, rivals=[target] if target else [], kinds=ANIMATE)
    second = clause(it, reason, then) if reason in VERBS else state(it, reason, then)
    return link(clause(subject, verb.en, tense, target, *where), "because", second)


def sample_sequence(rng: Random) -> Text:
    """The boy bought an apple and he ate it."""
    first, second = (VERBS[verb] for verb in rng.choice(SEQUENCES))
    tense, subject = sample_tense(rng), sample_subject(rng, first.subjects)
    target = sample_phrase(rng, first.objects, subject, definite=first.definite, one=first.one_object)
    if not fits(target.kinds, second.objects):
        raise AmbiguousError(f"{second.en} {target.en}")
    negated = rng.random() < 0.25
    again = clause(
        pronoun(subject, rivals=[target], kinds=ANIMATE),
        second.en,
        tense,
        pronoun(target, "object", rivals=[subject], kinds=ANIMATE),
        negation="not" * negated,
    )
    return link(clause(subject, first.en, tense, target), "but" if negated else "and", again)


def sample_exchange(rng: Random) -> Text:
    """The boy helped the girl and she thanked him."""
    first, second = rng.choice(EXCHANGES)
    tense, subject = sample_tense(rng), sample_subject(rng, "person")
    target = sample_phrase(rng, "person", subject, definite=True)
    negated = rng.random() < 0.25
    again = clause(
        pronoun(target, rivals=[subject], kinds="person"),
        second,
        tense,
        pronoun(subject, "object", rivals=[target], kinds="person"),
        negation="not" * negated,
    )
    return link(clause(subject, first, tense, target), "but" if negated else "and", again)


# Sampling weights. The first person has a high weight: each verb has two forms per tense that no other subject uses.
PATTERNS: dict[Callable[[Random], Text], int] = {
    sample_simple: 20,
    sample_first_person: 36,
    sample_coordination: 14,
    sample_subject_relative: 8,
    sample_object_relative: 22,
    sample_contrast: 7,
    sample_object_reason: 12,
    sample_subject_reason: 9,
    sample_sequence: 20,
    sample_exchange: 8,
}
NOUN_FORMS = frozenset(form for noun in NOUNS.values() for form in (noun.en, noun.en_plural or english_s(noun.en)))


def sentences(rng: Random) -> Iterator[Pair]:
    """Sample sentence pairs without end, with repetitions."""
    patterns, weights = tuple(PATTERNS), tuple(PATTERNS.values())
    while True:
        pattern = rng.choices(patterns, weights)[0]
        try:
            text = pattern(rng)
        except AmbiguousError:
            continue
        nouns = [word for word in text.en.replace("'", " ").split() if word in NOUN_FORMS]
        if 4 <= len(text.en.split()) <= MAX_WORDS and len(nouns) == len(set(nouns)):
            yield sentence(text)
