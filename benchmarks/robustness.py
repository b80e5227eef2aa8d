"""What is left of the quality of translators on text as users write it: chrF under each noise, and on clean text.

The noise is made here, not by the code that augments training text, from other signs and with other random numbers.
Where a noise changes what a right translation is (capitals, a mark that is copied), the reference is changed alike;
chrF of text in capitals ignores case, and is compared with clean chrF that ignores case. As written: typing errors
without the repair of words that the training text does not have; read otherwise: the part of the words of the clean
text that this repair changes. Paragraph: texts of PARAGRAPH sentences that follow each other. Single words: of WORDS
frequent words that the training text gives one translation of, the part that is translated so, alone on a line.

usage: python -m benchmarks.robustness TRAIN_SRC TRAIN_TGT SRC REF NAME=MODEL ...
"""

import random
import re
import sys
from collections import Counter
from pathlib import Path

from sacrebleu.metrics.chrf import CHRF

from benchmarks.machine import save
from glassformer.corpora.lines import read_lines
from glassformer.learning.lexicon import Lexicon
from glassformer.tasks.registry import load

WORDS = 300
PARAGRAPH = 4
LETTERS = "etaoinshrdlucmfwypvbgk"
NEIGHBORS = dict(zip("qwertyuiopasdfghjklzxcvbnm", "wertyuioposdfghjklkxcvbnmn", strict=True))
"""A neighbor of each letter on a keyboard."""
SIGNS = "🎈🤔🐱🍀🚗⚽🌧🎁"


def typing_errors(src, ref, rng):
    """One typing error in a word of each sentence."""
    words = src.split(" ")
    long = [i for i, word in enumerate(words) if len(word) >= 4 and word.isalpha()]
    if not long:
        return src, ref
    at = rng.choice(long)
    word, i = words[at], rng.randrange(1, len(words[at]) - 1)
    words[at] = rng.choice(
        (
            word[:i] + word[i + 1] + word[i] + word[i + 2 :],
            word[:i] + word[i + 1 :],
            word[:i] + NEIGHBORS.get(word[i].lower(), "e") + word[i + 1 :],
            word[:i] + rng.choice(LETTERS) + word[i:],
        )
    )
    return " ".join(words), ref


def without_end(src, ref, rng):
    ends = re.compile(r"\s*[.!?]+$")
    return ends.sub("", src), (ends.sub("", ref) if ends.search(src) else ref)


def appended(make):
    def noise(src, ref, rng):
        text = make(rng)
        return f"{src} {text}", f"{ref} {text}"

    return noise


def listed(src, ref, rng):
    mark = rng.choice(["- ", "• ", "3. ", "b) ", "* "])
    return mark + src, mark + ref


def code(rng):
    return "".join(rng.choice("ABDEFHKMNRTXYZ0123456789") for _ in range(rng.randrange(3, 8)))


NOISES = {
    "capitals": lambda src, ref, rng: (src.upper(), ref),
    "title case": lambda src, ref, rng: (" ".join(word[:1].upper() + word[1:] for word in src.split(" ")), ref),
    "no capitals": lambda src, ref, rng: (src.lower(), ref),
    "typing error": typing_errors,
    "no end mark": without_end,
    "end mark twice": lambda src, ref, rng: (src + src[-1:], ref + src[-1:]) if src[-1:] in "!?." else (src, ref),
    "emoji": appended(lambda rng: rng.choice(SIGNS)),
    "code": appended(code),
    "list mark": listed,
}
IGNORE_CASE = ("capitals", "title case")


def paragraphs(texts):
    return [" ".join(texts[i : i + PARAGRAPH]) for i in range(0, len(texts), PARAGRAPH)]


def chrf(hypotheses, references, *, lowercase=False):
    return CHRF(lowercase=lowercase).corpus_score(hypotheses, [references]).score


def single_words(train, limit=WORDS):
    """Frequent words of the training text with their translation."""
    lexicon = Lexicon(train)
    counts = Counter(word for src, _ in train for word in lexicon.words(0, src))
    translations = {}
    for src, tgt in lexicon.pairs:
        translations.setdefault(src, []).append(tgt)
    known = [(src, tgts[0]) for src, tgts in translations.items() if len(tgts) == 1 and len(src) > 2]
    return sorted(known, key=lambda pair: -counts[pair[0]])[:limit]


def measure(folder, pairs, words):
    task = load(folder, device="cpu")

    def translate(texts, **options):
        return [nbest[0].text for nbest in task.translate(texts, precision="auto", **options)]

    sources, references = map(list, zip(*pairs, strict=True))
    hypotheses = translate(sources)
    clean = chrf(hypotheses, references)
    clean_caseless = chrf(hypotheses, references, lowercase=True)
    result = {"clean": round(clean, 2)}
    for name, noise in NOISES.items():
        rng = random.Random(name)
        noisy = [noise(src, ref, rng) for src, ref in pairs]
        own, refs = map(list, zip(*noisy, strict=True))
        caseless = name in IGNORE_CASE
        score = chrf(translate(own), refs, lowercase=caseless)
        result[name] = round(score / (clean_caseless if caseless else clean), 4)
        if noise is typing_errors:
            result["as written"] = round(chrf(translate(own, keep_spelling=True), refs) / clean, 4)
    result["paragraph"] = round(chrf(translate(paragraphs(sources)), paragraphs(references)) / clean, 4)
    n_words = sum(len(src.split()) for src in sources)
    result["read otherwise"] = round(sum(len(task.readings(src, None)) for src in sources) / n_words, 6)
    outputs = translate([src for src, _ in words])
    right = [tgt == re.sub(r"\W+$", "", output).lower() for (_, tgt), output in zip(words, outputs, strict=True)]
    result["single words"] = round(sum(right) / len(right), 4)
    return result


def main():
    train, test = (list(zip(*map(read_lines, map(Path, sys.argv[i : i + 2])), strict=True)) for i in (1, 3))
    words = single_words(train)
    results = {}
    for argument in sys.argv[5:]:
        name, _, folder = argument.partition("=")
        results[name] = measure(Path(folder), [(src.strip(), ref.strip()) for src, ref in test], words)
        print(name, results[name], flush=True)
    command = "python -m benchmarks.robustness TRAIN_SRC TRAIN_TGT SRC REF NAME=MODEL ..."
    save("robustness", {"results": results, "n_sentences": len(test)}, command)


if __name__ == "__main__":
    main()
