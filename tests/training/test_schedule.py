import pytest
import torch
from torch.optim.lr_scheduler import ConstantLR, PolynomialLR, SequentialLR

from glassformer.training.schedule import inverse_sqrt_schedule

D_MODEL, N_WARMUP, N_STEPS = 512, 401, 2003
RECIPE = dict(peak=7e-4, warmup_ratio=0.05, decay_ratio=0.3)


def rates(n_steps: int = N_STEPS, **recipe) -> list[float]:
    """The rate of each update of a run of that many steps."""
    return [inverse_sqrt_schedule((step - 1) / n_steps, step / n_steps, **recipe) for step in range(1, n_steps + 1)]


def scheduled(make) -> list[float]:
    """The rate of each update of a run, as a scheduler of torch or transformers sets it."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=RECIPE["peak"])
    scheduler = make(optimizer)
    found = []
    for _ in range(N_STEPS):
        found.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return found


@pytest.mark.parametrize("n_warmup", [1, 7, N_WARMUP])
def test_warm_up_and_decay_match_transformers(n_warmup):
    schedules = pytest.importorskip("transformers").optimization
    theirs = scheduled(lambda o: schedules.get_inverse_sqrt_schedule(o, n_warmup, timescale=n_warmup))
    ours = rates(peak=RECIPE["peak"], warmup_ratio=n_warmup / N_STEPS)
    assert ours[:-1] == pytest.approx(theirs[1:])  # theirs gives the first update a rate of 0


def test_cool_down_matches_pytorch():
    n_cooldown = 601
    theirs = scheduled(
        lambda o: SequentialLR(
            o,
            [ConstantLR(o, factor=1, total_iters=1), PolynomialLR(o, total_iters=n_cooldown)],
            [N_STEPS - n_cooldown],
        )
    )
    assert rates(peak=RECIPE["peak"], warmup_ratio=0.0, decay_ratio=n_cooldown / N_STEPS) == pytest.approx(theirs)


def test_without_cooldown_it_is_the_papers_equation_3():
    found = rates(peak=(D_MODEL * N_WARMUP) ** -0.5, warmup_ratio=N_WARMUP / N_STEPS)
    expected = [D_MODEL**-0.5 * min(step**-0.5, step * N_WARMUP**-1.5) for step in range(1, N_STEPS + 1)]
    assert found == pytest.approx(expected)


def test_the_base_model_of_the_paper_peaks_after_4000_updates():
    found = rates(100_000, peak=(512 * 4000) ** -0.5, warmup_ratio=4000 / 100_000)
    assert found.index(max(found)) + 1 == 4000
    assert max(found) == pytest.approx((512 * 4000) ** -0.5)


def test_fitted_rises_in_the_warm_up_and_never_again():
    found = rates(**RECIPE)
    peak = found.index(max(found))
    assert peak + 1 == pytest.approx(RECIPE["warmup_ratio"] * N_STEPS, abs=1)
    assert found[: peak + 1] == sorted(found[: peak + 1])
    assert found[peak:] == sorted(found[peak:], reverse=True)


def test_fitted_peaks_at_the_peak():
    assert max(rates(**RECIPE)) == pytest.approx(RECIPE["peak"], rel=0.01)


def test_cool_down_ends_near_zero_but_above_it():
    last = rates(**RECIPE)[-1]
    assert 0 < last < 0.001 * RECIPE["peak"]


def test_cool_down_changes_nothing_before_it_begins():
    begin = int(0.7 * N_STEPS)
    assert rates(**RECIPE)[:begin] == rates(**RECIPE | {"decay_ratio": 0.0})[:begin]


def test_no_warm_up_begins_at_the_peak_and_stays():
    assert set(rates(peak=7e-4, warmup_ratio=0.0)) == {7e-4}


def test_every_update_has_a_rate_above_zero_even_the_only_one():
    for n_steps in (1, 2, 3, 11):
        assert min(rates(n_steps, **RECIPE)) > 0


def test_the_shape_does_not_depend_on_the_number_of_steps():
    short, long = rates(401, **RECIPE), rates(4010, **RECIPE)
    assert long[9::10] == pytest.approx(short, abs=RECIPE["peak"] / 401)
