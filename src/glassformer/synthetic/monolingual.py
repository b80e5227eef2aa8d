"""Monolingual text for translation: back-translation of target text, and self-training on source text.

Sources: Sennrich et al. 2016 for back-translation, Caswell et al. 2019 for the tag; He et al. 2020 for self-training.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glassformer.config import JsonObject
from glassformer.corpora.corpus import detect_format
from glassformer.corpora.languages import languages_of
from glassformer.corpora.lines import check_readable, read_lines
from glassformer.corpora.words import letters_of
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError, CorpusError
from glassformer.learning.held_out import MAX_HELD_OUT, SmallestHashes
from glassformer.synthetic.answers import ANSWERS, Answer
from glassformer.synthetic.ask import ask
from glassformer.synthetic.distillation import (
    PLAIN_TEXT,
    SAMPLE,
    check_inputs,
    check_is_not_student,
    check_is_own_run,
    has_begun,
    pairs_of,
    plain_text,
    write_pairs,
)
from glassformer.synthetic.filters import MIN_LETTERS, Filter, Language, typical_ratio
from glassformer.synthetic.teachers import ModelTeacher
from glassformer.tasks.base import AnyTask, Log
from glassformer.threads import set_n_threads
from glassformer.train_config import MAX_WEIGHT, NO_TAG, TrainConfig
from glassformer.training.run import make_run_folder, train
from glassformer.training.scan import text_hash

FOLDER = "synthetic"
"""Folder in the run folder with the models that translate monolingual text, and the translations."""

HELPER_FRACTION = 0.25
"""Fraction of the minutes of a training for each model that translates monolingual text."""

IMPROBABLE = 0.1
"""Fraction of the translations that are not used: the least probable."""

TAG = "back-translated"
"""Tag of sources that a model has translated from target text."""

MAX_REPETITIONS = 20
"""The parallel text is repeated at most so often, to be at least half of the training text."""

PARALLEL_SAMPLE = 50_000
"""Number of pairs from which the languages are learned."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Direction in which monolingual text is translated."""

    option: str
    side: int
    """Side of the monolingual text: 0 source, 1 target."""
    model_option: str
    folder: str

    @property
    def flag(self) -> str:
        """The option that gives the model, on the command line."""
        return "--" + self.model_option.replace("_", "-")

    @property
    def language(self) -> str:
        """Which language the monolingual text is in, for messages: source or target."""
        return "target" if self.side else "source"


BACK = Direction("--more-tgt", 1, "reverse_model", "back")
FORWARD = Direction("--more-src", 0, "forward_model", "forward")


def train_with_monolingual(config: TrainConfig, log: Log, *, quiet: bool = False) -> AnyTask:
    """Train a translator on parallel and monolingual text. Repeating the call resumes an interrupted training.

    Target text is translated by a model of the other direction, source text by one of the same; unless they are given,
    they are trained first. The sources that come from target text have a tag.

    Args:
        config: the options of the training, with `more_tgt` or `more_src`.
        log: called with messages.

    Raises:
        UserError: a file or an option cannot be used.
        Stopped: a signal stopped it; what is done is kept.
    """
    if config.init_from:
        raise ConfigError("--init-from: not with --more-tgt and --more-src.\n  Leave it out.")
    if config.threads:
        set_n_threads(config.threads)  # also of the models that translate
    languages = languages_of(config.src, config.tgt, config.keys, config.languages)
    more = {direction: files for direction, files in ((BACK, config.more_tgt), (FORWARD, config.more_src)) if files}
    for direction, files in more.items():
        check_are_lines(direction, files)
    teachers = {direction: given_teacher(direction, config, languages) for direction in more}
    make_run_folder(config.out)
    folder = config.out / FOLDER
    check_is_own_run(config, folder)
    update: JsonObject = {**plain_text(config, "", folder), **plain_text(config, "dev_", folder)}
    update |= {**PLAIN_TEXT, "languages": languages, "more_tgt": (), "more_src": ()}
    plain = config.model_copy(update={**update, "reverse_model": None, "forward_model": None})
    check_inputs(plain)
    if len(set(plain.tgt)) < len(plain.tgt) and (plain.weights or plain.tags or plain.in_domain):
        raise ConfigError("--weights, --tags and --in-domain: a target file is given twice.\n  Name each file once.")
    if not plain.dev_src:
        plain = plain.model_copy(update=held_out(plain, folder, log))
    pairs = pairs_of(plain)
    texts = {direction: usable_texts(direction, files, pairs, plain, log) for direction, files in more.items()}
    made = {each: (folder / f"{each.folder}.src", folder / f"{each.folder}.tgt") for each in more}
    n_made = sum(
        translated(each, texts[each], pairs, made[each], teachers[each], plain, log, quiet=quiet) for each in more
    )
    weights = plain.weights or (1.0,) * len(plain.src)
    n_used = sum(weight * len(part) for weight, part in zip(weights, pairs_by_file(plain), strict=True))
    n_times = max(1, min(MAX_REPETITIONS, round(n_made / n_used)))
    times = f", {n_times} times" if n_times > 1 else ""
    log(f"Training text: {round(n_used):,} pairs{times}, and {n_made:,} with a translation by a model.")
    n_trained = sum(teacher is None for teacher in teachers.values())
    all_files: JsonObject = {
        "src": (*plain.src, *(src for src, _ in made.values())),
        "tgt": (*plain.tgt, *(tgt for _, tgt in made.values())),
        "minutes": plain.minutes and plain.minutes * (1 - HELPER_FRACTION * n_trained),
    }
    if plain.weights or n_times > 1:
        all_files["weights"] = (*(min(MAX_WEIGHT, n_times * weight) for weight in weights), *(1.0 for _ in made))
    if plain.tags or BACK in made:
        tags = plain.tags or (NO_TAG,) * len(plain.src)
        all_files["tags"] = (*tags, *(TAG if direction is BACK else NO_TAG for direction in made))
    return train(plain.model_copy(update=all_files), quiet=quiet)


def check_are_lines(direction: Direction, files: Sequence[Path]) -> None:
    """Check that files of monolingual text can be read and are plain text, before anything is trained.

    Raises:
        CorpusError: a file cannot be read.
        ConfigError: a file is a table or has another format.
    """
    check_readable(*files)
    for path in files:
        if (format := detect_format(path)) != "lines":
            raise ConfigError(
                f"{direction.option} {path}: its format is {format}, not plain text with one sentence on each line.\n"
                f"  Write the sentences in the {direction.language} language to a text file, one on each line and"
                " nothing else, and name that file."
            )


def given_teacher(direction: Direction, config: TrainConfig, languages: Sequence[str]) -> ModelTeacher | None:
    """The model that the user gave to translate monolingual text. None: it is trained.

    Args:
        languages: source and target language of the training; empty if they are not known.

    Raises:
        CheckpointError: there is no model in the folder.
        ConfigError: the model does not translate, or in another direction.
    """
    folder: Path | None = getattr(config, direction.model_option)
    if folder is None:
        return None
    check_is_not_student([folder], config.out)
    teacher = model_teacher(folder, config)
    advice = (
        f"Give such a model with {direction.flag}, or leave it out: then a model is trained. If the text"
        " has other languages than its file names say, give them with --languages."
    )
    teacher.task.check_direction(languages[::-1] if direction is BACK else languages, advice)
    return teacher


def model_teacher(folder: Path, config: TrainConfig) -> ModelTeacher:
    """A model that translates monolingual text."""
    options = DecodeConfig(beam=1, precision="auto", batch_tokens=4096)
    return ModelTeacher([folder], options, device=config.device)


def pairs_by_file(config: TrainConfig) -> list[list[tuple[str, str]]]:
    """The pairs of each source file of plain text."""
    files = zip(config.src, config.tgt, strict=True)
    return [pairs_of(config.model_copy(update={"src": (src,), "tgt": (tgt,)})) for src, tgt in files]


def held_out(config: TrainConfig, folder: Path, log: Log) -> JsonObject:
    """Options with a dev set that is held out from the parallel text, which all models of the chain have.

    It is held out from files without a tag, and of these from those of --in-domain if they are named. All files are
    written again without the sources of the dev set.

    Raises:
        CorpusError: too few pairs.
    """
    parts = pairs_by_file(config)
    tags = config.tags or (NO_TAG,) * len(parts)
    own = [
        tag == NO_TAG and (not config.in_domain or src in config.in_domain)
        for tag, src in zip(tags, config.src, strict=True)
    ]
    eligible = [pair for part, is_own in zip(parts, own, strict=True) if is_own for pair in part if all(pair)]
    selection = SmallestHashes()
    selection.add(np.array([text_hash(src) for src, _ in eligible], np.uint64))
    dev = [eligible[i] for i in selection.indices(config.src[0])]
    sources = {src for src, _ in dev}
    names = ["dev", *(f"train{number or ''}" for number in range(len(parts)))]
    files = [(folder / f"{name}.src", folder / f"{name}.tgt") for name in names]
    folder.mkdir(parents=True, exist_ok=True)
    others = [[pair for pair in part if pair[0] not in sources] for part in parts]
    for paths, part in zip(files, [dev[:MAX_HELD_OUT], *others], strict=True):
        write_pairs(paths, part)
    log(f"Dev set: {min(len(dev), MAX_HELD_OUT):,} pairs held out from {len(eligible):,}.")
    dev_files, *train_files = files
    return {
        "dev_src": dev_files[:1], "dev_tgt": dev_files[1:],
        "src": tuple(src for src, _ in train_files), "tgt": tuple(tgt for _, tgt in train_files),
        "in_domain": tuple(
            new for old, (new, _) in zip(config.src, train_files, strict=True) if old in config.in_domain
        ),
    }  # fmt: skip


def usable_texts(
    direction: Direction, files: Sequence[Path], pairs: Sequence[tuple[str, str]], config: TrainConfig, log: Log
) -> list[str]:
    """The different lines of monolingual text, without those of the dev set and those in another language.

    Raises:
        CorpusError: no text, or most of it in another language.
    """
    side = direction.side
    lines = [line.strip() for path in files for line in read_lines(path)]
    texts = list(dict.fromkeys(line for line in lines if line))
    if not texts:
        raise CorpusError(f"{files[0]}: contains no text.\n  Give a file with one sentence on each line.")
    dev, known = ({pair[side] for pair in part} for part in (pairs_of(config, "dev_"), pairs))
    leaked = [text for text in texts if text in dev]
    if leaked:
        log(f"{direction.option}: {len(leaked):,} lines that are in the dev set were left out (first: {leaked[0]!r}).")
    texts = [text for text in texts if text not in dev and text not in known]
    own, other = (Language([pair[i] for pair in pairs[:PARALLEL_SAMPLE]]) for i in (side, 1 - side))
    long = [text for text in texts if len(letters_of(text)) >= MIN_LETTERS]
    foreign = {text for text in long if not own.has(text)}
    if len(foreign) > len(long) / 2:
        is_swapped = other.is_known and sum(map(other.has, long)) > len(long) / 2
        swapped = FORWARD.option if direction is BACK else BACK.option
        advice = f"It is like the text of the other side: {swapped}" if is_swapped else "Check the file"
        raise CorpusError(
            f"{files[0]}: {len(foreign):,} of {len(long):,} lines are not in the language of the {direction.language}"
            f" side (first: {next(iter(foreign))[:60]!r}).\n  {advice}."
        )
    if foreign:
        log(f"{direction.option}: {len(foreign):,} lines in another language were left out.")
    texts = [text for text in texts if text not in foreign]
    if not texts:
        raise CorpusError(
            f"{files[0]}: no line that is neither in the pairs nor in the dev set.\n"
            f"  Give other text, or leave {direction.option} out."
        )
    log(f"{direction.option}: {len(texts):,} of {len(lines):,} lines are used; others are repeated, or in the pairs.")
    return texts


def translated(
    direction: Direction,
    texts: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    files: tuple[Path, Path],
    teacher: ModelTeacher | None,
    config: TrainConfig,
    log: Log,
    *,
    quiet: bool,
) -> int:
    """Translate monolingual text, and write pairs of source and target. Returns their number.

    Args:
        pairs: parallel text.
        teacher: the model that translates. None: it is trained first.
        config: the options of the training, without monolingual text.
    """
    if teacher is None:
        folder = config.out / FOLDER / f"{direction.folder}-model"
        if has_begun(config.out):
            log(f"{folder}: stays as it is, since the training that uses its translations has begun.")
        else:
            train_helper(direction, folder, config, log, quiet=quiet)
        teacher = model_teacher(folder, config)
    asked = config.out / FOLDER / f"{direction.folder}-answers"
    answers = ask(teacher, texts, asked, log)
    filter_ = filter_for(direction, pairs, answers)
    made = [
        (text, answer.texts[0])
        for text, answer in zip(texts, answers, strict=True)
        if filter_.accepts(text, answer.texts[0] if answer.texts else "", answer)
    ]
    log(filter_.report(len(texts)))
    filter_.check(len(texts), asked / ANSWERS, f"Train longer, or give a better model with {direction.flag}")
    write_pairs(files, [pair[::-1] if direction is BACK else pair for pair in made])
    return len(made)


def train_helper(direction: Direction, folder: Path, config: TrainConfig, log: Log, *, quiet: bool) -> None:
    """Train a model that translates monolingual text, on the parallel text."""
    swapped: JsonObject = {}
    if direction is BACK:
        swapped = {"src": config.tgt, "tgt": config.src, "dev_src": config.dev_tgt, "dev_tgt": config.dev_src}
        swapped["languages"] = config.languages[::-1]
        sides = zip(config.src, config.tgt, strict=True)
        swapped["in_domain"] = tuple(tgt for src, tgt in sides if src in config.in_domain)
    if set(config.in_domain) == set(config.src):
        swapped["in_domain"] = ()
    minutes = config.minutes and config.minutes * HELPER_FRACTION
    what = "back" if direction is BACK else "the source text"
    log(f"Training a model that translates {what}, in {folder} ({direction.option}).")
    helper = {"out": folder, "minutes": minutes, "profile": False}
    train(config.model_copy(update=swapped | helper), quiet=quiet)


def filter_for(direction: Direction, pairs: Sequence[tuple[str, str]], answers: Sequence[Answer]) -> Filter:
    """What translations of monolingual text must be like."""
    ordered = [pair[::-1] if direction is BACK else pair for pair in pairs]
    language = Language([text for _, text in ordered[:PARALLEL_SAMPLE]])
    scores = [answer.score for answer in answers if answer.score is not None]
    least = float(np.quantile(scores, IMPROBABLE)) if scores else None
    sample = ordered[:: max(1, len(ordered) // SAMPLE)]
    return Filter(language if language.is_known else None, typical_ratio(sample), least)
