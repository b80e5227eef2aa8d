"""Learning rate schedules as functions of the fraction of the budget used."""


def inverse_sqrt_schedule(
    start: float, end: float, *, peak: float, warmup_ratio: float, decay_ratio: float = 0.0
) -> float:
    """Learning rate of the original Transformer: linear warm-up, then step^-0.5 decay, and optionally a linear decay
    to 0 at the end of the budget.

    With peak = (d_model * n_warmup)^-0.5, warmup_ratio = n_warmup / n_steps and decay_ratio = 0 this is equation 3 of
    the paper.

    Args:
        start: fraction of the budget used before this update, 0 to 1.
        end: fraction of the budget used after this update.
        peak: learning rate at the end of the warm-up.
        warmup_ratio: fraction of the budget used for linear warm-up.
        decay_ratio: fraction of the budget, at its end, in which the rate additionally decays linearly to 0.

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
