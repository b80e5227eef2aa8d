"""Outputs that repeat themselves on hostile inputs: how many there are, are detected, and are left.

5,000 inputs from the lines of a test set: repeated, shuffled, cut, joined, in capitals, with words of other lines, with
random characters and with random words. An independent check counts outputs in which up to 30 words follow each other
three times, or up to 30 characters within a word four times, by comparing all pairs of neighbouring parts.

usage: python -m benchmarks.loops MODEL SRC
"""

import random
import sys
from pathlib import Path

from benchmarks.machine import save
from glassformer.corpora.lines import read_lines
from glassformer.decode_config import DecodeConfig
from glassformer.tasks.registry import load

N_INPUTS = 5_000
LONGEST = 30
ALPHABET = "abcdefghijklmnopqrstuvwxyz äöüßéèñçøåłżяжщ中文字日本語🙂🚲0123456789.,;:!?-()[]{}<>&%$#@/\\'\""


def hostile(lines, n, seed=1):
    """Inputs of one line each."""
    rng = random.Random(seed)
    words = sorted({word for line in lines for word in line.split()})
    shuffled = lambda parts: rng.sample(parts, len(parts))
    kinds = [
        lambda line: " ".join([rng.choice(words)] * rng.randrange(3, 60)),
        lambda line: " ".join([" ".join(line.split()[: rng.randrange(2, 6)])] * rng.randrange(3, 15)),
        lambda line: " ".join(shuffled(line.split())),
        lambda line: line[: rng.randrange(1, len(line))],
        lambda line: " ".join(rng.sample(lines, 4)),
        lambda line: line.upper(),
        lambda line: " ".join(rng.choice(words) for _ in range(rng.randrange(1, 60))),
        lambda line: "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(1, 200))),
        lambda line: "".join(shuffled(list(line))),
        lambda line: rng.choice(ALPHABET) * rng.randrange(2, 200),
        lambda line: " ".join(line),
        lambda line: line.replace(" ", ""),
    ]
    return [kinds[i % len(kinds)](rng.choice(lines)) for i in range(n)]


def repeated_parts(parts, times):
    """Whether a sequence of parts occurs `times` times in a row."""
    for n in range(1, min(LONGEST, len(parts) // times) + 1):
        for start in range(len(parts) - times * n + 1):
            if all(parts[start + k * n : start + (k + 1) * n] == parts[start : start + n] for k in range(1, times)):
                return True
    return False


def is_repeated(text):
    """The independent check. Digits, and two equal letters in a row, are no loops."""
    words = text.lower().split()
    if repeated_parts(words, 3):
        return True
    return any(repeated_parts(word, 10) or repeated_syllables(word) for word in words)


def repeated_syllables(word):
    """Two to twenty letters, four times in a row."""
    letters = [word[i : i + 4 * n] for n in range(2, 21) for i in range(len(word) - 4 * n + 1)]
    return any(part.isalpha() and part == part[: len(part) // 4] * 4 for part in letters)


def main():
    folder, path = map(Path, sys.argv[1:3])
    inputs = hostile([line for line in read_lines(path) if line.strip()], N_INPUTS)
    task = load(folder, device="cpu")
    plain = [nbest[0] for nbest in task.translate(inputs, DecodeConfig(precision="auto", no_repeat_ngram_size=0))]
    found = [nbest[0] for nbest in task.translate(inputs, DecodeConfig(precision="auto"))]
    sources = [is_repeated(text) for text in inputs]
    loops = [not source and is_repeated(t.text) for source, t in zip(sources, plain, strict=True)]
    left = [not source and is_repeated(t.text) for source, t in zip(sources, found, strict=True)]
    undetected = [i for i, t in enumerate(found) if (loops[i] or left[i]) and not t.repeated]
    for i in undetected[:20]:
        print(repr(inputs[i][:100]), "->", repr(found[i].text[-150:]))
    results = {
        "inputs": len(inputs),
        "inputs_that_repeat_themselves": sum(sources),
        "repeated_without_detection": sum(loops),
        "reported": sum(t.repeated for t in found),
        "left_and_reported": sum(left) - sum(left[i] for i in undetected),
        "undetected": len(undetected),
    }
    print(results)
    save("loops", {"model": folder.name, "results": results}, "python -m benchmarks.loops MODEL SRC")


if __name__ == "__main__":
    main()
