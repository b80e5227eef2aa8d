"""Random changes of inputs."""

import random
from collections.abc import Iterator, Sequence

MAX_BYTES = 20_000
"""Longer inputs are cut."""


def mutations(seeds: Sequence[bytes], words: Sequence[bytes], n: int, seed: int) -> Iterator[bytes]:
    """n inputs, each a seed with one to five random changes."""
    rng = random.Random(seed)
    for _ in range(n):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.choice([1, 1, 2, 3, 5])):
            mutate(data, seeds, words, rng)
        yield bytes(data[:MAX_BYTES])


def mutate(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> None:
    """Change bytes: flip a bit, insert a word, remove, repeat or move a part, or take a part of another seed."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + int(rng.expovariate(0.1)))
    match rng.randrange(7):
        case 0 if start < len(data):
            data[start] ^= 1 << rng.randrange(8)
        case 1:
            data[start:start] = rng.choice(words)
        case 2:
            del data[start:end]
        case 3:
            data[start:start] = data[start:end] * rng.choice([1, 2, 9])
        case 4:
            part = data[start:end]
            del data[start:end]
            to = rng.randrange(len(data) + 1)
            data[to:to] = part
        case 5:
            other = rng.choice(seeds)
            begin = rng.randrange(len(other) + 1)
            data[start:end] = other[begin : begin + rng.randrange(60)]
        case _ if start < len(data):
            data[start] = rng.randrange(256)
