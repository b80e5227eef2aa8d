"""Options of the server."""

from dataclasses import dataclass, field
from pathlib import Path

from glassformer.decode_config import Precision
from glassformer.serve.keys import Keys
from glassformer.serve.limits import DEADLINE_S
from glassformer.serve.messages import Configuration


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `glassformer serve`."""

    models: dict[str, Path]
    """Model folders by the name of the model."""
    languages: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Source and target language of models that have not stored them."""
    glossaries: dict[str, Path] = field(default_factory=dict)
    memories: dict[str, Path] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 5000
    public_names: tuple[str, ...] = ()
    """Host names under which the server is reached, besides those of this machine."""
    cors: tuple[str, ...] = ()
    """Origins of pages on other servers that may use the APIs."""
    keys: Keys | None = None
    precision: Precision = "auto"
    threads: int | None = None
    deadline_s: float = DEADLINE_S
    corrections: Path | None = None
    """Folder to which corrected translations are added."""

    def configuration(self) -> Configuration:
        """The configuration of the model process."""
        return Configuration(
            models={name: str(folder) for name, folder in self.models.items()},
            glossaries={name: str(path) for name, path in self.glossaries.items()},
            memories={name: str(path) for name, path in self.memories.items()},
            precision=self.precision,
            threads=self.threads,
        )
