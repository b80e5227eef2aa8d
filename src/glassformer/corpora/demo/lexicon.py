"""Lexicon of the demo grammar: one entry per word, with irregular forms only."""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from glassformer.corpora.demo.inflection import Tense, french_plural


@dataclass(frozen=True)
class Noun:
    """A noun. `kinds` are its semantic classes, which determine the verbs and adjectives it combines with."""

    en: str
    fr: str
    gender: Literal["m", "f"]
    kinds: str
    en_plural: str = ""
    fr_plural: str = ""
    aspirated: bool = False  # h aspiré: no elision before it (le hibou), unlike l'homme
    mass: bool = False


@dataclass(frozen=True)
class Adjective:
    """An adjective. `kinds` are the semantic classes of the nouns it describes."""

    en: str
    fr: str
    kinds: str
    feminine: str = ""
    before: bool = False  # precedes its noun in French
    before_vowel: str = ""  # masculine singular before a vowel: un vieil homme
    invariable: bool = False
    predicative: bool = True  # False: "nouveau" and "gros" change their meaning after être


@dataclass(frozen=True)
class Verb:
    """A verb in both languages. The first English word is conjugated, the others follow it ("wait for")."""

    en: str
    fr: str
    subjects: str
    objects: str = ""
    past: str = ""
    stative: bool = False  # the past is the imparfait; otherwise the passé composé
    with_etre: bool = False
    reflexive: bool = False
    complement: str = ""  # follows the French verb: avoir faim; after être it agrees: être assis
    preposition: str = ""  # before the French object
    recipients: str = ""  # kinds of the second object: give the apple to the girl
    definite: bool = False  # only definite objects: with a, some, two or many, French would need another construction
    generic: bool = False  # "likes apples" is aime les pommes
    one_object: bool = False  # only singular objects, as of "wear a hat"
    adjuncts: str = ""  # keys of PREPOSITIONS, comma-separated
    placed: bool = False  # always has an adverbial of place, as "stay"
    future: bool = True  # False where the future would be another verb: être assis, s'asseoir


@dataclass(frozen=True)
class Determiner:
    """Forms of a determiner. An empty English form means that the determiner has no such number."""

    en: str
    en_plural: str
    fr_m: str
    fr_f: str
    fr_plural: str


@dataclass(frozen=True)
class Preposition:
    """A preposition and the semantic classes of its complements; for large animals, those of `outdoors`."""

    en: str
    fr: str
    kinds: str
    outdoors: str = ""


NOUNS = {
    noun.en: noun
    for noun in (
        Noun("man", "homme", "m", "person elder", en_plural="men"),
        Noun("woman", "femme", "f", "person elder", en_plural="women"),
        Noun("boy", "garçon", "m", "person"),
        Noun("girl", "fille", "f", "person"),
        Noun("king", "roi", "m", "person elder"),
        Noun("queen", "reine", "f", "person elder"),
        Noun("prince", "prince", "m", "person"),
        Noun("princess", "princesse", "f", "person"),
        Noun("actor", "acteur", "m", "person elder star"),
        Noun("actress", "actrice", "f", "person elder star"),
        Noun("hero", "héros", "m", "person elder star", en_plural="heroes", aspirated=True),
        Noun("heroine", "héroïne", "f", "person elder star"),
        Noun("father", "père", "m", "person kin parent"),
        Noun("mother", "mère", "f", "person kin parent"),
        Noun("brother", "frère", "m", "person kin"),
        Noun("sister", "sœur", "f", "person kin"),
        Noun("uncle", "oncle", "m", "person kin"),
        Noun("aunt", "tante", "f", "person kin"),
        Noun("nephew", "neveu", "m", "person kin", fr_plural="neveux"),
        Noun("niece", "nièce", "f", "person kin"),
        Noun("cat", "chat", "m", "animal sitter pet furry"),
        Noun("dog", "chien", "m", "animal sitter pet furry beast"),
        Noun("rabbit", "lapin", "m", "animal sitter pet furry"),
        Noun("mouse", "souris", "f", "animal sitter furry", en_plural="mice"),
        Noun("fox", "renard", "m", "animal sitter"),
        Noun("squirrel", "écureuil", "m", "animal sitter"),
        Noun("frog", "grenouille", "f", "animal sitter"),
        Noun("hedgehog", "hérisson", "m", "animal", aspirated=True),
        Noun("owl", "hibou", "m", "animal bird", fr_plural="hiboux", aspirated=True),
        Noun("bird", "oiseau", "m", "animal bird singer"),
        Noun("turtle", "tortue", "f", "animal pet"),
        Noun("goose", "oie", "f", "animal large pet beast", en_plural="geese"),
        Noun("horse", "cheval", "m", "animal large pet furry"),
        Noun("cow", "vache", "f", "animal large pet furry"),
        Noun("goat", "chèvre", "f", "animal large pet furry"),
        Noun("wolf", "loup", "m", "animal large furry beast", en_plural="wolves"),
        Noun("bear", "ours", "m", "animal large furry beast"),
        Noun("elephant", "éléphant", "m", "animal large beast"),
        Noun("apple", "pomme", "f", "food fruit goods"),
        Noun("pear", "poire", "f", "food fruit goods"),
        Noun("cherry", "cerise", "f", "food fruit goods"),
        Noun("strawberry", "fraise", "f", "food fruit goods"),
        Noun("tomato", "tomate", "f", "food goods", en_plural="tomatoes"),
        Noun("potato", "pomme de terre", "f", "food goods", en_plural="potatoes", fr_plural="pommes de terre"),
        Noun("bean", "haricot", "m", "food goods", aspirated=True),
        Noun("cabbage", "chou", "m", "food goods", fr_plural="choux"),
        Noun("egg", "œuf", "m", "food goods fragile"),
        Noun("cake", "gâteau", "m", "food goods dish"),
        Noun("bread", "pain", "m", "meal", mass=True),
        Noun("cheese", "fromage", "m", "meal", mass=True),
        Noun("soup", "soupe", "f", "meal dish warm", mass=True),
        Noun("water", "eau", "f", "drink warm", mass=True),
        Noun("milk", "lait", "m", "drink warm", mass=True),
        Noun("coffee", "café", "m", "drink treat warm", mass=True),
        Noun("tea", "thé", "m", "drink treat warm", mass=True),
        Noun("lemonade", "limonade", "f", "drink treat", mass=True),
        Noun("book", "livre", "m", "thing goods text work colored"),
        Noun("newspaper", "journal", "m", "thing goods text"),
        Noun("letter", "lettre", "f", "thing text work"),
        Noun("poem", "poème", "m", "text work"),
        Noun("story", "histoire", "f", "text work"),
        Noun("hat", "chapeau", "m", "clothes worn thing goods colored"),
        Noun("coat", "manteau", "m", "clothes worn thing goods washable colored"),
        Noun("dress", "robe", "f", "clothes thing goods washable colored"),
        Noun("shirt", "chemise", "f", "clothes worn thing goods washable colored"),
        Noun("jacket", "veste", "f", "clothes worn thing goods washable colored"),
        Noun("scarf", "écharpe", "f", "clothes worn thing goods washable colored", en_plural="scarves"),
        Noun("key", "clé", "f", "thing"),
        Noun("knife", "couteau", "m", "thing goods washable", en_plural="knives"),
        Noun("axe", "hache", "f", "thing goods", aspirated=True),
        Noun("bag", "sac", "m", "thing goods container colored"),
        Noun("box", "boîte", "f", "thing goods container colored paintable"),
        Noun("umbrella", "parapluie", "m", "thing goods colored"),
        Noun("lamp", "lampe", "f", "thing goods machine colored"),
        Noun("clock", "horloge", "f", "thing goods machine"),
        Noun("plate", "assiette", "f", "thing goods fragile washable colored"),
        Noun("jewel", "bijou", "m", "thing goods", fr_plural="bijoux"),
        Noun("bicycle", "vélo", "m", "thing goods machine washable colored"),
        Noun("car", "voiture", "f", "goods machine washable colored landmark"),
        Noun("boat", "bateau", "m", "goods machine washable colored paintable"),
        Noun("couch", "canapé", "m", "seat furniture goods colored"),
        Noun("armchair", "fauteuil", "m", "seat furniture goods colored"),
        Noun("chair", "chaise", "f", "seat furniture cover goods colored paintable"),
        Noun("bench", "banc", "m", "seat furniture cover goods colored paintable"),
        Noun("bed", "lit", "m", "seat furniture cover goods"),
        Noun("rug", "tapis", "m", "seat goods colored washable"),
        Noun("table", "table", "f", "furniture cover goods colored paintable washable"),
        Noun("house", "maison", "f", "home goods landmark place colored paintable"),
        Noun("castle", "château", "m", "home site landmark place"),
        Noun("village", "village", "m", "home site place"),
        Noun("forest", "forêt", "f", "home place outdoors risky"),
        Noun("garden", "jardin", "m", "place outdoors"),
        Noun("field", "champ", "m", "place outdoors"),
        Noun("park", "parc", "m", "site place outdoors"),
        Noun("kitchen", "cuisine", "f", "place room"),
        Noun("bedroom", "chambre", "f", "place room"),
        Noun("hotel", "hôtel", "m", "site place landmark"),
        Noun("hospital", "hôpital", "m", "site landmark"),
        Noun("school", "école", "f", "site place landmark"),
        Noun("church", "église", "f", "site place landmark"),
        Noun("library", "bibliothèque", "f", "site place landmark"),
        Noun("museum", "musée", "m", "site place landmark"),
        Noun("river", "rivière", "f", "swim natural risky"),
        Noun("lake", "lac", "m", "swim natural"),
        Noun("tree", "arbre", "m", "tree natural"),
        Noun("bridge", "pont", "m", "natural landmark risky"),
        Noun("door", "porte", "f", "opening natural colored paintable"),
        Noun("window", "fenêtre", "f", "opening furniture fragile"),
    )
}

ADJECTIVES = {
    adjective.en: adjective
    for adjective in (
        Adjective("small", "petit", "person animal food thing furniture home site room tree natural", before=True),
        Adjective("tall", "grand", "person tree", before=True),
        Adjective("large", "grand", "furniture home site room swim outdoors", before=True),
        Adjective("big", "gros", "animal food container", "grosse", before=True, predicative=False),
        Adjective(
            "beautiful",
            "beau",
            "person animal clothes home site tree natural work",
            "belle",
            before=True,
            before_vowel="bel",
        ),
        Adjective("pretty", "joli", "clothes container furniture home room outdoors natural", before=True),
        Adjective(
            "old",
            "vieux",
            "elder animal thing furniture home site tree landmark",
            "vieille",
            before=True,
            before_vowel="vieil",
        ),
        Adjective("young", "jeune", "person animal", before=True),
        Adjective(
            "new",
            "nouveau",
            "thing machine furniture site landmark room",
            "nouvelle",
            before=True,
            before_vowel="nouvel",
            predicative=False,
        ),
        Adjective("good", "bon", "food meal drink text", "bonne", before=True),
        Adjective("black", "noir", "furry colored"),
        Adjective("white", "blanc", "furry colored", "blanche"),
        Adjective("gray", "gris", "furry colored"),
        Adjective("brown", "marron", "furry colored", invariable=True),
        Adjective("orange", "orange", "colored", invariable=True),
        Adjective("red", "rouge", "colored fruit"),
        Adjective("green", "vert", "colored"),
        Adjective("blue", "bleu", "colored"),
        Adjective("yellow", "jaune", "colored"),
        Adjective("purple", "violet", "colored", "violette"),
        Adjective("happy", "heureux", "person animal"),
        Adjective("tired", "fatigué", "person animal"),
        Adjective("sad", "triste", "person animal"),
        Adjective("sick", "malade", "person animal"),
        Adjective("shy", "timide", "person animal"),
        Adjective("lazy", "paresseux", "person animal"),
        Adjective("kind", "gentil", "person", "gentille"),
        Adjective("proud", "fier", "person"),
        Adjective("jealous", "jaloux", "person", "jalouse"),
        Adjective("famous", "célèbre", "star site"),
        Adjective("dangerous", "dangereux", "beast risky"),
        Adjective("dirty", "sale", "washable room"),
        Adjective("clean", "propre", "washable room"),
        Adjective("dry", "sec", "clothes", "sèche"),
        Adjective("expensive", "cher", "clothes machine"),
        Adjective("heavy", "lourd", "container furniture"),
        Adjective("broken", "cassé", "machine"),
        Adjective("empty", "vide", "container site room"),
        Adjective("comfortable", "confortable", "seat"),
        Adjective("fresh", "frais", "food", "fraîche"),
        Adjective("delicious", "délicieux", "food meal treat"),
        Adjective("hot", "chaud", "warm"),
        Adjective("cold", "froid", "warm"),
    )
}

ANIMATE = "person animal"
BESIDE = "near, behind, in front of"

VERBS = {
    verb.en: verb
    for verb in (
        Verb("be", "être", "", stative=True),
        Verb("eat", "manger", ANIMATE, "food meal", past="ate"),
        Verb("drink", "boire", ANIMATE, "drink", past="drank"),
        Verb("see", "voir", ANIMATE, "person animal thing landmark natural", past="saw"),
        Verb("look at", "regarder", ANIMATE, "person animal thing natural", definite=True),
        Verb("follow", "suivre", ANIMATE, "person animal"),
        Verb("buy", "acheter", "person", "goods meal drink", past="bought"),
        Verb("sell", "vendre", "person", "goods", past="sold"),
        Verb("choose", "choisir", "person", "goods", past="chose"),
        Verb("find", "trouver", "person", "thing pet", past="found"),
        Verb("lose", "perdre", "person", "thing", past="lost"),
        Verb("read", "lire", "person", "text", past="read"),
        Verb("write", "écrire", "person", "work", past="wrote"),
        Verb("open", "ouvrir", "person", "container opening"),
        Verb("close", "fermer", "person", "container opening"),
        Verb("wash", "laver", "person", "washable"),
        Verb("break", "casser", "person", "fragile", past="broke"),
        Verb("repair", "réparer", "person", "machine"),
        Verb("paint", "peindre", "person", "paintable"),
        Verb("prepare", "préparer", "person", "dish"),
        Verb("visit", "visiter", "person", "site"),
        Verb("leave", "quitter", "person", "site home", past="left", definite=True, one_object=True),
        Verb("help", "aider", "person", "person"),
        Verb("thank", "remercier", "person", "person"),
        Verb("give", "donner", "person", "food thing", past="gave", recipients="person"),
        Verb("love", "aimer", ANIMATE, "person pet food meal drink", stative=True, definite=True, generic=True),
        Verb("hate", "détester", ANIMATE, "beast food drink", stative=True, definite=True, generic=True, future=False),
        Verb("know", "connaître", "person", "person site", past="knew", stative=True, definite=True, future=False),
        Verb("want", "vouloir", "person", "goods meal drink", stative=True, future=False),
        Verb("have", "avoir", "person", "thing pet machine", past="had", stative=True),
        Verb("wear", "porter", "person", "worn", past="wore", stative=True, one_object=True),
        Verb("wait for", "attendre", ANIMATE, "person", stative=True, definite=True),
        Verb("need", "avoir", "person", "thing", stative=True, complement="besoin", preposition="de", definite=True),
        Verb(
            "be afraid of", "avoir", ANIMATE, "beast", stative=True, complement="peur", preposition="de", definite=True
        ),
        Verb("be hungry", "avoir", ANIMATE, stative=True, complement="faim"),
        Verb("be thirsty", "avoir", ANIMATE, stative=True, complement="soif"),
        Verb(
            "think about",
            "penser",
            "person",
            "person pet",
            past="thought",
            stative=True,
            preposition="à",
            definite=True,
        ),
        Verb("live in", "habiter", "person", "home", stative=True, preposition="dans", one_object=True, definite=True),
        Verb("sleep", "dormir", ANIMATE, past="slept", stative=True, adjuncts=f"on, in, under, {BESIDE}"),
        Verb(
            "sit",
            "être",
            "person sitter",
            past="sat",
            stative=True,
            complement="assis",
            placed=True,
            future=False,
            adjuncts=f"on, under, {BESIDE}",
        ),
        Verb("talk to", "parler", "person", "person", preposition="à", definite=True),
        Verb(
            "go to",
            "aller",
            "person",
            "site",
            past="went",
            with_etre=True,
            preposition="à",
            one_object=True,
            definite=True,
        ),
        Verb(
            "come out of",
            "sortir",
            "person",
            "site home room",
            past="came",
            with_etre=True,
            preposition="de",
            one_object=True,
            definite=True,
        ),
        Verb("come back", "revenir", ANIMATE, past="came", with_etre=True),
        Verb("stay", "rester", ANIMATE, with_etre=True, placed=True, adjuncts="in, near, behind"),
        Verb("rest", "reposer", ANIMATE, with_etre=True, reflexive=True, adjuncts=f"on, in, under, {BESIDE}"),
        Verb("stop", "arrêter", ANIMATE, past="stopped", with_etre=True, reflexive=True, adjuncts="near, in front of"),
        Verb(
            "fall asleep",
            "endormir",
            ANIMATE,
            past="fell",
            with_etre=True,
            reflexive=True,
            adjuncts=f"on, in, under, {BESIDE}",
        ),
        Verb("get dressed", "habiller", "person", past="got", with_etre=True, reflexive=True),
        Verb("laugh", "rire", "person", adjuncts="in, with"),
        Verb("cry", "pleurer", "person", adjuncts="in"),
        Verb("sing", "chanter", "person singer", past="sang", adjuncts="in"),
        Verb("dance", "danser", "person", adjuncts="in, with"),
        Verb("work", "travailler", "person", adjuncts="in, with"),
        Verb("walk", "marcher", ANIMATE, adjuncts="in"),
        Verb("run", "courir", ANIMATE, past="ran", adjuncts="in"),
        Verb("swim in", "nager", ANIMATE, "swim", past="swam", preposition="dans", one_object=True, definite=True),
    )
}

PREPOSITIONS = {
    preposition.en: preposition
    for preposition in (
        Preposition("on", "sur", "seat"),
        Preposition("in", "dans", "place", "outdoors"),
        Preposition("under", "sous", "cover tree", "tree"),
        Preposition("near", "près de", "furniture landmark natural", "landmark natural"),
        Preposition("behind", "derrière", "furniture landmark tree", "landmark tree"),
        Preposition("in front of", "devant", "furniture landmark", "landmark"),
        Preposition("with", "avec", "person"),
    )
}

DETERMINERS = {
    "the": Determiner("the", "the", "le", "la", "les"),
    "a": Determiner("a", "some", "un", "une", "des"),
    "": Determiner("", "", "le", "la", "les"),  # generic: "likes apples", aime les pommes
    "this": Determiner("this", "these", "ce", "cette", "ces"),
    "every": Determiner("every", "", "chaque", "chaque", ""),
    "two": Determiner("", "two", "", "", "deux"),
    "three": Determiner("", "three", "", "", "trois"),
    "many": Determiner("", "many", "", "", "beaucoup de"),
    "my": Determiner("my", "my", "mon", "ma", "mes"),
    "our": Determiner("our", "our", "notre", "notre", "nos"),
    "his": Determiner("his", "his", "son", "sa", "ses"),
    "her": Determiner("her", "her", "son", "sa", "ses"),
    "their": Determiner("their", "their", "leur", "leur", "leurs"),
}

NEGATIONS = {"not": "pas", "never": "jamais", "no longer": "plus"}
FREQUENCIES = {"often": "souvent", "always": "toujours", "rarely": "rarement"}
DEGREES = {"very": "très", "really": "vraiment"}
CONJUNCTIONS = {"and": "et", "but": "mais", "because": "parce que"}
MANNERS = {  # adverb -> French adverb, verbs it combines with
    "slowly": ("lentement", "walk dance"),
    "quickly": ("rapidement", "walk run work"),
    "loudly": ("bruyamment", "laugh cry sing"),
}
TIMES: dict[Tense, dict[str, str]] = {
    "present": {"every day": "tous les jours", "in the morning": "le matin"},
    "past": {"yesterday": "hier", "last week": "la semaine dernière"},
    "future": {"tomorrow": "demain", "next week": "la semaine prochaine"},
}

# Sets of adjectives of which at most one can describe a noun.
THEMES = (
    "black white gray brown orange red green blue yellow purple",
    "small tall large big",
    "old young new",
    "beautiful pretty",
    "good delicious fresh",
    "happy sad",
    "tired sick lazy",
    "dirty clean",
    "hot cold",
)
LASTING = f"{THEMES[0]} {THEMES[1]} {THEMES[2]} {THEMES[3]} famous dangerous kind"  # not used in the future
UNGRADED = f"{THEMES[0]} broken empty delicious"  # not used with "very"

# Reasons for the action of a verb: adjectives of its object, adjectives or verbs of its subject.
OBJECT_REASONS = {
    "buy": "pretty beautiful comfortable delicious",
    "sell": "old heavy dirty",
    "choose": "beautiful pretty clean",
    "wash": "dirty",
    "repair": "broken old",
    "paint": "old",
    "want": "pretty beautiful comfortable",
    "read": "good",
    "love": "good delicious",
    "hate": "dangerous cold",
    "eat": "good fresh delicious",
    "visit": "famous beautiful",
    "wear": "clean dry pretty",
    "be afraid of": "dangerous",
}
SUBJECT_REASONS = {
    "eat": ("be hungry",),
    "drink": ("be thirsty",),
    "sleep": ("tired", "sick"),
    "rest": ("tired",),
    "fall asleep": ("tired",),
    "cry": ("sad", "be hungry"),
    "laugh": ("happy",),
    "sing": ("happy",),
    "dance": ("happy",),
    "stop": ("be thirsty", "tired"),
    "come back": ("be hungry",),
    "sit": ("tired", "sick"),
}
# Two successive actions on one object: "The boy bought an apple and he ate it."
SEQUENCES = (
    ("buy", "eat"),
    ("buy", "sell"),
    ("buy", "lose"),
    ("buy", "read"),
    ("buy", "drink"),
    ("buy", "repair"),
    ("find", "sell"),
    ("find", "open"),
    ("find", "follow"),
    ("write", "read"),
    ("write", "lose"),
    ("lose", "find"),
    ("open", "close"),
    ("break", "repair"),
    ("choose", "buy"),
    ("choose", "paint"),
    ("wash", "eat"),
    ("wash", "paint"),
    ("see", "buy"),
    ("see", "visit"),
    ("see", "choose"),
    ("prepare", "eat"),
    ("look at", "wash"),
    ("see", "break"),
    ("want", "prepare"),
    ("repair", "sell"),
    ("see", "look at"),
)
# Actions of two people in succession: "The boy helped the girl and she thanked him."
EXCHANGES = (
    ("help", "thank"),
    ("see", "follow"),
    ("see", "help"),
    ("follow", "see"),
    ("follow", "look at"),
    ("look at", "see"),
    ("look at", "follow"),
    ("know", "love"),
    ("love", "know"),
)

ENTRIES = (
    *NOUNS,
    *ADJECTIVES,
    *VERBS,
    *PREPOSITIONS,
    *filter(None, DETERMINERS),
    *NEGATIONS,
    *FREQUENCIES,
    *DEGREES,
    *CONJUNCTIONS,
    *MANNERS,
    *(time for times in TIMES.values() for time in times),
)

ASPIRATED = frozenset(
    form for noun in NOUNS.values() if noun.aspirated for form in (noun.fr, noun.fr_plural or french_plural(noun.fr))
)


@cache
def fits(kinds: str, wanted: str) -> bool:
    """Whether two lists of kinds have a common element."""
    return not set(kinds.split()).isdisjoint(wanted.split())


@cache
def nouns_of(kinds: str) -> tuple[Noun, ...]:
    """The nouns of any of these kinds."""
    return tuple(noun for noun in NOUNS.values() if fits(noun.kinds, kinds))


@cache
def adjectives_of(kinds: str) -> tuple[Adjective, ...]:
    """The adjectives that describe a noun of these kinds."""
    return tuple(adjective for adjective in ADJECTIVES.values() if fits(adjective.kinds, kinds))


@cache
def verbs_of(kinds: str) -> tuple[Verb, ...]:
    """The verbs for subjects of these kinds. Verbs that cannot form a relative clause with "que" are listed twice."""
    return tuple(
        verb
        for verb in VERBS.values()
        if fits(kinds, verb.subjects)
        for _ in range(1 if verb.objects and not verb.preposition else 2)
    )
