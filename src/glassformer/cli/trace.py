"""`glassformer trace`"""

import json as json_module
import sys
from dataclasses import asdict
from pathlib import Path


def trace(model: Path, text: str, /, *, target: str | None = None, window: int = 1, json: bool = False) -> None:
    """Shape, mean, deviation, bounds and share of zeros of every tensor that a model makes of a text.

    Args:
        model: folder written by `glassformer train` or `glassformer import`.
        text: what the model is to read.
        target: what a translator or a language model is to follow, in place of what search finds best.
        window: of a text longer than the model reads, the stretch to look at.
        json: one JSON object a line.
    """
    from glassformer.inspection.inputs import read
    from glassformer.inspection.trace import trace as steps_of
    from glassformer.tasks.registry import load

    inputs = read(load(model, device="cpu"), text, target, window=window)
    for note in inputs.notes:
        print(f"note: {note}", file=sys.stderr)
    steps = steps_of(inputs)
    if json:
        for step in steps:
            print(json_module.dumps(asdict(step)))
        return
    width = max(len(step.name) for step in steps)
    print(f"{'name':{width}}  {'shape':18} {'mean':>10} {'std':>10} {'min':>10} {'max':>10} {'zeros':>6}")
    for s in steps:
        shape = " x ".join(map(str, s.shape))
        figures = " ".join(f"{'-' if x is None else format(x, '.4g'):>10}" for x in (s.mean, s.std, s.min, s.max))
        print(f"{s.name:{width}}  {shape:18} {figures} {s.zeros:6.1%}  {' '.join(s.flags).upper()}".rstrip())
