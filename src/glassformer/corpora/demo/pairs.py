"""Distinct sentence pairs of the demo grammar, in training and held-out sets."""

from collections.abc import Iterable, Iterator
from random import Random

from glassformer.corpora.demo.grammar import sentences
from glassformer.corpora.demo.phrases import Pair

# The pair shown first. Excluded from all generated corpora.
LEAD_EXAMPLE: Pair = (
    "The black cat sat on the couch and the brown dog slept on the rug.",
    "Le chat noir était assis sur le canapé et le chien marron dormait sur le tapis.",
)
# One linguistic phenomenon each. Excluded from all generated corpora.
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
HANDWRITTEN_EXAMPLES: tuple[Pair, ...] = (LEAD_EXAMPLE, *SHOWCASE)

PATIENCE = 10_000  # maximum number of successive samples without a new pair


def take_distinct(n: int, source: Iterator[Pair], *known: Iterable[Pair]) -> list[Pair]:
    """The next n pairs with distinct English sentences (French ones may repeat).

    Pairs of which either side occurs in `known` are left out.

    Raises:
        ValueError: n is negative, or the source has too few distinct pairs.
    """
    if n < 0:
        raise ValueError(f"asked for {n} sentence pairs")
    seen_en = {en for pairs in known for en, _ in pairs}
    seen_fr = {fr for pairs in known for _, fr in pairs}
    pairs: list[Pair] = []
    n_rejected = 0
    while len(pairs) < n:
        en, fr = next(source)
        if en in seen_en or fr in seen_fr:
            n_rejected += 1
            if n_rejected == PATIENCE:
                raise ValueError(f"asked for {n:,} distinct sentence pairs, the grammar gave {len(pairs):,}")
            continue
        n_rejected = 0
        seen_en.add(en)
        pairs.append((en, fr))
    return pairs


def sample_pairs(n: int, seed: int) -> list[Pair]:
    """Generate n pairs (English, French) with distinct English sentences, reproducibly for a seed.

    Pairs of which either side occurs in HANDWRITTEN_EXAMPLES are left out.

    Raises:
        ValueError: n is negative, or larger than the number of pairs of the grammar.
    """
    return take_distinct(n, sentences(Random(seed)), HANDWRITTEN_EXAMPLES)


def split_pairs(n_train: int, n_held_out: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Generate training and held-out pairs without a common sentence in either language.

    The held-out pairs depend only on the seed, not on n_train.
    """
    source = sentences(Random(seed))
    held_out = take_distinct(n_held_out, source, HANDWRITTEN_EXAMPLES)
    return take_distinct(n_train, source, HANDWRITTEN_EXAMPLES, held_out), held_out
