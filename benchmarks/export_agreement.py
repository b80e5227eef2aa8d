"""Agreement of exported models with the original, and detection of one wrong number.

A model of each folder is exported and compared as `glassformer export` does. Then 1 is added to one random number of
each weight, and the export must be refused; SOURCES sources are compared there.

usage: python -m benchmarks.export_agreement FOLDER ...
"""

import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.machine import save
from glassformer.errors import UserError
from glassformer.interop.export import import_target, read_sources
from glassformer.interop.verification import compare
from glassformer.tasks.registry import load

SOURCES = 20


def exported(task, changed, target, sources):
    """Agreement of a task's model with the exported model of a changed task."""
    with tempfile.TemporaryDirectory() as folder:
        target.save(changed, Path(folder))
        return compare(task, target.load(Path(folder), task), sources)


def undetected(task, changed, target, sources):
    """Names of the weights in which a wrong number is not detected."""
    names = []
    for name, weight in changed.model.named_parameters():
        i = int(torch.randint(weight.numel(), ()))
        with torch.no_grad():
            weight.view(-1)[i] += 1
            try:
                exported(task, changed, target, sources).check()
                names.append(name)
            except UserError:
                pass
            weight.view(-1)[i] -= 1
    return names


def main() -> None:
    torch.manual_seed(1)
    records = {}
    for folder in map(Path, sys.argv[1:]):
        task, changed = (load(folder, device="cpu") for _ in range(2))
        sources, description = read_sources(task, folder, None)
        n_weights = len(list(task.model.parameters()))
        for to in ("ctranslate2", "onnx"):
            target = import_target(to)
            start = time.perf_counter()
            agreement = exported(task, task, target, sources)
            seconds = time.perf_counter() - start
            missed = undetected(task, changed, target, sources[:: max(1, len(sources) // SOURCES)])
            records[f"{folder.name} ({task.name}), {to}"] = record = {
                "compared": description,
                "equal": f"{agreement.n_equal:,} of {agreement.n_tokens:,} tokens",
                "bleu": agreement.bleu,
                "difference": float(f"{agreement.difference:.1e}"),
                "seconds": round(seconds, 1),
                "refused": f"{n_weights - len(missed)} of {n_weights} wrong weights",
                "not_refused": missed,
            }
            print(folder.name, to, record, flush=True)
    save("export_agreement", {"models": records}, "python -m benchmarks.export_agreement FOLDER ...")


if __name__ == "__main__":
    main()
