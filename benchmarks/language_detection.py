"""Accuracy of language detection on short texts, by length: Tatoeba, English, French and German.

python -m benchmarks.language_detection DATA    (the folder with tatoeba-en-fr and tatoeba-en-de)
"""

import gzip
import random
import sys
import time
from pathlib import Path

from glassformer.corpora.language_id import LanguageProfiles, Profile

N_HELD_OUT = 1500
BOUNDS = ((0, 20), (20, 40), (40, 10_000))


def sentences(data: Path) -> dict[str, list[str]]:
    """Distinct sentences of each language, in random order."""
    found: dict[str, set[str]] = {"en": set(), "fr": set(), "de": set()}
    for code in ("fr", "de"):
        for path in sorted((data / f"tatoeba-en-{code}").glob("*.gz")):
            for line in gzip.open(path, "rt", encoding="utf-8"):
                cells = line.rstrip("\n").split("\t")
                if len(cells) >= 2:
                    found["en"].add(cells[0])
                    found[code].add(cells[1])
    ordered = {code: sorted(texts) for code, texts in found.items()}
    for texts in ordered.values():
        random.Random(1).shuffle(texts)
    return ordered


def main() -> None:
    texts = sentences(Path(sys.argv[1]))
    held_out = {code: rows[:N_HELD_OUT] for code, rows in texts.items()}
    for n in (3_000, 10_000, 30_000):
        profiles = LanguageProfiles({code: Profile.of(rows[N_HELD_OUT:][:n]) for code, rows in texts.items()})
        start = time.perf_counter()
        rows = [(len(text), profiles.detect(text)[0][0] == code) for code, some in held_out.items() for text in some]
        ms = (time.perf_counter() - start) / len(rows) * 1e3
        for low, high in BOUNDS:
            right = [is_right for length, is_right in rows if low <= length < high]
            print(
                f"{n:6,} sentences a language: {low:2} to {high - 1:5,} characters:"
                f" {100 * sum(right) / len(right):.1f}% of {len(right):,} right, {ms:.2f} ms a text"
            )


if __name__ == "__main__":
    main()
