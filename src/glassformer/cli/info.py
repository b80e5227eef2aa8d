"""`glassformer info`"""

import json as json_module
from pathlib import Path

from glassformer.config import JsonObject


def info(model: Path, /, *, json: bool = False) -> None:
    """Print the configuration, size and training metadata of a model folder, and verify its checksums.

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        json: Print as JSON.
    """
    from glassformer import checkpoint
    from glassformer.tasks.registry import find_model, load

    path = find_model(model)
    task = load(path, device="cpu")
    parameters = {name: p.numel() for name, p in task.model.named_parameters()}
    record: JsonObject = {
        "folder": str(path),
        "task": task.name,
        "parameters": sum(parameters.values()),
        "of_these_embedding": parameters["embedding.weight"],
        **task.model.config.model_dump(),
        "weights_sha256": checkpoint.sha256(path / "model.safetensors"),
    }
    if (path / "training.json").exists():
        record["training"] = checkpoint.read_json(path / "training.json")
    if json:
        print(json_module.dumps(record, indent=2))
        return
    for name, value in record.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for key, inner in value.items():
                text = ", ".join(f"{k} {v}" for k, v in inner.items()) if isinstance(inner, dict) else inner
                print(f"  {key:18} {text}")
        else:
            print(
                f"{name:20} {value:,}"
                if isinstance(value, int) and not isinstance(value, bool)
                else f"{name:20} {value}"
            )
