"""What a trained translator gets beside its weights: languages, language profiles, known words, confidence, vocabulary
shortlist."""

from collections.abc import Sequence
from typing import Any

from glassformer.corpora.language_id import LanguageProfiles
from glassformer.corpora.spelling import MAX_TEXTS, KnownWords
from glassformer.data.dataset import Dataset
from glassformer.errors import UserError
from glassformer.learning.translation import TranslationObjective
from glassformer.tasks.base import AnyTask, Log
from glassformer.tasks.confidence import fit_confidence
from glassformer.tasks.texts import evenly_spaced
from glassformer.tasks.translation import Translator
from glassformer.training.encoding import PreparedData

MAX_CALIBRATION = 500
"""Maximum number of dev examples that the confidence of translations is fitted to."""


def inherit(task: AnyTask, base: AnyTask, log: Log) -> None:
    """Take from the model that a training starts from what the files of the training do not have.

    A file of corrections has no languages and few sentences: without this, the model trained on it could not replace
    the one that was corrected.
    """
    if not isinstance(task, Translator) or not isinstance(base, Translator):
        return
    if task.languages and base.languages and task.languages != base.languages:
        log(
            f"Languages: {' to '.join(task.languages)}. Confidence and shortlist of the initial model are not used,"
            f" because they are for {' to '.join(base.languages)}."
        )
        return
    task.languages = task.languages or base.languages
    task.scripts = base.scripts or base.scripts_of_vocabulary or ()
    task.sentences_at_once = base.sentences_at_once
    task.detection, task.confidence, task.shortlist = base.detection, base.confidence, base.shortlist
    task.words = base.words


def complete(objective: TranslationObjective, data: PreparedData, log: Log, *, is_new: bool) -> None:
    """Count the words, and fit confidence and language profiles to the data of a training. Where it has too little,
    those of the initial model are kept.

    Args:
        is_new: there is no initial model. One whose words are not known may know any.
    """
    task = objective.task
    if is_new or task.words:
        words = KnownWords.of(*objective.sample(data.train, MAX_TEXTS), task.language(0))
        if words.counts:
            task.words = task.words.with_words_of(words) if task.words else words
    add_confidence(task, data.dev, log)
    if task.shortlist:
        log("Shortlist: that of the initial model. Learn it again with `glassformer shortlist`.")
    if task.languages:
        profiles = [language_profiles(objective, data.train), *([task.detection] if task.detection else [])]
        task.detection = LanguageProfiles.merged(profiles)


def language_profiles(objective: TranslationObjective, data: Dataset) -> LanguageProfiles:
    """Profiles for the detection of both languages, from examples of the training set."""
    return LanguageProfiles.fit(dict(zip(objective.task.languages, objective.sample(data), strict=True)))


def add_confidence(task: Translator, dev: Sequence[Any], log: Log) -> None:
    """Fit the confidence of translations to examples of the dev set, if there are enough."""
    examples = evenly_spaced(dev, MAX_CALIBRATION)
    try:
        task.confidence, error = fit_confidence(task, [e.src for e in examples], task.references(examples))
    except UserError as error_:
        kept = "Confidence: that of the initial model" if task.confidence else "Without confidence"
        log(f"{kept}: {str(error_).splitlines()[0]}")
    else:
        log(f"Confidence: expected calibration error {error:.3f} on half of {len(examples):,} dev examples.")
