"""Monolingual text for translation: back-translation of target text, and self-training on source text.

Sources: Sennrich et al. 2016 for back-translation, Caswell et al. 2019 for the tag; He et al. 2020 for self-training.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from glassformer.config import JsonObject
from glassformer.corpora.corpus import read_pairs
from glassformer.corpora.languages import languages_of
from glassformer.corpora.lines import read_lines
from glassformer.corpora.words import letters_of
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError, CorpusError
from glassformer.synthetic.answers import ANSWERS, Answer
from glassformer.synthetic.ask import ask, print_log
from glassformer.synthetic.distillation import SAMPLE, check_is_not_student, check_is_own_run, write_pairs
from glassformer.synthetic.filters import MIN_LETTERS, Filter, Language, typical_ratio
from glassformer.synthetic.teachers import ModelTeacher
from glassformer.tasks.base import AnyTask, Log
from glassformer.tasks.texts import no_op
from glassformer.train_config import TrainConfig
from glassformer.training.run import make_run_folder, train

FOLDER = "synthetic"
"""Folder in the run folder with the models that translate monolingual text, and the translations."""

HELPER_SHARE = 0.25
"""Part of a training of so many minutes for each model that translates monolingual text."""

IMPROBABLE = 0.1
"""Part of the translations that are not used: the least probable."""

MAX_REPETITIONS = 20
"""The parallel text is repeated at most so often, to be at least half of the training text."""

PARALLEL_SAMPLE = 50_000
"""Number of pairs that tell the languages."""


@dataclass(frozen=True, slots=True)
class Direction:
    """What differs between target text, which is translated back, and source text."""

    option: str
    side: int
    """Side of the monolingual text: 0 source, 1 target."""
    model_option: str
    folder: str


BACK = Direction("--more-tgt", 1, "reverse_model", "back")
FORWARD = Direction("--more-src", 0, "forward_model", "forward")


def train_with_all(config: TrainConfig, *, quiet: bool = False, started_s: float | None = None) -> AnyTask:
    """Train a model, on parallel and monolingual text if the options name monolingual text: see `training.run.train`.

    Raises:
        UserError: a file or an option cannot be used.
        Stopped: a signal stopped it; what is done is kept.
    """
    if not (config.more_tgt or config.more_src):
        return train(config, quiet=quiet, started_s=started_s)
    return train_with_more(config, no_op if quiet else print_log, quiet=quiet)


def train_with_more(config: TrainConfig, log: Log, *, quiet: bool = False) -> AnyTask:
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
    if "RANK" in os.environ:
        raise ConfigError("--more-tgt and --more-src: not in a process that a launcher started.\n  Use --devices.")
    if config.task not in (None, "translation") or config.init_from:
        raise ConfigError("--more-tgt and --more-src: for translation from scratch.\n  Leave them out.")
    pairs = [(e.src, e.tgt) for e in islice(read_pairs(config.src, config.tgt, keys=config.keys), PARALLEL_SAMPLE)]
    languages = languages_of(config.src, config.tgt, config.keys, config.languages)
    make_run_folder(config.out)
    check_is_own_run(config, config.out / FOLDER)
    without_more = {"more_tgt": (), "more_src": (), "reverse_model": None, "forward_model": None}
    plain = config.model_copy(update={**without_more, "languages": languages})
    directions = [(BACK, config.more_tgt), (FORWARD, config.more_src)]
    directions = [(direction, files) for direction, files in directions if files]
    src, tgt, n_made = list(config.src), list(config.tgt), 0
    own = files_of_both_sides(config) if not config.tgt else None
    if own:
        src, tgt = [own[0]], [own[1]]
    parallel = list(zip(src, tgt, strict=True))
    tagged: list[Path] = []
    for direction, files in directions:
        texts = usable_texts(direction, files, pairs, config, log)
        made = config.out / FOLDER / f"{direction.folder}.src", config.out / FOLDER / f"{direction.folder}.tgt"
        model = getattr(config, direction.model_option)
        n_made += translated(direction, texts, pairs, made, model, plain, log, quiet=quiet)
        src.append(made[0])
        tgt.append(made[1])
        if direction is BACK:
            tagged.append(made[0])
    n_parallel = sum(1 for _ in read_pairs(config.src, config.tgt, keys=config.keys))
    n_times = max(1, min(MAX_REPETITIONS, round(n_made / n_parallel)))
    for _ in range(n_times - 1):
        src += [pair[0] for pair in parallel]
        tgt += [pair[1] for pair in parallel]
    times = f", {n_times} times" if n_times > 1 else ""
    log(f"Training text: {n_parallel:,} pairs{times}, and {n_made:,} with a translation by a model.")
    minutes = config.minutes and config.minutes * (1 - HELPER_SHARE * n_trained(config, directions))
    update = {"src": tuple(src), "tgt": tuple(tgt), "tagged": tuple(tagged), "minutes": minutes}
    if own:
        update |= {"format": None, "keys": ()}
    return train(plain.model_copy(update=update), quiet=quiet)


def n_trained(config: TrainConfig, directions: Sequence[tuple[Direction, Sequence[Path]]]) -> int:
    """Number of models that are trained to translate monolingual text."""
    return sum(getattr(config, direction.model_option) is None for direction, _ in directions)


def files_of_both_sides(config: TrainConfig) -> tuple[Path, Path]:
    """The two sides of files of pairs, as plain text in the run folder."""
    folder = config.out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / "parallel.src", folder / "parallel.tgt"
    write_pairs(files, [(e.src, e.tgt) for e in read_pairs(config.src, format=config.format, keys=config.keys)])
    return files


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
    held_out = dev_texts(config, side)
    known = {pair[side].strip() for pair in pairs}
    leaked = [text for text in texts if text in held_out]
    if leaked:
        log(f"{direction.option}: {len(leaked):,} lines that are in the dev set were left out (first: {leaked[0]!r}).")
    texts = [text for text in texts if text not in held_out and text not in known]
    own, other = (Language([pair[i] for pair in pairs]) for i in (side, 1 - side))
    long = [text for text in texts if len(letters_of(text)) >= MIN_LETTERS]
    foreign = {text for text in long if not own.has(text)}
    if len(foreign) > len(long) / 2:
        is_swapped = other.is_known and sum(map(other.has, long)) > len(long) / 2
        swapped = FORWARD.option if direction is BACK else BACK.option
        advice = f"It looks like text of the other side: {swapped}" if is_swapped else "Check the file"
        name = "target" if side else "source"
        raise CorpusError(
            f"{files[0]}: {len(foreign):,} of {len(long):,} lines are not in the language of the {name} side"
            f" (first: {next(iter(foreign))[:60]!r}).\n  {advice}."
        )
    if foreign:
        log(f"{direction.option}: {len(foreign):,} lines in another language were left out.")
    texts = [text for text in texts if text not in foreign]
    log(f"{direction.option}: {len(texts):,} different lines of {len(lines):,}.")
    return texts


def dev_texts(config: TrainConfig, side: int) -> set[str]:
    """The texts of one side of the dev set that is given."""
    if not config.dev_src:
        return set()
    examples = read_pairs(config.dev_src, config.dev_tgt, keys=config.keys)
    return {(e.src, e.tgt)[side].strip() for e in examples}


def translated(
    direction: Direction,
    texts: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    files: tuple[Path, Path],
    folder: Path | None,
    config: TrainConfig,
    log: Log,
    *,
    quiet: bool,
) -> int:
    """Translate monolingual text, and write pairs of source and target. Returns their number.

    Args:
        pairs: parallel text.
        folder: the model that translates. None: it is trained first.
        config: the options of the training, without monolingual text.
    """
    if folder is None:
        folder = config.out / FOLDER / f"{direction.folder}-model"
        train_helper(direction, folder, config, log, quiet=quiet)
    check_is_not_student([folder], config.out)
    options = DecodeConfig(beam=1, precision="auto", batch_tokens=4096)
    teacher = ModelTeacher([folder], options, device=config.device)
    asked = config.out / FOLDER / f"{direction.folder}-answers"
    answers = ask(teacher, texts, asked, log)
    filter_ = filter_for(direction, pairs, answers)
    made = [
        (text, answer.texts[0])
        for text, answer in zip(texts, answers, strict=True)
        if filter_.accepts(text, answer.texts[0] if answer.texts else "", answer)
    ]
    log(filter_.report(len(texts)))
    option = "--" + direction.model_option.replace("_", "-")
    filter_.check(len(texts), asked / ANSWERS, f"Train longer, or give a better model with {option}")
    write_pairs(files, [pair[::-1] if direction is BACK else pair for pair in made])
    return len(made)


def train_helper(direction: Direction, folder: Path, config: TrainConfig, log: Log, *, quiet: bool) -> None:
    """Train a model that translates monolingual text, on the parallel text."""
    swapped: JsonObject = {}
    if direction is BACK:
        swapped = {"languages": config.languages[::-1]}
        if config.tgt:
            swapped |= {"src": config.tgt, "tgt": config.src}
        else:
            own = files_of_both_sides(config)
            swapped |= {"src": (own[1],), "tgt": (own[0],), "format": None, "keys": ()}
        if config.dev_src and config.dev_tgt:
            swapped |= {"dev_src": config.dev_tgt, "dev_tgt": config.dev_src}
        elif config.dev_src:
            swapped |= {"dev_src": ()}
    minutes = config.minutes and config.minutes * HELPER_SHARE
    what = "back" if direction is BACK else "the source text"
    log(f"Training a model that translates {what}, in {folder} ({direction.option}).")
    helper = {"out": folder, "minutes": minutes, "profile": False}
    train(config.model_copy(update=swapped | helper), quiet=quiet)


def filter_for(direction: Direction, pairs: Sequence[tuple[str, str]], answers: Sequence[Answer]) -> Filter:
    """What translations of monolingual text must be like."""
    ordered = [pair[::-1] if direction is BACK else pair for pair in pairs]
    language = Language([text for _, text in ordered])
    scores = [answer.score for answer in answers if answer.score is not None]
    least = float(np.quantile(scores, IMPROBABLE)) if scores else None
    sample = ordered[:: max(1, len(ordered) // SAMPLE)]
    return Filter(language if language.is_known else None, typical_ratio(sample), least)
