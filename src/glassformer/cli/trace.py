"""`glassformer trace`"""

import json as json_module
import sys
from dataclasses import asdict
from pathlib import Path

from glassformer.cli.options import Int


def trace(model: Path, text: str, /, *, target: str | None = None, window: Int = 1, json: bool = False) -> None:
    """Print shape, mean, standard deviation, bounds and fraction of zeros of every tensor computed for one text.

    Tensors with NaN, infinite or saturated values are flagged.

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        text: Input text.
        target: Target text for translators and language models. Default: the best hypothesis of the search.
        window: Window to trace of a text longer than the model's maximum length, counted from 1.
        json: Print one JSON object for each tensor.
    """
    from glassformer.inspection.inputs import prepare_inputs
    from glassformer.inspection.trace import trace as trace_inputs
    from glassformer.tasks.registry import load

    inputs = prepare_inputs(load(model, device="cpu"), text, target, window=window)
    for note in inputs.notes:
        print(f"note: {note}", file=sys.stderr)
    steps = trace_inputs(inputs)
    if json:
        for step in steps:
            print(json_module.dumps(asdict(step)))
        return
    width = max(len(step.name) for step in steps)
    print(f"{'name':{width}}  {'shape':18} {'mean':>10} {'std':>10} {'min':>10} {'max':>10} {'zeros':>6}")
    for s in steps:
        shape = " x ".join(map(str, s.shape))
        statistics = " ".join(f"{'-' if x is None else format(x, '.4g'):>10}" for x in (s.mean, s.std, s.min, s.max))
        print(f"{s.name:{width}}  {shape:18} {statistics} {s.zeros:6.1%}  {' '.join(s.flags).upper()}".rstrip())
