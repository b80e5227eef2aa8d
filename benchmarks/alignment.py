"""Alignment error of word alignments, on sentences of the demo's grammar.

The lexicon of the grammar says which French noun or adjective translates which English one. The links of those that
occur once in both sentences are known. The alignment of each such French word is compared with its known link:
alignment error rate = 1 - 2 |A & S| / (|A| + |S|), with A the alignment of these words and S the known links (Och and
Ney 2003).
The reference translations are aligned, so errors of translation do not count.

With MODEL, SRC, REF and LINKS, the alignment of a parallel text by another program in the format of Pharaoh, such as
eflomal, the agreement with it is measured: 2 |A & B| / (|A| + |B|).

usage: python -m benchmarks.alignment FOLDER [MODEL SRC REF LINKS]   (FOLDER: the model of `glassformer demo`)
"""

import re
import sys
from pathlib import Path

from benchmarks.machine import save
from glassformer.cli.demo import N_DEV, N_TEST
from glassformer.corpora.demo.inflection import english_s, french_feminine, french_plural
from glassformer.corpora.demo.lexicon import ADJECTIVES, NOUNS
from glassformer.corpora.demo.pairs import split_pairs
from glassformer.corpora.lines import read_lines
from glassformer.tasks.alignment import align
from glassformer.tasks.registry import load


def dictionary():
    """English form -> the French forms of the same word."""
    forms = {}
    for noun in NOUNS.values():
        forms.setdefault(noun.en, set()).add(noun.fr)
        forms.setdefault(noun.en_plural or english_s(noun.en), set()).add(noun.fr_plural or french_plural(noun.fr))
    for adjective in ADJECTIVES.values():
        feminine = adjective.feminine or french_feminine(adjective.fr)
        some = {adjective.fr, feminine, adjective.before_vowel or adjective.fr}
        forms.setdefault(adjective.en, set()).update(some | {french_plural(form) for form in some})
    return {en: {form for form in fr if " " not in form} for en, fr in forms.items() if " " not in en}


def bare(word):
    """A word without punctuation, elided article and possessive."""
    return re.sub(r"^\w{1,2}['’]", "", word.strip(".,;:!?").lower()).removesuffix("'s")


def links(en, fr, forms):
    """The known links: index of the French word -> index of the English word."""
    english, french = ([bare(word) for word in text.split()] for text in (en, fr))
    known = {}
    for i, word in enumerate(english):
        targets = [j for j, other in enumerate(french) if other in forms.get(word, ())]
        if len(targets) == 1 and english.count(word) == 1:
            known[targets[0]] = i if targets[0] not in known else None
    return {j: i for j, i in known.items() if i is not None}


def main():
    task = load(sys.argv[1], device="cpu")
    forms = dictionary()
    _, pairs = split_pairs(0, N_DEV + N_TEST, seed=1)  # those of the demo
    found = align(task, [en for en, _ in pairs], [fr for _, fr in pairs])
    n_known = n_found = n_right = 0
    for (en, fr), pairs_of_line in zip(pairs, found, strict=True):
        known = links(en, fr, forms)
        aligned = {t: s for s, t in pairs_of_line}
        n_known += len(known)
        n_found += sum(j in aligned for j in known)
        n_right += sum(aligned.get(j) == i for j, i in known.items())
    record = {
        "sentences": len(pairs),
        "known_links": n_known,
        "alignment_error_rate": round(1 - 2 * n_right / (n_known + n_found), 4),
    }
    if len(sys.argv) > 2:
        record["agreement_with_another_aligner"] = round(agreement(*sys.argv[2:6]), 4)
    print(record)
    save("alignment", record, "python -m benchmarks.alignment FOLDER MODEL SRC REF LINKS")


def agreement(model, src, ref, links_file):
    """F1 of our links and those of another program."""
    sources, references, links_of = (list(read_lines(Path(path))) for path in (src, ref, links_file))
    ours = [set(pairs) for pairs in align(load(model, device="cpu"), sources, references)]
    theirs = [{tuple(map(int, link.split("-"))) for link in line.split()} for line in links_of]
    n_equal = sum(len(a & b) for a, b in zip(ours, theirs, strict=True))
    return 2 * n_equal / sum(len(a) + len(b) for a, b in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    main()
