"""Small inputs for the targets of `model_targets.py`."""

import json
import random
from functools import cache

from tests.fuzz.model_targets import FILES, KINDS, OTHERS, THEIR_FILES, folder_contents, recorded, saved, their_contents
from tests.fuzz.seeds import SENTENCEPIECE

MAX_BYTES = 20_000


@cache
def model_seeds() -> dict[str, list[bytes]]:
    """The seeds of each target."""
    rng = random.Random(1)
    files = {"spiece.model": SENTENCEPIECE}
    small = min((entry["record"] for entry, *_ in recorded()), key=lambda record: len(json.dumps(record)))
    header = b'{"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"format": "pt"}, '
    header += b'"b": {"dtype": "BF16", "shape": [1], "data_offsets": [24, 26]}}'
    fp32, _, _ = saved(0, "fp32")
    return {
        "program": [bytes([i]) + rng.randbytes(n) for i in range(len(recorded())) for n in (0, 4, 12)]
        + [bytes([i]) + json.dumps(small).encode() for i in range(len(recorded()))],
        "weights": [
            b"\0" + len(header).to_bytes(8, "little") + header + bytes(26), b"\x01" + header, b"\0" + fp32[:9000],
            *(bytes([kind, i]) + rng.randbytes(n) for kind in (2, 3) for i in range(len(KINDS)) for n in (0, 3, 30)),
        ],
        "folder": [
            bytes([i, FILES.index(name)]) + content
            for i in range(len(KINDS)) for name, content in folder_contents(i).items()
            if name in FILES and len(content) < MAX_BYTES
        ],
        "imported": [
            bytes([i, THEIR_FILES.index(name)]) + content
            for i, family in enumerate(OTHERS) for name, content in {**their_contents(family), **files}.items()
            if name in THEIR_FILES and len(content) < MAX_BYTES
        ],
    }  # fmt: skip
