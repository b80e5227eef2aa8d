import json
import random
import signal
from types import SimpleNamespace

import pytest
import torch

from glassformer.corpora.example import Example
from glassformer.corpora.labeled import Labeled
from glassformer.corpora.squad import QAExample
from glassformer.corpora.tagged import Tagged
from glassformer.errors import UserError
from glassformer.learning.registry import objective_class, objective_of
from glassformer.models.bert import Bert, BertConfig
from glassformer.models.gpt2 import Gpt2, Gpt2Config
from glassformer.models.transformer import Transformer, TransformerConfig
from glassformer.tasks.causal_lm import LanguageModel
from glassformer.tasks.classification import Classifier
from glassformer.tasks.documents import Document
from glassformer.tasks.masked_lm import BertPretraining, MaskedLM
from glassformer.tasks.multitask import Multitask, PromptedExample
from glassformer.tasks.question_answering import QuestionAnswerer
from glassformer.tasks.regression import Regressor
from glassformer.tasks.span_corruption import SpanCorruption
from glassformer.tasks.summarization import Summarizer
from glassformer.tasks.tagging import Tagger
from glassformer.tasks.texts import evenly_spaced
from glassformer.tasks.translation import Translator
from glassformer.tokens.tokenizer import Tokenizer
from glassformer.train_config import TrainConfig
from glassformer.training import validation as module
from glassformer.training.distributed import Processes
from glassformer.training.signals import Interrupted, StopSignal
from glassformer.training.validation import ValidationState, Validator
from tests.training.test_distributed import in_all


@pytest.fixture
def validator(tmp_path):
    """A dev set of 1,000 pairs and an objective that records the arguments of the calls of its `validate`."""
    calls = []

    def validate(examples, n_decoded=None):
        calls.append((len(examples), n_decoded))
        return {"bleu": 1.0, "loss": 1.0}

    objective = SimpleNamespace(
        validate=validate, calls=calls, metric="bleu", rows_are_examples=True, validation_decodes=True,
        model=SimpleNamespace(eval=lambda: None), device=torch.device("cpu"),
    )  # fmt: skip
    config = TrainConfig(src=("a",), out=tmp_path, lr=1e-3)
    reporter = SimpleNamespace(validation=lambda *_: None)
    return Validator(objective, ["pair"] * 1000, config, reporter, ValidationState(), lambda: 0.0)


@pytest.mark.parametrize("n_examples", [24_000, 40_000, 10**7])
def test_a_validation_costs_at_most_its_fraction_of_the_training_since_the_last(validator, n_examples):
    validator.state.n_examples = n_examples
    validator.validate(StopSignal())
    ((n_loss, n_decoded),) = validator.objective.calls
    assert n_loss == 1000
    assert 16 <= n_decoded <= 1000
    cost = module.LOSS_COST * n_loss + validator.decode_cost * n_decoded
    assert cost <= module.MAX_VALIDATION_COST * n_examples
    assert n_decoded == 1000 or cost + validator.decode_cost > module.MAX_VALIDATION_COST * n_examples
    assert validator.n_affordable_decodings() < 0


def test_a_validation_that_costs_too_much_is_skipped_except_for_the_last(validator):
    least = (module.LOSS_COST * 1000 + module.MIN_DECODED * validator.decode_cost) / module.MAX_VALIDATION_COST
    validator.state.n_examples = int(least) - 1
    assert not validator.is_due(0.05, 0.1)
    validator.state.n_examples = int(least) + 1
    assert validator.is_due(0.05, 0.1)
    validator.state.n_examples = 1
    assert validator.is_due(0.95, 1.0)


def test_all_validations_of_a_run_decode_the_same_examples(validator):
    for n_examples in (30_000, 90_000):
        validator.state.n_examples += n_examples
        validator.validate(StopSignal())
    assert validator.objective.calls[0] == validator.objective.calls[1]


@pytest.mark.parametrize(("n_examples", "expected"), [(20_000, 0), (120_000, 500), (10**7, 1000)])
def test_the_final_weights_are_compared_on_more_examples_within_the_same_fraction(validator, n_examples, expected):
    validator.config = validator.config.model_copy(update={"family": "rnn"})  # its decoding has no kernels
    validator.state.n_decoded, validator.state.n_examples = 16, n_examples
    assert validator.decode_more(1) == (expected > 16)
    assert validator.state.n_decoded == max(16, expected)
    validator.state.n_decoded = None  # the task does not decode
    assert not validator.decode_more(1)


def test_the_best_weights_are_those_of_the_best_score(validator):
    """The scores rise, fall and tie; of two equal scores the later is kept."""
    best = []
    for step, score in enumerate((1.0, 3.0, 2.0, 3.0, 1.0), start=1):
        validator.state.step = step
        assert not validator.is_best
        validator.objective.validate = lambda examples, n_decoded, score=score: {"bleu": score}
        validator.validate(StopSignal())
        best.append(validator.is_best)
    assert best == [True, True, False, True, False]
    assert (validator.state.best_score, validator.state.last_score) == (3.0, 1.0)


@pytest.mark.parametrize(("n_decoded", "best"), [(16, 2), (99, 2), (100, 1), (1000, 1)])
def test_the_loss_selects_the_weights_if_few_examples_are_decoded(validator, n_decoded, best):
    validator.state.n_decoded = n_decoded
    for step, (bleu, loss) in enumerate([(0.5, 3.0), (0.3, 2.0), (0.1, 2.5)], start=1):
        validator.state.step = step
        found = {"bleu": bleu, "loss": loss}
        validator.objective.validate = lambda examples, n_decoded, found=found: found
        validator.validate(StopSignal())
    assert validator.state.best_step == best


def test_evenly_spaced_examples_are_in_order_and_cover_all_items():
    assert list(evenly_spaced(range(10), 5)) == [0, 2, 4, 6, 8]
    assert list(evenly_spaced(range(7), 3)) == [0, 2, 4]
    assert list(evenly_spaced(range(3), 5)) == list(evenly_spaced(range(3), None)) == [0, 1, 2]


@pytest.mark.parametrize(("device", "deterministic", "has_time"), [
    ("cuda", False, [True, False, False, True]), ("cuda", True, [True] * 4), ("cpu", False, [True] * 4),
])  # fmt: skip
def test_on_a_gpu_validations_take_at_most_their_fraction_of_the_time(validator, device, deterministic, has_time):
    validator.objective.device = torch.device(device)
    validator.config = validator.config.model_copy(update={"deterministic": deterministic})
    elapsed_s, found = [0.0, 250.0, 299.0, 301.0], []
    for i, now_s in enumerate(elapsed_s):
        if i == 1:
            validator.state.validation_s, validator.state.last_validation_s = 9.0, 6.0  # 15 s with the next
        validator.elapsed_s = lambda now_s=now_s: now_s
        found.append(validator.has_time())
    assert found == has_time


def test_the_time_of_validations_is_recorded(validator):
    for _ in range(2):
        validator.validate(StopSignal())
    assert validator.state.validation_s > validator.state.last_validation_s > 0


# Several processes

WORDS = ["the", "black", "cat", "sat", "on", "a", "couch", "and", "slept"]
LABELS = ("X", "Y"), ("0", "1")


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(2, 9)))


MODELS = {
    "encoder-decoder": lambda v, task: Transformer(
        TransformerConfig(vocab_size=v, d_model=22, n_heads=2, d_ff=37, n_encoder_layers=1, n_decoder_layers=1)
    ),
    "encoder": lambda v, task: Bert(
        BertConfig(
            vocab_size=v, d_model=22, n_heads=2, d_ff=37, n_layers=1, max_len=31,
            n_labels=task.n_labels(LABELS[task is Regressor]), **task.head_config,
        )
    ),
    "decoder": lambda v, task: Gpt2(Gpt2Config(vocab_size=v, d_model=22, n_heads=2, d_ff=37, n_layers=1, max_len=31)),
}  # fmt: skip

EXAMPLES = {
    Translator: lambda rng: Example(text(rng), text(rng), "a", 1),
    Multitask: lambda rng: PromptedExample(rng.choice("ab"), text(rng), text(rng), "a", 1),
    Classifier: lambda rng: Labeled(text(rng), None, rng.choice("XY"), "a", 1),
    Regressor: lambda rng: Labeled(text(rng), text(rng), str(rng.random()), "a", 1),
    Tagger: lambda rng: Tagged(*zip(*[(w, rng.choice("XY")) for w in text(rng).split()], strict=True), "a", 1),
    QuestionAnswerer: lambda rng: QAExample("1", "the cat", text(rng), ((rng.choice(WORDS), 0),), "a", 1),
    LanguageModel: lambda rng: Document(text(rng), False, "a", 1),
    Summarizer: lambda rng: Example(text(rng), text(rng), "a", 1),
    MaskedLM: lambda rng: Document(text(rng) * 9, False, "a", 1),
    BertPretraining: lambda rng: Document("".join(text(rng) + "\n" for _ in range(9)), False, "a", 1),
    SpanCorruption: lambda rng: Document(text(rng) * 9, False, "a", 1),
}


@pytest.mark.parametrize("task_type", EXAMPLES)
def test_the_metrics_of_examples_validated_in_parts_are_those_of_all(task_type):
    tokenizer = Tokenizer.train(
        [" ".join(WORDS)] * 5,
        vocab_size=400,
        extra_special_tokens=objective_class(task_type.name).extra_special_tokens,
    )
    task = task_type(
        MODELS[task_type.kind](tokenizer.vocab_size, task_type), tokenizer, "cpu", LABELS[task_type is Regressor]
    )
    for p in task.model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    rng = random.Random(1)
    examples = [EXAMPLES[task_type](rng) for _ in range(41)]
    objective = objective_of(task)
    expected = objective.validate(examples)
    n_parts = []

    def in_parts(function, items):
        parts = [json.loads(json.dumps(function(list(items[rank::3])))) for rank in range(3)]
        n_parts.append(len(items))
        return [parts[i % 3][i // 3] for i in range(len(items))]

    objective.map_parts = in_parts
    assert objective.validate(examples) == pytest.approx(expected, abs=1e-6)
    assert n_parts
    assert min(n_parts) > 2


def in_processes(function, size=3):
    """Results, or errors, of a function of a Validator in a group of threads."""

    def call(group: Processes):
        config = TrainConfig(src=("a",), out="a")
        return function(Validator(SimpleNamespace(), [], config, None, ValidationState(), lambda: 0.0, group))

    return in_all(size, call)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_each_process_computes_a_part_and_all_have_all_results(n):
    parts = []

    def double(items):
        parts.append(items)
        return [[2 * item] for item in items]

    items = list(range(n))
    assert in_processes(lambda v: v.objective.map_parts(double, items)) == [[[2 * i] for i in items]] * 3
    assert sorted(item for part in parts for item in part) == items
    assert all(parts)


def test_a_signal_to_one_process_interrupts_the_validation_of_all():
    def work(validator):
        if validator.processes.rank == 1:
            validator.stop.signum = signal.SIGTERM
        return validator.map_parts(lambda items: items, list(range(7)))

    outcomes = in_processes(work)
    assert [type(outcome) for outcome in outcomes] == [Interrupted] * 3
    assert {outcome.signum for outcome in outcomes} == {signal.SIGTERM}


def test_an_error_of_one_process_is_reported_by_rank_0_and_ends_the_others():
    def fail(items):
        if 1 in items:
            raise UserError("the outputs are not finite")
        return items

    first, failed, last = in_processes(lambda v: v.map_parts(fail, list(range(7))))
    assert isinstance(first, UserError)
    assert str(first) == str(failed) == "the outputs are not finite"
    assert isinstance(last, SystemExit)
