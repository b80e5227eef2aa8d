"""A run over files: chunk by chunk, each of which is kept; a file whose chunks are all done is put together."""

import gzip
import hashlib
import os
import secrets
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from glassformer.bulk.chunks import CHUNK_ITEMS, Chunk, Item, Outputs, Workers
from glassformer.bulk.records import ChunkRecord, FileRecord, Records
from glassformer.checkpoint import make_folder, replace_file, sync_folder, write_error
from glassformer.corpora.lines import chunks
from glassformer.errors import UserError
from glassformer.manifest import sha256
from glassformer.tasks.texts import no_op

WORK = ".bulk"
"""Folder of chunks and records in the output folder."""

MAX_FAILED_NAMED = 10
"""Number of items that failed that are named."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file to process."""

    path: Path
    target: Path
    """File of its outputs. Compressed if its name ends with .gz."""
    name: str
    """Path of `target` in the output folder."""
    read: Callable[[], Iterator[Item]]
    """Reads its items; raises UserError."""


@dataclass(slots=True)
class Summary:
    """What a run has done."""

    n_files: int = 0
    """Number of files that were put together."""
    n_before: int = 0
    """Number of files that were done before."""
    waiting: list[Path] = field(default_factory=list)
    """Files of which other shards do chunks."""
    failed: dict[Path, str] = field(default_factory=dict)
    """Files that could not be read or written, and why."""
    n_items: int = 0
    """Number of items processed."""
    n_kept: int = 0
    """Number of items whose chunks were done before."""
    n_known: int = 0
    """Number of items equal to earlier ones, whose outputs were taken."""
    failed_items: list[tuple[Path, int, str]] = field(default_factory=list)
    """File, number and reason, of the first items that failed."""
    n_failed_items: int = 0
    """Of this and earlier runs."""
    warned: Counter[str] = field(default_factory=Counter)
    """Number of items that there was something to say about, by what; of this and earlier runs."""


@dataclass(slots=True)
class OpenFile:
    """A file that is being processed."""

    source: Source
    digests: list[str] = field(default_factory=list)
    """Of its chunks."""
    n: int = 0
    """Number of its items."""
    n_pending: int = 0
    """Number of chunks that are being processed."""
    is_read: bool = False
    n_again: int = 0
    """Number of chunks that were done, and have changed or were lost."""
    first_again: str = ""

    @property
    def digest(self) -> str:
        """Digest of its items."""
        return hashlib.sha256("".join(self.digests).encode()).hexdigest()


class Run:
    """A run over files, or a share of it."""

    def __init__(
        self,
        out: Path,
        workers: Workers,
        shard: tuple[int, int] = (1, 1),
        log: Callable[[str], None] = no_op,
        progress: Callable[[int], None] = no_op,
    ) -> None:
        """
        Args:
            out: output folder; `WORK` in it has a folder for this shard.
            shard: i and n: of every n chunks, the i-th is done.
            log: called with a message.
            progress: called with a number of items that are done.
        """
        self.out, self.workers, self.shard, self.log, self.progress = out, workers, shard, log, progress
        self.records = Records(out / WORK, folder_of(shard))
        self.open: dict[str, OpenFile] = {}
        self.lengths: dict[str, int] = {}
        """Number of chunks of each file that was read."""
        self.summary = Summary()

    def run(self, sources: Sequence[Source]) -> Summary:
        """Process files. One that cannot be read does not stop the others.

        Raises:
            UserError: the outputs cannot be written, or the workers cannot go on.
        """
        for chunk, outputs in self.workers.process(self.new_chunks(sources)):
            self.save(chunk, outputs)
            self.finish()
        self.finish()
        self.describe_items({source.name: source.path for source in sources})
        return self.summary

    def describe_items(self, paths: Mapping[str, Path]) -> None:
        """Count the items that failed or that there is something to say about."""
        done = self.summary
        for (name, index), record in sorted(self.records.chunks.items()):
            if index < self.lengths.get(name, 0):
                done.n_failed_items += len(record.failed)
                room = MAX_FAILED_NAMED - len(done.failed_items)
                done.failed_items += [(paths[name], number, why) for number, why in record.failed[:room]]
                done.warned.update(what for _, what in record.warned)

    def new_chunks(self, sources: Sequence[Source]) -> Iterator[Chunk]:
        """The chunks that are this run's to do, and are not done."""
        for source in sources:
            try:
                yield from self.chunks_of(source)
            except UserError as error:
                self.fail(source, str(error))

    def fail(self, source: Source, why: str) -> None:
        """Count and report a file that could not be processed."""
        self.summary.failed[source.path] = why
        self.log(f"error: {why}")

    def chunks_of(self, source: Source) -> Iterator[Chunk]:
        """The chunks of a file that are this run's to do, and are not done.

        Raises:
            UserError: the file cannot be read, or that of its outputs is not this run's.
        """
        joined = self.own_output(source)
        if joined and joined.input == self.input_of(source):
            self.summary.n_before += 1
            self.remove_chunks(source)
            return
        file = self.open[source.name] = OpenFile(source)
        i, n = self.shard
        start = zlib.crc32(source.name.encode())  # small files begin with different shards
        for index, items in enumerate(chunks(source.read(), CHUNK_ITEMS)):
            chunk = Chunk(source.name, index, items)
            file.digests.append(chunk.digest)
            file.n += len(items)
            if self.is_done(chunk, file):
                self.summary.n_kept += len(items)
                self.progress(len(items))
            elif (start + index) % n == i - 1:
                file.n_pending += 1
                yield chunk
        file.is_read = True
        self.lengths[source.name] = len(file.digests)
        if file.n_again:
            count = f"{file.n_again:,} chunks" if file.n_again > 1 else "a chunk"
            self.log(
                f"note: {source.path}: {count} done before, but changed or lost since (from line"
                f" {file.first_again}): done again."
            )

    def own_output(self, source: Source) -> FileRecord | None:
        """The record of the outputs of a file, if they are there.

        Raises:
            UserError: another file is there.
        """
        digest = digest_of(source.target)
        if digest is None:
            return None
        if digest not in self.records.written.get(source.name, ()):
            self.records.read()  # another shard may have put it together since
        record = self.records.files.get(source.name)
        if digest not in self.records.written.get(source.name, ()):
            raise UserError(
                f"{source.target}: {'was changed since it was written' if record else 'exists already'}, and is not"
                " overwritten.\n  Move it away, or name another --out."
            )
        return record if record and record.output == digest else None

    def input_of(self, source: Source) -> str:
        """Digest of the items of a file."""
        file = OpenFile(source)
        for index, items in enumerate(chunks(source.read(), CHUNK_ITEMS)):
            file.digests.append(Chunk(source.name, index, items).digest)
        self.lengths[source.name] = len(file.digests)
        return file.digest

    def is_done(self, chunk: Chunk, file: OpenFile) -> bool:
        """Whether the outputs of a chunk are there."""
        record = self.records.chunks.get((chunk.file, chunk.index))
        if record is None:
            return False
        is_done = record.input == chunk.digest and digest_of(self.path_of(chunk.file, chunk.index)) == record.output
        if not is_done:
            file.n_again += 1
            file.first_again = file.first_again or f"{chunk.number(0):,}"
        return is_done

    def path_of(self, name: str, index: int) -> Path:
        """File of the outputs of a chunk."""
        return self.out / WORK / "chunks" / name / f"{index:06}"

    def save(self, chunk: Chunk, outputs: Outputs) -> None:
        """Keep the outputs of a chunk. They are on the disk when this returns.

        Raises:
            UserError: they cannot be written.
        """
        data = "".join(text + "\n" for text in outputs.texts).encode("utf-8", "surrogatepass")
        if chunk.file.endswith(".gz"):
            data = gzip.compress(data, 6, mtime=0)
        self.keep(chunk, data, outputs)

    def keep(self, chunk: Chunk, data: bytes, outputs: Outputs) -> None:
        """`save`, given the content of the file of the outputs."""
        path = self.path_of(chunk.file, chunk.index)
        try:
            make_folder(path.parent)
        except OSError as error:
            raise write_error(path.parent, error) from None
        replace_file(path, data)
        self.records.add(ChunkRecord.of(chunk, hashlib.sha256(data).hexdigest(), outputs))
        file = self.open[chunk.file]
        file.n_pending -= 1
        done = self.summary
        done.n_items += len(chunk.items)
        done.n_known += outputs.n_known
        self.progress(len(chunk.items))

    def finish(self) -> None:
        """Put together the files whose chunks are all done."""
        for name in [name for name, file in self.open.items() if file.is_read and not file.n_pending]:
            self.join(self.open.pop(name))

    def join(self, file: OpenFile) -> None:
        """Put a file together, if other shards have done their chunks of it.

        Raises:
            UserError: it cannot be written.
        """
        source, target = file.source, file.source.target
        if not self.all_done(file):
            self.records.read()  # of other shards
        if self.is_joined(file):
            self.summary.n_before += 1
            return
        if not self.all_done(file):
            self.summary.waiting.append(source.path)
            return
        temporary = self.path_of(source.name, 0).with_name(f"joined.{secrets.token_hex(8)}")
        try:
            make_folder(temporary.parent)  # a file without items has no chunks
            make_folder(target.parent)
            with open(temporary, "wb") as out:
                for index in range(len(file.digests)):
                    out.write(self.path_of(source.name, index).read_bytes())
                out.flush()
                os.fsync(out.fileno())
            # The record comes first: the file is known as this run's as soon as it is there.
            self.records.add(FileRecord(source.name, file.n, file.digest, sha256(temporary)))
            os.replace(temporary, target)
            sync_folder(target.parent)  # before its chunks are removed
        except FileNotFoundError as error:  # of a chunk of another shard
            self.records.read()
            if not self.is_joined(file):
                if self.shard[1] == 1:
                    raise write_error(target, error) from None
                self.summary.waiting.append(source.path)  # for the shard, which makes it again
                return
        except OSError as error:
            raise write_error(target, error) from None
        self.remove_chunks(source)
        self.summary.n_files += 1

    def is_joined(self, file: OpenFile) -> bool:
        """Whether a file was put together, by another shard at the same time."""
        record = self.records.files.get(file.source.name)
        return record is not None and record.input == file.digest and digest_of(file.source.target) == record.output

    def remove_chunks(self, source: Source) -> None:
        """Remove the outputs of the chunks of a file that was put together."""
        shutil.rmtree(self.path_of(source.name, 0).parent, ignore_errors=True)

    def all_done(self, file: OpenFile) -> bool:
        """Whether all chunks of a file are done, as far as the records that were read say."""
        found = (self.records.chunks.get((file.source.name, index)) for index in range(len(file.digests)))
        return all(record and record.input == digest for record, digest in zip(found, file.digests, strict=True))

    def close(self) -> None:
        """End the run; the same run goes on where it was."""
        self.workers.close()
        self.records.close()


def digest_of(path: Path) -> str | None:
    """SHA-256 of a file, if there is one; another shard may remove it at any time."""
    try:
        return sha256(path)
    except FileNotFoundError:
        return None


def folder_of(shard: tuple[int, int]) -> str:
    """Name of the folder of the records of a shard."""
    return f"{shard[0]}-of-{shard[1]}"
