import pytest

from glassformer.training.schedule import inverse_sqrt_schedule, noam

D_MODEL, N_WARMUP, N_STEPS = 512, 401, 2003
RECIPE = dict(peak=7e-4, warmup_ratio=0.05, decay_ratio=0.3)


def rates(n_steps: int = N_STEPS, **recipe) -> list[float]:
    """The rate of each update of a run of that many steps."""
    return [inverse_sqrt_schedule((step - 1) / n_steps, step / n_steps, **recipe) for step in range(1, n_steps + 1)]


@pytest.mark.parametrize("step", [1, 2, 400, 401, 402, 100_003])
def test_noam_is_the_papers_equation_3(step):
    assert noam(step, d_model=D_MODEL, n_warmup=N_WARMUP) == pytest.approx(
        D_MODEL**-0.5 * min(step**-0.5, step * N_WARMUP**-1.5)
    )


def test_noam_of_base_peaks_after_4000_updates_at_the_root_of_their_product():
    found = [noam(step, d_model=512) for step in range(1, 9001)]
    assert found.index(max(found)) + 1 == 4000
    assert max(found) == pytest.approx((512 * 4000) ** -0.5)


def test_noam_rises_by_equal_steps_and_then_falls():
    found = [noam(step, d_model=D_MODEL, n_warmup=N_WARMUP) for step in range(1, N_STEPS)]
    assert found[N_WARMUP - 1] == pytest.approx(N_WARMUP * found[0])
    assert found[:N_WARMUP] == sorted(found[:N_WARMUP])
    assert found[N_WARMUP - 1 :] == sorted(found[N_WARMUP - 1 :], reverse=True)


@pytest.mark.parametrize("step", [0, -7])
def test_noam_before_the_first_update_is_refused(step):
    with pytest.raises(ValueError, match=str(step)):
        noam(step, d_model=D_MODEL)


def test_fitted_without_cooldown_is_noam():
    found = rates(peak=(D_MODEL * N_WARMUP) ** -0.5, warmup_ratio=N_WARMUP / N_STEPS)
    assert found == pytest.approx([noam(step, d_model=D_MODEL, n_warmup=N_WARMUP) for step in range(1, N_STEPS + 1)])


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
