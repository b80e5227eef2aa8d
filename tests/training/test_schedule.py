import pytest
import torch
from torch.optim.lr_scheduler import ConstantLR, PolynomialLR, SequentialLR

from glassformer.training.schedule import SCHEDULES, crossed, learning_rate

D_MODEL, N_WARMUP, N_STEPS = 512, 401, 2003
RECIPE = dict(peak=7e-4, warmup_ratio=0.05, decay_ratio=0.3)


def rates(n_steps: int = N_STEPS, **recipe) -> list[float]:
    """Learning rate of each update of a run of `n_steps` steps."""
    return [learning_rate((step - 1) / n_steps, step / n_steps, **recipe) for step in range(1, n_steps + 1)]


def scheduled(make) -> list[float]:
    """Learning rate of each update of a run, from a scheduler of torch or transformers."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=RECIPE["peak"])
    scheduler = make(optimizer)
    learning_rates = []
    for _ in range(N_STEPS):
        learning_rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return learning_rates


@pytest.mark.parametrize("n_warmup", [1, 7, N_WARMUP])
def test_warm_up_and_decay_match_transformers(n_warmup):
    schedules = pytest.importorskip("transformers").optimization
    theirs = scheduled(lambda o: schedules.get_inverse_sqrt_schedule(o, n_warmup, timescale=n_warmup))
    ours = rates(peak=RECIPE["peak"], warmup_ratio=n_warmup / N_STEPS)
    assert ours[:-1] == pytest.approx(theirs[1:])  # the rate of their first update is 0


def test_decay_matches_pytorch():
    n_decay = 601
    theirs = scheduled(
        lambda o: SequentialLR(
            o,
            [ConstantLR(o, factor=1, total_iters=1), PolynomialLR(o, total_iters=n_decay)],
            [N_STEPS - n_decay],
        )
    )
    assert rates(peak=RECIPE["peak"], warmup_ratio=0.0, decay_ratio=n_decay / N_STEPS) == pytest.approx(theirs)


def test_without_decay_the_schedule_is_equation_3_of_the_paper():
    learning_rates = rates(peak=(D_MODEL * N_WARMUP) ** -0.5, warmup_ratio=N_WARMUP / N_STEPS)
    expected = [D_MODEL**-0.5 * min(step**-0.5, step * N_WARMUP**-1.5) for step in range(1, N_STEPS + 1)]
    assert learning_rates == pytest.approx(expected)


def test_the_base_model_of_the_paper_peaks_after_4000_updates():
    learning_rates = rates(100_000, peak=(512 * 4000) ** -0.5, warmup_ratio=4000 / 100_000)
    assert learning_rates.index(max(learning_rates)) + 1 == 4000
    assert max(learning_rates) == pytest.approx((512 * 4000) ** -0.5)


def test_the_rate_rises_during_warm_up_only():
    learning_rates = rates(**RECIPE)
    peak = learning_rates.index(max(learning_rates))
    assert peak + 1 == pytest.approx(RECIPE["warmup_ratio"] * N_STEPS, abs=1)
    assert learning_rates[: peak + 1] == sorted(learning_rates[: peak + 1])
    assert learning_rates[peak:] == sorted(learning_rates[peak:], reverse=True)


def test_the_maximum_is_the_peak_rate():
    assert max(rates(**RECIPE)) == pytest.approx(RECIPE["peak"], rel=0.01)


def test_decay_ends_near_zero_but_above_it():
    last = rates(**RECIPE)[-1]
    assert 0 < last < 0.001 * RECIPE["peak"]


def test_decay_does_not_change_the_rate_before_it_starts():
    start = int(0.7 * N_STEPS)
    assert rates(**RECIPE)[:start] == rates(**RECIPE | {"decay_ratio": 0.0})[:start]


def test_without_warm_up_and_decay_the_rate_is_constant():
    assert set(rates(peak=7e-4, warmup_ratio=0.0)) == {7e-4}


def test_every_update_has_a_positive_rate():
    for n_steps in (1, 2, 3, 11):
        assert min(rates(n_steps, **RECIPE)) > 0


def test_the_schedule_scales_with_the_number_of_steps():
    short, long = rates(401, **RECIPE), rates(4010, **RECIPE)
    assert long[9::10] == pytest.approx(short, abs=RECIPE["peak"] / 401)


@pytest.mark.parametrize("name", ["linear", "cosine"])
@pytest.mark.parametrize("n_warmup", [0, 7, N_WARMUP])
def test_linear_and_cosine_decay_match_transformers(name, n_warmup):
    schedules = pytest.importorskip("transformers").optimization
    make = getattr(schedules, f"get_{name}_schedule_with_warmup")
    theirs = scheduled(lambda o: make(o, n_warmup, N_STEPS))
    ours = rates(peak=RECIPE["peak"], warmup_ratio=n_warmup / N_STEPS, schedule=name)
    assert ours[n_warmup:] == pytest.approx(theirs[n_warmup:])
    assert ours[: max(0, n_warmup - 1)] == pytest.approx(theirs[1:n_warmup])  # their first rate is 0


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("warmup_ratio", [0.0, 0.1, 1.0])
def test_every_schedule_stays_between_0_and_the_peak(name, warmup_ratio):
    learning_rates = rates(peak=1.0, warmup_ratio=warmup_ratio, schedule=name)
    assert min(learning_rates) > 0
    assert 0.99 < max(learning_rates) <= 1


@pytest.mark.parametrize("n", [1, 2, 12, 100])
@pytest.mark.parametrize("n_steps", [100, 101, 997])
def test_each_multiple_of_one_nth_is_crossed_by_one_update(n_steps, n):
    fractions = [step / n_steps for step in range(n_steps + 1)]
    hits = [step for step in range(1, n_steps + 1) if crossed(fractions[step - 1], fractions[step], n)]
    assert len(hits) == n
    assert hits[-1] == n_steps


def test_an_update_between_two_multiples_crosses_none():
    assert not crossed(0.26, 0.49, 4)
    assert crossed(0.26, 0.51, 4)


def test_the_update_that_reaches_a_multiple_crosses_it():
    assert crossed(0.4, 0.5, 2)
    assert not crossed(0.5, 0.6, 2)
