"""Outputs of items on disk, for all processes and later runs: what was computed once is not computed again."""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from glassformer.bulk.chunks import Item
from glassformer.errors import UserError

MAX_BYTES = 10 << 30
"""Size that the file may have. If it is larger, what was added first is dropped."""
DROPPED = 0.1
"""Fraction of the outputs that is dropped then."""
WAIT_S = 60.0
"""Seconds to wait for another process that writes."""
DIGEST_BYTES = 16
MAX_ASKED = 500
"""Number of outputs that one question asks for."""

Output = tuple[str, tuple[str, ...]]
"""The text, and what there is to say about it."""


class Cache:
    """A file of outputs (SQLite), each with a digest of what it was computed from, and one of itself."""

    def __init__(self, path: Path, identity: Mapping[str, object], max_bytes: int = MAX_BYTES) -> None:
        """
        Args:
            identity: what determines the outputs besides the items; name -> JSON value.

        Raises:
            UserError: the file cannot be read or written.
        """
        self.path, self.max_bytes = path, max_bytes
        self.identity = json.dumps(identity, sort_keys=True).encode()
        if path.is_dir() or not path.parent.is_dir():
            what = f"{path}: is a folder" if path.is_dir() else f"{path.parent}: no such folder"
            raise UserError(f"{what}.\n  Name a file for the cache, in a folder that exists.")
        try:
            self.db = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("PRAGMA synchronous = NORMAL")
            self.db.execute(
                "CREATE TABLE IF NOT EXISTS outputs"
                " (number INTEGER PRIMARY KEY, key BLOB UNIQUE NOT NULL, output TEXT NOT NULL, digest BLOB NOT NULL)"
            )
        except sqlite3.Error as error:
            raise self.failure(error) from None

    def failure(self, error: sqlite3.Error) -> UserError:
        """The UserError for an error of the database."""
        return UserError(
            f"{self.path}: cannot be used as a cache ({error}).\n  Name a new file. A damaged cache can be deleted."
        )

    def key_of(self, item: Item) -> bytes:
        """Digest of what an output is computed from."""
        text = json.dumps(item, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(self.identity + b"\0" + text, digest_size=DIGEST_BYTES).digest()

    def get(self, items: Sequence[Item]) -> list[Output | None]:
        """The output of each item, if it is known. One that is damaged is not.

        Raises:
            UserError: the file cannot be read.
        """
        keys = [self.key_of(item) for item in items]
        found: dict[bytes, Output] = {}
        try:
            for start in range(0, len(keys), MAX_ASKED):
                asked = keys[start : start + MAX_ASKED]
                marks = ",".join("?" * len(asked))
                rows = self.db.execute(f"SELECT key, output, digest FROM outputs WHERE key IN ({marks})", asked)
                for key, output, digest in rows:
                    if digest == digest_of(key, output):
                        text, warned = json.loads(output)
                        found[key] = text, tuple(warned)
        except sqlite3.Error as error:
            raise self.failure(error) from None
        return [found.get(key) for key in keys]

    def put(self, items: Sequence[Item], outputs: Sequence[Output]) -> None:
        """Keep outputs. They survive the end of the process.

        Raises:
            UserError: the file cannot be written.
        """
        rows = []
        for item, output in zip(items, outputs, strict=True):
            key, text = self.key_of(item), json.dumps(output)
            rows.append((key, text, digest_of(key, text)))
        try:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.executemany("INSERT OR REPLACE INTO outputs (key, output, digest) VALUES (?, ?, ?)", rows)
            if self.size() > self.max_bytes:
                self.drop()
            self.db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self.failure(error) from None

    def size(self) -> int:
        """Number of bytes that the outputs take in the file, without pages that are free."""
        pages, free, size = (self.db.execute(f"PRAGMA {name}").fetchone()[0] for name in
                             ("page_count", "freelist_count", "page_size"))  # fmt: skip
        return int((pages - free) * size)

    def drop(self) -> None:
        """Drop what was added first."""
        n = self.db.execute("SELECT COUNT(*) FROM outputs").fetchone()[0]
        self.db.execute(
            "DELETE FROM outputs WHERE number IN (SELECT number FROM outputs ORDER BY number LIMIT ?)",
            (max(1, int(n * DROPPED)),),
        )

    def close(self) -> None:
        """Close the file."""
        self.db.close()


def digest_of(key: bytes, output: str) -> bytes:
    """Digest of an output with its key: of a damaged one it is another."""
    return hashlib.blake2b(key + output.encode(), digest_size=DIGEST_BYTES).digest()
