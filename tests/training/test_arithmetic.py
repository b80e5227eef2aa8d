import pytest
import torch

from glassformer import measurement
from glassformer.models.t5 import T5Config
from glassformer.nn import cpu_training
from glassformer.nn.ops.linear import linear
from glassformer.recording.precision import fastest
from glassformer.runtime import precision as decoding
from glassformer.train_config import TrainConfig
from glassformer.training import arithmetic as a

CPU = torch.device("cpu")
SIZES = a.Sizes(32, 48, 2, 101)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def seconds(monkeypatch):
    """Times that a measurement finds, by the names of the candidates; 1 where none is given."""
    found: dict[str, float] = {}

    def measure(candidates):
        for call in candidates.values():
            call()
        return {name: found.get(name, 1.0) for name in candidates}

    monkeypatch.setattr(measurement, "measure", measure)
    monkeypatch.setattr(cpu_training, "has_product", lambda dtype: True)
    monkeypatch.setattr(a, "has_fast_bf16", lambda device: True)
    monkeypatch.setattr(a, "training_call", lambda *_: lambda: None)
    return found


def options(**given):
    return TrainConfig(src=("a",), tgt=("b",), out="out", **given)


@pytest.mark.parametrize(
    ("fast", "chosen"),
    [
        ({}, ("fp32", "kernels")),
        ({"fp32 torch": 0.9}, ("fp32", "torch")),
        ({"bf16 kernels": 0.9}, ("bf16", "kernels")),
        ({"bf16 kernels": 0.9, "bf16 torch": 0.3}, ("bf16", "torch")),
        ({"bf16 kernels": 0.96}, ("fp32", "kernels")),
    ],
)
def test_the_fastest_arithmetic_is_chosen_and_fp32_if_it_is_as_fast(fast, chosen, seconds):
    seconds |= fast
    config, message = a.choose_arithmetic(options(), CPU, SIZES)
    assert (config.precision, config.cpu_matmul) == chosen
    assert message is not None
    assert "bf16 by PyTorch" in message


def test_options_that_are_given_are_not_chosen(seconds):
    seconds |= {"bf16 torch": 0.1, "fp32 torch": 0.5}
    config, _ = a.choose_arithmetic(options(precision="fp32"), CPU, SIZES)
    assert (config.precision, config.cpu_matmul) == ("fp32", "torch")
    config, _ = a.choose_arithmetic(options(cpu_matmul="kernels"), CPU, SIZES)
    assert (config.precision, config.cpu_matmul) == ("fp32", "kernels")
    config, message = a.choose_arithmetic(options(precision="fp32", cpu_matmul="kernels"), CPU, SIZES)
    assert (config.precision, config.cpu_matmul, message) == ("fp32", "kernels", None)


def test_without_instructions_for_bf16_it_is_no_candidate(monkeypatch):
    monkeypatch.setattr(a, "has_fast_bf16", lambda device: False)
    assert {precision for precision, _ in a.candidates(CPU)} == {"fp32"}


@pytest.mark.parametrize("pair", a.candidates(CPU))
def test_each_candidate_computes_by_its_library(pair, monkeypatch):
    calls = []
    monkeypatch.setattr(cpu_training, "run", lambda kernel, _: calls.append(kernel))
    a.training_call(SIZES, *pair, n_rows=64)()
    assert (cpu_training.t.PRODUCT in calls) == (pair[1] == "kernels")
    assert linear.selectable == linear.implementations


def test_a_measurement_does_not_change_random_numbers():
    expected = torch.Generator().manual_seed(torch.initial_seed())
    a.choose_among(SIZES, a.candidates(CPU) * 2)
    assert torch.equal(torch.rand(5), torch.rand(5, generator=expected))


def test_decoding_is_measured_for_models_whose_heads_have_a_size_of_their_own():
    config = T5Config(vocab_size=31, d_model=44, n_heads=3, d_head=16, d_ff=97, n_encoder_layers=1, n_decoder_layers=1)
    assert fastest(CPU, config) in ("fp32", "int8")


def test_decoding_is_in_fp32_where_int8_is_not_faster(monkeypatch):
    config = decoding.BertConfig(vocab_size=11, d_model=32, n_heads=2, d_ff=48, n_layers=1)
    if decoding.measured_choice(config) is None:
        return  # without the library there is nothing to choose
    for i, (times, chosen) in enumerate(
        [((1, 1), "fp32"), ((1, 0.5), "int8"), ((1, 0.97), "fp32"), ((0.5, 1), "fp32")]
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", f"/nonexistent/{i}")
        monkeypatch.setattr(measurement, "measure", lambda c, times=times: dict(zip(c, times, strict=True)))
        assert fastest(CPU, config) == chosen


def test_the_time_of_several_processes_adds_up(seconds):
    seconds["bf16 kernels"] = 0.5
    one, three = (a.available_flop(options(minutes=10), CPU, n) for n in (1, 3))
    assert three == pytest.approx(3 * one)
    assert a.available_flop(options(steps=10), CPU, 1) is None
