"""Keys of clients. The file has their SHA-256 hashes only."""

import hashlib
import hmac
import secrets
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from glassformer.errors import ConfigError

PREFIX = "gf-"
EXAMPLE = "  Make one: glassformer serve --keys keys.toml --new-key NAME"


@dataclass(slots=True)
class Key:
    """A key of a client.

    Characters are counted in a bucket that is filled at the rate of the key, and holds those of a minute.
    """

    name: str
    sha256: str
    characters_per_minute: int | None = None
    available: float = field(default=0.0)
    filled_at: float = field(default=-1e9)

    def take(self, n_characters: int) -> float:
        """Take characters from the bucket. Returns the seconds until there are enough; 0 if they were taken."""
        if self.characters_per_minute is None:
            return 0.0
        now, rate = time.monotonic(), self.characters_per_minute / 60
        self.available = min(self.characters_per_minute, self.available + (now - self.filled_at) * rate)
        self.filled_at = now
        needed = min(n_characters, self.characters_per_minute)
        if needed > self.available:
            return (needed - self.available) / rate
        self.available -= needed
        return 0.0


class Keys:
    """The keys of a file: TOML, a table for each name, with sha256 and optionally characters_per_minute.

    Raises:
        ConfigError: the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.keys = [parse(path, name, value) for name, value in read(path).items()]
        if not self.keys:
            raise ConfigError(f"{path}: no keys.\n{EXAMPLE}")

    def find(self, given: str) -> Key | None:
        """The key of a text. All hashes are compared, so that the time does not depend on the key."""
        digest = hash_of(given)
        found = None
        for key in self.keys:
            if hmac.compare_digest(key.sha256, digest):
                found = key
        return found


def hash_of(key: str) -> str:
    """Hash of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read(path: Path) -> dict[str, Any]:
    """The tables of a file of keys.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file.\n{EXAMPLE}") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML: {error}.") from None


def parse(path: Path, name: str, value: object) -> Key:
    """A key of a file."""
    if isinstance(value, Mapping) and isinstance(value.get("sha256"), str) and len(value["sha256"]) == 64:
        rate = value.get("characters_per_minute")
        if rate is None or (isinstance(rate, int) and not isinstance(rate, bool) and rate > 0):
            return Key(name, value["sha256"].lower(), rate)
    raise ConfigError(
        f"{path}: {name}: expected sha256 = 64 hexadecimal digits, and optionally characters_per_minute = number.\n"
        f"{EXAMPLE}"
    )


def add_key(path: Path, name: str) -> str:
    """Add a key to a file, which is made if it does not exist. Returns the key, which is stored nowhere.

    Raises:
        ConfigError: the name exists already, or the file cannot be written.
    """
    tables = read(path) if path.exists() else {}
    if name in tables:
        raise ConfigError(
            f"{path}: there is a key named {name!r} already.\n  Choose another name, or delete its table."
        )
    key = PREFIX + secrets.token_urlsafe(32)
    tables[name] = {"sha256": hash_of(key)}
    try:
        path.touch(mode=0o600)
        path.write_text(tomli_w.dumps(tables), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}.") from None
    return key
