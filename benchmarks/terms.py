"""Placeholders and glossary terms in translations: how many arrive, what the rest loses, and what it costs.

Placeholders, tags, URLs and numbers with units are put before, after, around or into the sentences of a test set. A
glossary of frequent words is made from the training text: words that mostly occur together (Dice coefficient).

usage: python -m benchmarks.terms MODEL SRC REF TRAIN_SRC TRAIN_REF
"""

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.machine import alternate, save
from glassformer.corpora.lines import read_lines
from glassformer.corpora.terms import Glossary, matches, protect_pattern, unmet
from glassformer.decode_config import DecodeConfig
from glassformer.metrics import bleu
from glassformer.tasks.registry import load

SPANS = (
    "{name}",
    "%d",
    "${user}",
    "https://example.org/a?b=1",
    "info@example.org",
    "5 km",
    "&amp;",
    "%(count)s",
    "80 kg",
)
MAX_TERMS = 5
MIN_COUNT = 30
MIN_DICE = 0.3


def templated(text, i):
    """A sentence with one or two protected spans, in turn before, after, around and inside."""
    span = SPANS[i % len(SPANS)]
    words = text.split()
    middle = len(words) // 2
    forms = [
        f"{span}: {text}",
        f"{text} ({span})",
        f"<b>{text}</b>",
        " ".join([*words[:middle], span, *words[middle:]]),
        " ".join([*words[:1], f"<i>{' '.join(words[1:middle])}</i>", *words[middle:], span]),
    ]
    return forms[i // len(SPANS) % len(forms)]


def without(spans, text):
    """The text without the spans and the punctuation that was added with them."""
    for span in sorted(set(spans), key=len, reverse=True):
        text = re.sub(rf"\(?{re.escape(span)}\)?:?", " ", text)
    return re.sub(r"\s+([.,!?])", r"\1", " ".join(text.split()))


def words(text):
    return set(re.findall(r"\w{4,}", text))


def make_glossary(train_sources, train_references):
    """Frequent source words in lower case -> the capitalized or lower-case words that they occur with."""
    pairs, sources, targets = Counter(), Counter(), Counter()
    for src, ref in zip(train_sources, train_references, strict=True):
        left, right = words(src.lower()), words(ref)
        sources.update(left)
        targets.update(right)
        pairs.update((a, b) for a in left for b in right)
    best = {}
    for (a, b), n in pairs.items():
        dice = 2 * n / (sources[a] + targets[b])
        if n >= MIN_COUNT and dice >= MIN_DICE:
            best.setdefault(a, []).append((-dice, b))
    return {a: [b for _, b in sorted(forms)[:3]] for a, forms in best.items()}


def main():
    folder, *paths = map(Path, sys.argv[1:6])
    sources, references, train_sources, train_references = (list(read_lines(path)) for path in paths)
    task = load(folder, device="cpu")
    plain = DecodeConfig(precision="int8")
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "terms.tsv"
        terms = make_glossary(train_sources, train_references)
        path.write_text("".join(f"{a}\t{'|'.join(forms)}\n" for a, forms in sorted(terms.items())))
        results = {}
        pattern = protect_pattern(["all"])
        protecting = DecodeConfig(precision="int8", protect=("all",))
        texts = [templated(text, i) for i, text in enumerate(sources)]
        required = [[text[a:b] for a, b in matches(pattern, text)] for text in texts]
        untouched = task.run(sources, plain)
        outputs, unprotected = task.run(texts, protecting), task.run(texts, plain)
        wrong, wrong_unprotected = (
            sum(any(o.count(span) != t.count(span) for span in r) for t, r, o in zip(texts, required, out, strict=True))
            for out in (outputs, unprotected)
        )
        results["placeholders"] = {
            "lines": len(texts),
            "spans": sum(map(len, required)),
            "lines_wrong": wrong,
            "lines_wrong_without_protection": wrong_unprotected,
            "bleu_of_untouched_text": bleu(untouched, references),
            "bleu_of_untouched_text_with_protection": bleu(task.run(sources, protecting), references),
            "bleu_of_rest": bleu([without(s, o) for s, o in zip(required, outputs, strict=True)], references),
            "bleu_of_rest_without_protection": bleu(
                [without(s, o) for s, o in zip(required, unprotected, strict=True)], references
            ),
        }
        print(results["placeholders"], flush=True)
        glossary = Glossary.read(path)
        found = [list(glossary.find(text)) for text in sources]
        # Terms that the reference has as well: the translation that a glossary of this text would list.
        chosen = [i for i, f in enumerate(found) if 1 <= len(f) <= MAX_TERMS and not unmet(f, references[i])]
        constrained = DecodeConfig(precision="int8", glossary=path)
        of_chosen = [sources[i] for i in chosen]
        outputs, free = task.run(of_chosen, constrained), task.run(of_chosen, plain)
        seconds = alternate(
            {"glossary": lambda: task.run(of_chosen, constrained), "plain": lambda: task.run(of_chosen, plain)},
            rounds=3,
        )
        right = [references[i] for i in chosen]
        results["glossary"] = {
            "terms_of_glossary": len(terms),
            "lines": len(chosen),
            "terms": sum(len(found[i]) for i in chosen),
            "terms_missing": sum(len(unmet(found[i], o)) for i, o in zip(chosen, outputs, strict=True)),
            "terms_missing_without_glossary": sum(len(unmet(found[i], o)) for i, o in zip(chosen, free, strict=True)),
            "bleu": bleu(outputs, right),
            "bleu_without_glossary": bleu(free, right),
            "speed_ratio": round(seconds["plain"] / seconds["glossary"], 2),
        }
        print(results["glossary"], flush=True)
    save("terms", results, "python -m benchmarks.terms MODEL SRC REF TRAIN_SRC TRAIN_REF")


if __name__ == "__main__":
    main()
