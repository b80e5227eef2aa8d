"""Learning rates, as plain functions."""


def noam(step: int, *, d_model: int, n_warmup: int = 4000) -> float:
    """Learning rate of the original Transformer: linear warm-up, then step^-0.5 decay.

    Args:
        step: the update about to be made, counted from 1.
        n_warmup: updates until the peak.

    Raises:
        ValueError: step < 1, where the formula is undefined.

    Source: Vaswani et al. 2017, equation 3.
    """
    if step < 1:
        raise ValueError(f"step counts from 1, got {step}")
    return float(d_model**-0.5 * min(step**-0.5, step * n_warmup**-1.5))


def inverse_sqrt_schedule(
    start: float, end: float, *, peak: float, warmup_ratio: float, decay_ratio: float = 0.0
) -> float:
    """`noam`'s shape stretched over a budget, with a linear fall to 0 at its end if asked for.

    With peak = (d_model * n_warmup)^-0.5, warmup_ratio = n_warmup / n_steps and no decay_ratio it is `noam` itself.

    Args:
        start: share of the budget used before this update, 0 to 1.
        end: share used after it.
        peak: the rate at the end of the warm-up.
        warmup_ratio: share of the budget in which the rate rises.
        decay_ratio: share of the budget at whose end the rate would be 0.
    """
    rate = peak
    if end < warmup_ratio:
        rate *= end / warmup_ratio
    elif warmup_ratio > 0:
        rate *= (warmup_ratio / max(end, 1e-9)) ** 0.5
    if decay_ratio > 0:
        rate *= min(1.0, (1 - start) / decay_ratio)
    return max(rate, 0.0)
