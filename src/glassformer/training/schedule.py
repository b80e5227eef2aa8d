"""Learning rates, as plain functions."""


def inverse_sqrt_schedule(
    start: float, end: float, *, peak: float, warmup_ratio: float, decay_ratio: float = 0.0
) -> float:
    """Learning rate of the original Transformer over a budget: linear warm-up, then step^-0.5 decay; optionally a
    linear fall to 0 at the end.

    With peak = (d_model * n_warmup)^-0.5, warmup_ratio = n_warmup / n_steps and no decay_ratio it is equation 3 of the paper.

    Args:
        start: share of the budget used before this update, 0 to 1.
        end: share used after it.
        peak: the rate at the end of the warm-up.
        warmup_ratio: share of the budget in which the rate rises.
        decay_ratio: share of the budget at whose end the rate would be 0.

    Source: Vaswani et al. 2017, equation 3.
    """
    rate = peak
    if end < warmup_ratio:
        rate *= end / warmup_ratio
    elif warmup_ratio > 0:
        rate *= (warmup_ratio / max(end, 1e-9)) ** 0.5
    if decay_ratio > 0:
        rate *= min(1.0, (1 - start) / decay_ratio)
    return max(rate, 0.0)
