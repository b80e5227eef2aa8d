"""The final model of a training run: the best on the dev set of averaged, last and best weights, and the mean with the
model that it began with.
"""

from torch import Tensor

from glassformer import checkpoint
from glassformer.config import JsonObject
from glassformer.errors import CheckpointError
from glassformer.learning.translation import TranslationObjective
from glassformer.manifest import verify
from glassformer.metrics import tokenizer_for
from glassformer.metrics.registry import format_metric, metric
from glassformer.models.base import Model
from glassformer.training import translators
from glassformer.training.divergence import DivergedError
from glassformer.training.environment import environment
from glassformer.training.model_card import model_card, usage_example
from glassformer.training.progress import Reporter, duration
from glassformer.training.trainer import Trainer


def finish(trainer: Trainer, reporter: Reporter, base: Model | None = None) -> None:
    """Write the final model to the run folder: the best on the dev set of averaged, last and best checkpoints.

    All processes must call this.

    Args:
        base: the model that the training began with. If it has the same weights, the mean with it is a candidate as
            well: it forgets less (Wortsman et al. 2022, Robust fine-tuning of zero-shot models).
    """
    progress, task, validator = trainer.progress, trainer.task, trainer.validator
    main_metric = trainer.objective.metric
    # The copies are in CPU memory: a GPU may have no room for them.
    last = {name: value.to("cpu", copy=True) for name, value in task.model.state_dict().items()}
    candidates: dict[str, dict[str, Tensor]] = {}
    if (n := progress.n_averaged) > 1:
        candidates[f"the average of {n} checkpoints"] = {
            name: (total / n).cpu() for name, total in trainer.averages.sums.items()
        }
    if trainer.averages.ema:
        candidates["the exponential moving average"] = {name: x.cpu() for name, x in trainer.averages.ema.items()}
    candidates["the last checkpoint"] = last
    if base and {name: x.shape for name, x in base.state_dict().items()} == {name: x.shape for name, x in last.items()}:
        first, weights = next(iter(candidates.items()))
        candidates[f"the mean of {first} and the model it began with"] = {
            name: (weights[name] + x.cpu()) / 2 for name, x in base.state_dict().items()
        }
    known = {"the last checkpoint": progress.last_score, "the best checkpoint": progress.best_score}
    best = trainer.config.out / "best" / f"step-{progress.best_step}"
    if progress.best_step != progress.step and best.exists():
        try:
            verify(best)
            candidates["the best checkpoint"] = checkpoint.read_tensors(best / "model.safetensors")
        except CheckpointError as error:
            problem = str(error).partition("\n")[0]
            reporter.log(f"warning: {problem}\n  The final model is chosen among the other checkpoints.")
    if validator.decode_more(len(candidates)) or validator.selection({"loss": 0.0}) != main_metric:
        known = {}  # scores on fewer examples are not comparable; if the loss selects, the others are not known
    selection = main_metric
    results: dict[str, dict[str, float]] = {}
    for name, weights in candidates.items():
        if (score := known.get(name)) is None:
            task.model.load_state_dict(weights)
            try:
                results[name] = validator.metrics()
            except DivergedError as error:
                reporter.log(f"warning: {name} cannot be the final model: {error}.")
                continue
            selection = validator.selection(results[name])
        else:
            results[name] = {main_metric: score}
    trainer.processes.lead(lambda: write_best(trainer, candidates, results, selection, reporter))


def write_best(
    trainer: Trainer,
    candidates: dict[str, dict[str, Tensor]],
    results: dict[str, dict[str, float]],
    selection: str,
    reporter: Reporter,
) -> JsonObject:
    """Write the best of `candidates` as the final model.

    Args:
        candidates: weights by name.
        results: their metrics on the dev set.
        selection: the metric that selects the best.

    Returns:
        The contents of training.json.
    """
    progress, config, task = trainer.progress, trainer.config, trainer.task
    main_metric = trainer.objective.metric
    sign = 1 if metric(selection).larger_is_better else -1
    name = max(results, key=lambda candidate: sign * results[candidate][selection])  # the first in case of ties
    score = results[name][main_metric]
    training = {
        f"dev_{main_metric}": round(score, 4),
        "weights": name,
        "steps": progress.step,
        "targets": progress.n_tokens,
        "minutes": round(trainer.elapsed_s() / 60, 1),
        f"n_{task.examples_name}": len(trainer.data.train),
        "preset": config.preset,
        "precision": config.precision,
        "machine": environment(config, trainer.processes),
    }
    training |= {name: n for name, n in (("skipped", trainer.n_skipped), ("returns", progress.n_returns)) if n}
    if trainer.data.label_counts:
        training["labels"] = trainer.data.label_counts
    if isinstance(trainer.objective, TranslationObjective):
        task.model.load_state_dict(candidates[name])
        is_new = trainer.config.init_from is None
        translators.complete(trainer.objective, trainer.data, reporter.log, is_new=is_new)
        if (tokenizer := tokenizer_for(task.references(trainer.data.dev))) != "13a":
            training["bleu_tokenizer"] = tokenizer
    contents = {**task.contents(candidates[name]), "training.json": checkpoint.to_json(training)}
    checkpoint.save_into_folder(config.out, contents)
    checkpoint.write_text(config.out / "README.md", model_card(config, task, main_metric, training))
    summary = ", ".join(
        f"{' and '.join(format_metric(each, found[each]) for each in dict.fromkeys((main_metric, selection)))}"
        f" for {candidate}"
        for candidate, found in results.items()
    )
    if selection != main_metric:
        summary += f" (chosen by the loss: {trainer.validator.state.n_decoded} decoded examples are too few)"
    if "bleu_tokenizer" in training:
        summary += f" (BLEU with sacrebleu's tokenizer {training['bleu_tokenizer']})"
    skipped = f", of which {trainer.n_skipped:,} were skipped," if trainer.n_skipped else ""
    reporter.log(
        f"Trained {progress.step:,} steps{skipped} in {duration(trainer.elapsed_s())}. Dev scores: {summary}.\n"
        f"Saved {name} to {config.out}. Try: {usage_example(task, config.out)}"
    )
    return training
