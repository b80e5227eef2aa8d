"""Jobs of commands: a model, its options, and what is computed for each item of a file."""

import base64
import json as json_module
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from glassformer.bulk.cache import Cache
from glassformer.bulk.chunks import Item
from glassformer.bulk.documents import packed
from glassformer.bulk.folder import content_of
from glassformer.bulk.outputs import Compute, Processor
from glassformer.cli.lines import (
    check_takes_pairs,
    open_model,
    open_translator,
    outputs_of_lines,
    outputs_of_pairs,
    prepare_translator,
    progress_bar,
    scores_of_pairs,
    translations_of_lines,
)
from glassformer.cli.reading import languages_of
from glassformer.cli.tables import columns_of, outputs_of_items
from glassformer.config import JsonObject
from glassformer.corpora.corpus import read_pairs
from glassformer.corpora.lines import read_lines
from glassformer.corpora.pair_formats import has_entries
from glassformer.corpora.read_options import ReadOptions
from glassformer.corpora.table_texts import Row, is_table, read_rows
from glassformer.decode_config import BatchConfig, DecodeConfig
from glassformer.documents.document import Only
from glassformer.documents.exchange import Exchange
from glassformer.errors import ConfigError
from glassformer.manifest import MANIFEST, read_json, sha256
from glassformer.tasks.causal_lm import DecoderTask
from glassformer.tasks.files import Memo, check_file_options, document_of, translate_document
from glassformer.tasks.registry import find_model
from glassformer.tasks.texts import no_op
from glassformer.version import __version__

if TYPE_CHECKING:
    from glassformer.tasks.text_to_text import TextToTextTask

Kind = Literal["translate", "documents", "run", "pairs", "score"]


@dataclass(frozen=True, slots=True)
class Job:
    """What a command does with each item."""

    kind: Kind
    model: str
    """Model folder."""
    options: JsonObject
    """The options of decoding that were given."""
    ensemble: tuple[str, ...] = ()
    """Folders of models that translate together with the model."""
    json: bool = False
    """The outputs are JSON objects."""
    device: str = "auto"
    threads: int | None = None
    tasks: tuple[str, ...] = ()
    """Tasks whose models the command accepts; if empty, all."""
    reading: JsonObject = field(default_factory=dict)
    """How files of pairs are read."""
    only: Only = "empty"
    """Which entries of documents are translated."""
    to: Exchange | None = None
    """What the translations of documents are written as."""
    cache: str | None = None
    """File of outputs."""

    def with_found_models(self) -> "Job":
        """The job with the folders of the models themselves; of an unfinished training, that of a checkpoint.

        Raises:
            CheckpointError: a training has no checkpoint.
        """
        model, *others = (str(find_model(Path(folder))) for folder in (self.model, *self.ensemble))
        return replace(self, model=model, ensemble=tuple(others))

    def with_absolute_paths(self) -> "Job":
        """The job for a process in another working folder."""
        options = dict(self.options)
        if glossary := self.decoding.glossary:
            options["glossary"] = str(glossary.absolute())
        if memory := self.decoding.memory:
            options["memory"] = [str(path.absolute()) for path in memory]
        model, *others = (str(Path(folder).absolute()) for folder in (self.model, *self.ensemble))
        cache = str(Path(self.cache).absolute()) if self.cache else None
        return replace(self, model=model, ensemble=tuple(others), options=options, cache=cache)

    def items(self, path: Path, log: Callable[[str], None] = no_op) -> Iterator[Item]:
        """The items of a file.

        Args:
            log: called with what was detected.

        Raises:
            ConfigError, CorpusError: it cannot be read.
        """
        if self.kind in ("run", "pairs") and is_table(path):
            return map(list, read_rows(path, self.reading["keys"], log))
        if self.kind != "score":
            return iter(read_lines(path))
        options = ReadOptions(**self.reading)
        languages = options.languages or read_json(Path(self.model) / "config.json").get("languages", ())
        if not has_entries(path, options.format):
            options = replace(options, fuzzy=False, skip_bad=False)  # given for other files
        pairs = read_pairs([path], log=log, **asdict(replace(options, languages=languages)))
        return ([pair.src, pair.tgt] for pair in pairs)

    @property
    def decoding(self) -> DecodeConfig:
        """The options of decoding."""
        return DecodeConfig(**self.options)

    def identity(self) -> dict[str, object]:
        """What determines the outputs: the contents of the model and of all files that it names, and the options other
        than those that only change its speed."""
        models = [sha256(Path(folder) / MANIFEST)[:16] for folder in (self.model, *self.ensemble)]
        options = {name: value for name, value in self.options.items() if name not in BatchConfig.model_fields}
        if glossary := self.decoding.glossary:
            options["glossary"] = content_of(glossary)[:16]
        if memory := self.decoding.memory:
            options["memory"] = [content_of(path)[:16] for path in memory]
        named = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
        of_documents = {"--only": self.only, "--to": self.to} if self.kind == "documents" else {}
        return {
            "command": self.kind,
            "model": models[0],
            "--ensemble": models[1:],
            "--json": self.json,
            **named,
            **of_documents,
        }

    def to_json(self, threads: int) -> JsonObject:
        """The job as a JSON object, for a process with a number of threads."""
        return asdict(replace(self, threads=threads))

    def open(self, *, quiet: bool = False) -> Processor:
        """Load the model.

        Args:
            quiet: print nothing.

        Raises:
            ConfigError, CheckpointError: the model or an option cannot be used.
        """
        options, folder = self.decoding, Path(self.model)
        self.check_cache(options)
        cache = Cache(Path(self.cache), {"version": __version__, **self.identity()}) if self.cache else None
        if self.kind == "score":
            translator = open_translator(folder, self.device, self.threads, quiet=quiet)
            return Processor(partial(scores_of_pairs, translator, json=self.json), self.failed, cache=cache)
        if self.kind in ("translate", "documents"):
            translator = open_translator(folder, self.device, self.threads, quiet=quiet)
            prepare_translator(translator, options, [Path(each) for each in self.ensemble], self.device, quiet=quiet)
            if self.kind == "documents":
                return Processor(self.documents(translator, quiet=quiet), keep=False)
            compute = partial(translations_of_lines, translator, options=options, json=self.json)
            return Processor(compute, self.failed, keep=not options.do_sample, cache=cache)
        task = open_model(folder, self.device, self.threads, self.tasks, precision=options.precision, quiet=quiet)
        task.check_options(options)
        if isinstance(task, DecoderTask):
            options = task.with_default_options(options)
            self.check_cache(options)
        if self.kind == "pairs":
            check_takes_pairs(task)
        outputs = outputs_of_pairs if self.kind == "pairs" else outputs_of_lines
        lines = partial(outputs, task, options=options, json=self.json)
        of_items = partial(outputs_of_items, task, outputs=lines)
        failed = partial(self.failed, columns=columns_of(task))
        return Processor(of_items, failed, keep=not options.do_sample, cache=cache)

    def check_cache(self, options: DecodeConfig) -> None:
        """Check that outputs can be kept for other runs.

        Raises:
            ConfigError: they are asked for, and cannot.
        """
        if self.cache and (self.kind == "documents" or options.do_sample):
            why = "for lines of text, not for documents" if self.kind == "documents" else "each sample is another one"
            raise ConfigError(f"--cache: {why}.\n  Leave it out.")

    def documents(self, translator: "TextToTextTask[Any]", *, quiet: bool) -> Compute:
        """What translates documents: their names, and contents in base64.

        Raises:
            ConfigError: an option without effect on files.
        """
        options, memo = self.decoding, Memo(translator)
        check_file_options(translator, options, self.to)

        def translated(name: str, content: str) -> str:
            path = Path(name)
            document = document_of(path, base64.b64decode(content), languages_of(translator))
            n = len(document.only(self.only).segments)
            with progress_bar(path.name, n) if not quiet else nullcontext(no_op) as progress:
                data, done = translate_document(
                    translator,
                    document,
                    options,
                    only=self.only,
                    to=self.to,
                    name=path.name,
                    memo=memo,
                    progress=progress,
                )
            return packed(data, {name: value for name, value in asdict(done).items() if name != "path"})

        return lambda items, warn: [translated(item[0], item[1]) for item in items]

    def failed(self, item: Item, why: str, columns: Sequence[str] = ()) -> str:
        """The output for an item that failed: as many lines as for others.

        Args:
            columns: what a row of a table gets.
        """
        if columns and isinstance(item, list):
            return Row(*item).extended(dict.fromkeys(columns, ""))
        if self.json:
            return json_module.dumps({"input": item, "error": why}, ensure_ascii=False)
        n_lines = self.decoding.nbest if self.kind == "translate" else 1
        return "\n" * (n_lines - 1)
