"""A run over documents: each is a chunk of its own, and one that fails has no output."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from glassformer.bulk.chunks import Chunk, Outputs, Workers
from glassformer.bulk.run import OpenFile, Run, Source
from glassformer.config import JsonObject
from glassformer.tasks.texts import no_op


def packed(data: bytes, done: JsonObject) -> str:
    """The output for a document: its new content, and what was done."""
    return json.dumps({"data": base64.b64encode(data).decode(), "done": done})


class DocumentRun(Run):
    """A run over documents, or a share of it. The output for each is `packed`."""

    def __init__(
        self,
        out: Path,
        workers: Workers,
        shard: tuple[int, int] = (1, 1),
        log: Callable[[str], None] = no_op,
        written: Callable[[Source, JsonObject], None] = no_op,
    ) -> None:
        """
        Args:
            written: called with each file that is written, and what was done.
        """
        super().__init__(out, workers, shard, log)
        self.written = written
        self.done: dict[str, JsonObject] = {}
        """What was done with the files that are not written yet."""

    def chunks_of(self, source: Source) -> Iterator[Chunk]:
        """See `Run`. The file is read to its end, so that it is written as soon as its chunk is done."""
        return iter(list(super().chunks_of(source)))

    def save(self, chunk: Chunk, outputs: Outputs) -> None:
        """See `Run`."""
        if outputs.failed:
            source = self.open.pop(chunk.file).source
            why = outputs.failed[0][1]
            self.fail(source, why if str(source.path) in why else f"{source.path}: {why}")
            return
        answer = json.loads(outputs.texts[0])
        self.done[chunk.file] = answer["done"]
        self.keep(chunk, base64.b64decode(answer["data"]), outputs)

    def join(self, file: OpenFile) -> None:
        """See `Run`."""
        super().join(file)
        if done := self.done.pop(file.source.name, None):
            self.written(file.source, done)
