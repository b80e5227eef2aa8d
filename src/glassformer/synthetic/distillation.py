"""Sequence-level knowledge distillation: a model is trained on the translations of a teacher.

Source: Kim & Rush 2016, sections 3.2 and 3.3.
"""

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.corpora.bilingual import both_sided_format
from glassformer.corpora.corpus import detect_format, read_pairs
from glassformer.corpora.languages import languages_of
from glassformer.corpora.lines import read_lines, refuse_streams
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError, CorpusError
from glassformer.manifest import MANIFEST
from glassformer.metrics.translation import nearest
from glassformer.presets import vocab_size_for
from glassformer.synthetic.answers import ANSWERS, Answer, Answers
from glassformer.synthetic.ask import ask
from glassformer.synthetic.endpoint import EndpointOptions, EndpointTeacher
from glassformer.synthetic.filters import Filter, Language, typical_ratio
from glassformer.synthetic.teachers import ModelTeacher, Teacher
from glassformer.tasks.base import AnyTask, Log
from glassformer.tasks.registry import load
from glassformer.tasks.translation import Translator
from glassformer.threads import set_n_threads
from glassformer.train_config import NOT_WITH_TEACHERS, TrainConfig
from glassformer.training.options import select_objective_type, stored_options
from glassformer.training.run import make_run_folder, train
from glassformer.training.scan import set_options

FOLDER = "teacher"
"""Folder in the run folder with the answers, and the text that the student is trained on."""

LINE_BREAKS = re.compile(r"[\r\n]+")

SAMPLE = 2_000
"""Number of pairs from which the usual length of translations is estimated."""


def distill(config: TrainConfig, teacher: Teacher, log: Log, *, quiet: bool = False) -> AnyTask:
    """Train a student on what a teacher makes of the sources. Repeating the call resumes an interrupted one.

    With references, the student is trained on these as well, and of several translations of a source the one that is
    nearest to the reference is used (sequence-level interpolation).

    Args:
        config: the options of the training; `src` are the texts to translate, `tgt` references of them, if there are.
        log: called with messages.

    Raises:
        UserError: the teacher does not answer, or a file or an option cannot be used.
        Stopped: a signal stopped it; what is done is kept.
    """
    refuse(config)
    if not config.init_from:  # what the student does not have is reported before the teacher is asked
        select_objective_type(config.model_copy(update={"task": config.task or "translation"}), None)
    check_inputs(config)
    tell_of_codes(config, log)
    if config.threads:
        set_n_threads(config.threads)  # also of the teacher
    sources, references = read_sources(config)
    make_run_folder(config.out)
    folder = config.out / FOLDER
    check_is_own_run(config, folder)
    check_is_own_teacher(config, teacher, sources, folder)
    answers = ask(teacher, sources, folder, log)
    of_chats = isinstance(teacher, EndpointTeacher)
    pairs = used_pairs(sources, references, answers, config, log, of_chats=of_chats)
    languages = languages_of_student(config)
    files = folder / "train.src", folder / "train.tgt"
    write_pairs(files, [*pairs, *zip(sources, references, strict=False)])
    new: JsonObject = {"src": (files[0],), "tgt": (files[1],), "languages": languages}
    new |= plain_text(config, "dev_", folder)
    if references and not config.init_from:  # each source is there twice
        new["vocab_size"] = config.vocab_size or vocab_size_for(len(sources))
    return train(config.model_copy(update={**new, **PLAIN_TEXT}), quiet=quiet)


def check_inputs(config: TrainConfig) -> None:
    """Check the dev set and the models that a training begins with, before the long work that precedes it.

    Raises:
        CorpusError: a file of the dev set cannot be used.
        ConfigError: the files of the dev set do not match each other, or can be read only once.
        CheckpointError: there is no model in a folder.
    """
    refuse_streams((*config.dev_src, *config.dev_tgt), "training reads its text several times")
    pairs_of(config, "dev_")
    for folder in (config.init_from, config.embeddings):
        if folder:
            load(folder, device="cpu")


def languages_of_student(config: TrainConfig) -> tuple[str, ...]:
    """Codes of source and target language; empty if they are not known. Sources without references have the target
    language of the dev set."""
    tgt = config.tgt if has_references(config) else config.dev_tgt
    return config.languages or languages_of(config.src, tgt, config.keys)


def has_begun(folder: Path) -> bool:
    """Whether the training in a run folder has a checkpoint: its files cannot change any more."""
    return any((folder / "checkpoints").glob("step-*")) or (folder / MANIFEST).exists()


def read_sources(config: TrainConfig) -> tuple[list[str], list[str]]:
    """The sources, and their references if the files have them.

    Raises:
        CorpusError: a file cannot be used, or there is no text.
    """
    if has_references(config):
        pairs = [(src, tgt) for src, tgt in pairs_of(config) if src and tgt]
        sources, references = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    else:
        lines = [line.strip() for path in config.src for line in read_lines(path)]
        sources, references = list(dict.fromkeys(line for line in lines if line)), []
    if not sources:
        raise CorpusError(f"{config.src[0]}: contains no text to translate.\n  Give a file with text.")
    return sources, references


def used_pairs(
    sources: Sequence[str],
    references: Sequence[str],
    answers: Sequence[Answer],
    config: TrainConfig,
    log: Log,
    *,
    of_chats: bool,
) -> list[tuple[str, str]]:
    """The sources with the translations that are used.

    Args:
        of_chats: the answers are those of a chat model.

    Raises:
        CorpusError: hardly any translation can be used.
    """
    texts = [answer.texts[0] if answer.texts else "" for answer in answers]
    if references:
        texts = [
            nearest(answer.texts, reference) if len(answer.texts) > 1 else text
            for text, answer, reference in zip(texts, answers, references, strict=True)
        ]
    language = Language([*references, *(tgt for _, tgt in pairs_of(config, "dev_"))])
    if not language.is_known:  # the translations are compared with each other
        language = Language(texts)
    sample = list(zip(sources, references or texts, strict=True))[:: max(1, len(sources) // SAMPLE)]
    filter_ = Filter(language if language.is_known else None, typical_ratio(sample), of_chats=of_chats)
    pairs = [
        (source, text)
        for source, text, answer in zip(sources, texts, answers, strict=True)
        if filter_.accepts(source, text, answer)
    ]
    log(filter_.report(len(sources)))
    path = config.out / FOLDER / ANSWERS
    filter_.check(len(sources), path, "Change the --prompt, or use another teacher, and another --out")
    return pairs


PLAIN_TEXT: JsonObject = {"format": None, "keys": (), "fuzzy": False, "skip_bad": False}
"""Options of reading for plain text."""


def tell_of_codes(config: TrainConfig, log: Log) -> None:
    """Say so if the codes of files are not learned from, because the text that models translate has none."""
    files = [path for path in config.src if both_sided_format(path) not in (None, "po")]  # a catalogue has no codes
    if config.inline_codes and files:
        log(f"Codes in {files[0]} are not used: models translate plain text. --inline-codes puts codes around words.")


def pairs_of(config: TrainConfig, part: Literal["", "dev_"] = "") -> list[tuple[str, str]]:
    """The pairs of the training text or of the dev set that the options name."""
    src, tgt = getattr(config, f"{part}src"), getattr(config, f"{part}tgt")
    if not src:
        return []
    has_entries = any(map(both_sided_format, src))
    examples = read_pairs(
        src,
        tgt,
        format=config.format,
        keys=set_options(config, Translator, src, tgt).keys,
        languages=config.languages,
        fuzzy=config.fuzzy and has_entries,
        skip_bad=config.skip_bad and has_entries,
    )
    return [(example.src.strip(), example.tgt.strip()) for example in examples]


def plain_text(config: TrainConfig, part: Literal["", "dev_"], folder: Path) -> JsonObject:
    """Options that name the training text or the dev set as plain text files; tables are written to a folder as such.

    A training reads all its files in one format, and the text that models make is plain.
    """
    tables: tuple[Path, ...] = getattr(config, f"{part}src")
    if not tables or getattr(config, f"{part}tgt"):
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    files = [
        (folder / f"{part}parallel{number or ''}.src", folder / f"{part}parallel{number or ''}.tgt")
        for number in range(len(tables))
    ]
    for table, plain in zip(tables, files, strict=True):
        write_pairs(plain, pairs_of(config.model_copy(update={f"{part}src": (table,)}), part))
    src, tgt = zip(*files, strict=True)
    if part:
        return {"dev_src": src, "dev_tgt": tgt}
    in_domain = tuple(plain for table, plain in zip(tables, src, strict=True) if table in config.in_domain)
    return {"src": src, "tgt": tgt, "in_domain": in_domain}


def write_pairs(paths: tuple[Path, Path], pairs: Sequence[tuple[str, str]]) -> None:
    """Write the two sides of parallel text, a line for each. Line breaks within a text become spaces."""
    for side, path in enumerate(paths):
        checkpoint.write_text(path, "".join(LINE_BREAKS.sub(" ", pair[side]) + "\n" for pair in pairs))


def make_teacher(
    names: Sequence[str | Path],
    config: TrainConfig,
    *,
    beam: int | None = None,
    endpoint_model: str | None = None,
    prompt: str | None = None,
    per_minute: float | None = None,
    connections: int | None = None,
    api_key: str | None = None,
) -> Teacher:
    """The teacher of a student.

    Args:
        names: model folders, of which several are an ensemble, or the address of one server.
        config: the options of the student's training.
        beam: beam size of model folders. Default: 4.
        endpoint_model: name of the model at the server.
        prompt: the message to the server, in which {text} is replaced by each source.
        per_minute: maximum number of requests to the server in a minute.
        connections: number of requests at the same time. Default: 8.
        api_key: key of the server.

    Raises:
        UserError: the teacher cannot be used, or an option is missing or has no effect.
    """
    of_endpoint = {
        "--endpoint-model": endpoint_model, "--prompt": prompt, "--per-minute": per_minute,
        "--connections": connections,
    }  # fmt: skip
    if not names:
        raise ConfigError("no teacher given.\n  Name a model folder, or the address of a server (http://…).")
    urls = [str(name) for name in names if "://" in str(name)]
    if not urls:
        if unused := [name for name, value in of_endpoint.items() if value]:
            raise ConfigError(f"{', '.join(unused)}: only for a server.\n  Leave it out.")
        folders = [Path(name) for name in names]
        check_is_not_student(folders, config.out)
        n = beam or 4
        options = DecodeConfig(beam=n, nbest=n if has_references(config) else 1, precision="auto")
        teacher = ModelTeacher(folders, options, device=config.device)
        teacher.task.check_direction(
            languages_of_student(config),
            "Name such a teacher. If the text has other languages than its file names say, give them with --languages.",
        )
        return teacher
    if len(names) > 1:
        raise ConfigError("several teachers, one of them a server.\n  Name one server, or model folders.")
    if beam:
        raise ConfigError("--beam: the server decodes.\n  Leave it out.")
    if endpoint_model is None or prompt is None:
        missing = [name for name in ("--endpoint-model", "--prompt") if not of_endpoint[name]]
        raise ConfigError(
            f"{urls[0]}: needs {' and '.join(missing)}. For instance:\n"
            "  --endpoint-model NAME --prompt 'Translate into French, without comment: {text}'\n"
            "  For a translator behind `glassformer serve` the prompt is '{text}'."
        )
    options_ = EndpointOptions(urls[0], endpoint_model, prompt, api_key, per_minute, connections or 8)
    return EndpointTeacher(options_)


def has_references(config: TrainConfig) -> bool:
    """Whether the files have translations of the sources."""
    return bool(config.tgt) or any((config.format or detect_format(path)) != "lines" for path in config.src)


def check_is_own_run(config: TrainConfig, folder: Path) -> None:
    """Check that a run folder has no other run, before the long work that precedes the training.

    Args:
        folder: folder of the training text of this run.

    Raises:
        ConfigError: it has one.
    """
    stored = stored_options(config)
    if stored and has_begun(config.out) and not any(is_in(path, folder) for path in stored.src):
        raise ConfigError(f"{config.out}: contains a run on other text.\n  Choose another --out.")


def is_in(path: Path, folder: Path) -> bool:
    """Whether a file is in a folder, or was there before the folder of the run was moved."""
    if path.resolve().is_relative_to(folder.resolve()):
        return True
    below = [path.relative_to(parent) for parent in path.parents if parent.name == folder.name]
    return any((folder / rest).exists() for rest in below)


def check_is_own_teacher(config: TrainConfig, teacher: Teacher, sources: Sequence[str], folder: Path) -> None:
    """Check that a training that has begun has answers of this teacher to the sources, before all are asked for.

    Args:
        folder: folder of the answers.

    Raises:
        ConfigError: the answers are of another teacher or to other sources.
    """
    if not has_begun(config.out):
        return
    with closing(Answers(folder / ANSWERS, teacher.identity)) as answers:
        is_own = not answers.found or any(answers.get(source) for source in sources)
    if not is_own:
        raise ConfigError(
            f"{config.out}: contains a run with another teacher, prompt or text.\n"
            "  To resume this run, give the teachers, --prompt, --beam and --src that it began with. For a new run,"
            " choose another --out."
        )


def refuse(config: TrainConfig) -> None:
    """Check that options that a distillation does not have are not given.

    Raises:
        ConfigError: one is given.
    """
    options = *NOT_WITH_TEACHERS, "n_teachers"
    if given := [f"--{option.replace('_', '-')}" for option in options if getattr(config, option)]:
        raise ConfigError(f"distillation: {', '.join(given)}: has no effect here.\n  Leave it out.")


def check_is_not_student(folders: Sequence[Path], out: Path) -> None:
    """Check that no teacher is in the folder of the student.

    Raises:
        ConfigError: one is.
    """
    for folder in folders:
        if folder.resolve() == out.resolve():
            raise ConfigError(f"{folder}: is the teacher and the student.\n  Choose another --out.")
