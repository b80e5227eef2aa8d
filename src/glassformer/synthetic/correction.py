"""A translator is trained further on corrected translations, mixed with the text that it was trained on. The result
replaces it only if it is not worse on other text.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.corpora.corpus import read_pairs
from glassformer.corpora.example import Example, with_both_sides
from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError, CorpusError, UserError
from glassformer.synthetic.distillation import PLAIN_TEXT, check_is_own_run, write_pairs
from glassformer.tasks.base import Log
from glassformer.tasks.memories import tagged_training_text
from glassformer.tasks.registry import load
from glassformer.tasks.texts import evenly_spaced
from glassformer.tasks.translation import Translator
from glassformer.tokens.codes import code_ids
from glassformer.train_config import NO_TAG, TrainConfig
from glassformer.training.options import store_options
from glassformer.training.run import make_run_folder, train

FOLDER = "update"
"""Folder in the run folder with the text of the training."""

MAX_OLD = 50_000
"""Number of pairs of the earlier training that are used again."""

SHARE, MAX_COPIES = 0.2, 50
"""Fraction of corrections among the pairs of the training, and how often each is used in a pass at most."""

MAX_DEV = 1000
"""Number of pairs of the dev set on which both models are compared."""

MAX_LEARNING_RATE, LEARNING_RATE_FRACTION = 0.002, 0.25
"""The learning rate: this fraction of that of a training from scratch, or that of a fine-tuning. Tried with the preset
`tiny` on the corrections of one file only."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """chrF of the old and the new model."""

    before: float
    after: float

    @property
    def gain(self) -> float:
        """Difference in chrF."""
        return self.after - self.before

    def __str__(self) -> str:
        return f"chrF {self.before:.1f} before, {self.after:.1f} after"


@dataclass(frozen=True, slots=True)
class Update:
    """What an update has brought."""

    folder: Path
    dev: Comparison
    corrections: Comparison
    examples: list[tuple[str, str, str, str]]
    """Source, correction, and the translations before and after, of the corrections that were translated otherwise."""


def update(
    model: Path,
    src: Sequence[Path],
    tgt: Sequence[Path],
    options: JsonObject,
    *,
    out: Path,
    max_drop: float,
    log: Log,
    quiet: bool = False,
) -> Update:
    """Train a translator further on corrections. Repeating the call resumes an interrupted one.

    Args:
        model: the run folder of the translator, which has its training text and its dev set.
        src: files of corrections; entries of memories, XLIFF and catalogues that are not fuzzy, or pairs of texts.
        tgt: target files, if the source files have one side.
        options: options of the training and of reading the corrections. Default of the languages of the files: those
            of the translator, which keeps its own.
        out: the new folder.
        max_drop: by how much chrF on the dev set may fall.
        log: called with messages.

    Raises:
        UserError: the folder has no training text, there are no corrections, or the new model is worse on the dev set;
            it is then kept beside `out`.
        Stopped: a signal stopped it; what is done is kept.
    """
    if out.exists():
        raise ConfigError(f"{out}: exists already.\n  Name a new folder.")
    old = load(model, device="cpu")
    if not isinstance(old, Translator):
        raise ConfigError(f"{model}: was trained for {old.name}, not for translation.\n  Name a translator.")
    reading = {name: options[name] for name in PLAIN_TEXT if options.get(name)}
    languages = options.get("languages") or old.languages
    old.check_direction(languages, "Give the languages of the model with --languages, or name its corrections.")
    entries = read_pairs(src, tgt, languages=languages, log=log, **reading)
    corrections = list(dict.fromkeys(map(texts_of, with_both_sides(entries, log))))
    if not corrections:
        raise CorpusError(f"{src[0]}: no corrected text.\n  Name files with translations that are not fuzzy.")
    corrected = {source for source, _ in corrections}
    earlier, dev = earlier_text(model)
    earlier = {tag: [pair for pair in pairs if pair[0] not in corrected] for tag, pairs in earlier.items()}
    n_earlier = sum(map(len, earlier.values()))
    dev = [pair for pair in dev if pair[0] not in corrected]
    if not dev:
        raise CorpusError(
            f"{src[0]}: has all sources of the dev set of {model}, on which the models are compared.\n"
            "  Leave some of them out of the corrections."
        )
    candidate = out.with_name(f"{out.name}-candidate")
    make_run_folder(candidate)
    folder = candidate / FOLDER
    folder.mkdir(exist_ok=True)
    earlier = {tag: pairs for tag, pairs in earlier.items() if pairs}
    tags = (NO_TAG, *earlier)
    names = {tag: "earlier" if tag == NO_TAG else f"earlier-{tag}" for tag in earlier}
    texts = {"corrections": corrections, **{names[tag]: pairs for tag, pairs in earlier.items()}}
    files = {name: (folder / f"{name}.src", folder / f"{name}.tgt") for name in (*texts, "dev")}
    weight = min(max(1.0, SHARE / (1 - SHARE) * n_earlier / len(corrections)), MAX_COPIES)
    log(
        f"{len(corrections):,} correction{'s' * (len(corrections) > 1)}, {weight:.0f} times each, mixed with"
        f" {n_earlier:,} pairs of the earlier training; {len(dev):,} pairs to compare on."
    )
    config = TrainConfig.resolve(
        {
            "lr": learning_rate(model),
            **{name: value for name, value in options.items() if name not in PLAIN_TEXT},
            "src": tuple(files[name][0] for name in texts),
            "tgt": tuple(files[name][1] for name in texts),
            "dev_src": (files["dev"][0],),
            "dev_tgt": (files["dev"][1],),
            "weights": (weight, *[1.0] * (len(texts) - 1)),
            "tags": tags if set(tags) != {NO_TAG} else (),
            "languages": old.languages,
            "task": "translation",
            "inline_codes": bool(code_ids(old.tokenizer)),
            "init_from": model,
            "out": candidate,
        },
        environment={},
    )
    check_is_own_run(config, folder)
    for name, pairs in {**texts, "dev": dev}.items():
        write_pairs(files[name], pairs)
    train(config, quiet=quiet)
    new = load(candidate, device="cpu")
    assert isinstance(new, Translator)
    on_dev, _ = compare(old, new, dev)
    on_corrections, examples = compare(old, new, corrections)
    write_report(candidate / "corrections.tsv", examples)
    if on_dev.gain < -max_drop:
        folders = (out.with_name(f"{out.name}-rejected{number or ''}") for number in count())
        rejected = next(folder for folder in folders if not folder.exists())
        move(candidate, rejected)
        raise UserError(
            f"the new model is worse on the dev set: {on_dev} ({on_dev.gain:+.1f}, allowed {-max_drop:+.1f}).\n"
            f"  It is not used: {rejected}. Its translations of the corrections: {rejected / 'corrections.tsv'}.\n"
            "  Train for a shorter time, with a lower learning rate (--lr), with more corrections, or allow more:"
            " --max-drop."
        )
    move(candidate, out)
    return Update(out, on_dev, on_corrections, examples)


def move(folder: Path, new: Path) -> None:
    """Give a run folder another name, also in its options, so that it can be repeated."""
    folder.rename(new)
    config = TrainConfig.resolve({}, new / "run.toml", environment={})
    files = {
        name: tuple(new / path.relative_to(folder) if path.is_relative_to(folder) else path for path in paths)
        for name, paths in config
        if name in ("src", "tgt", "dev_src", "dev_tgt")
    }
    store_options(config.model_copy(update={**files, "out": new}))


def learning_rate(model: Path) -> float:
    """Learning rate for a training that continues that of a run folder."""
    trained = TrainConfig.resolve({}, model / "run.toml", environment={})
    if trained.lr is None:
        return MAX_LEARNING_RATE
    return min(MAX_LEARNING_RATE, trained.lr if trained.init_from else LEARNING_RATE_FRACTION * trained.lr)


def texts_of(example: Example) -> tuple[str, str]:
    """Source and target of an example."""
    return example.src.strip(), example.tgt.strip()


def earlier_text(model: Path) -> tuple[dict[str, list[tuple[str, str]]], list[tuple[str, str]]]:
    """Pairs of the training of a run folder, by tag, and of its dev set.

    Raises:
        ConfigError: it has none.
    """
    data = model / "data"
    if not (data / "train").is_dir() or not (data / "dev.jsonl").is_file():
        raise ConfigError(
            f"{model}: has no training text (data/train), with which corrections are mixed.\n"
            "  Name the run folder that the training wrote, not an exported one."
        )
    records = map(json.loads, (data / "dev.jsonl").read_text(encoding="utf-8").splitlines())
    dev = [(record["src"], record["tgt"]) for record in records]
    by_tag: dict[str, list[tuple[str, str]]] = {}
    for tag, *pair in dict.fromkeys(tagged_training_text(model, MAX_OLD)):
        by_tag.setdefault(tag or NO_TAG, []).append((pair[0], pair[1]))
    return by_tag, list(evenly_spaced(dev, MAX_DEV))


def compare(
    old: Translator, new: Translator, pairs: Sequence[tuple[str, str]]
) -> tuple[Comparison, list[tuple[str, str, str, str]]]:
    """chrF of the translations of both models, and those that differ, each with its source and reference."""
    examples = [Example(src, tgt, "", 0) for src, tgt in pairs]
    options = DecodeConfig(precision="auto")
    outputs, scores = zip(*(task.evaluate(examples, options) for task in (old, new)), strict=True)
    before, after = (next(score.value for score in found if score.name.startswith("chrF")) for found in scores)
    differing = [
        (src, tgt, first, second) for (src, tgt), first, second in zip(pairs, *outputs, strict=True) if first != second
    ]
    return Comparison(before, after), differing


def write_report(path: Path, examples: Sequence[tuple[str, str, str, str]]) -> None:
    """Write the corrections that the two models translate differently, as a table."""
    text = io.StringIO()
    rows = csv.writer(text, delimiter="\t", lineterminator="\n")
    rows.writerow(["source", "correction", "before", "after"])
    rows.writerows(examples)
    checkpoint.write_text(path, text.getvalue())
