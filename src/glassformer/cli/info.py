"""`glassformer info`"""

import json as json_module
from pathlib import Path
from typing import Any


def info(model: Path, /, *, json: bool = False) -> None:
    """What is in a model folder: sizes, parameters, vocabulary, how it was trained. Its files are verified.

    Args:
        model: folder written by `glassformer train`.
        json: as JSON.
    """
    from glassformer import checkpoint
    from glassformer.tasks.registry import find_model, load

    place = find_model(model)
    translator = load(place, device="cpu")
    parameters = {name: p.numel() for name, p in translator.model.named_parameters()}
    record: dict[str, Any] = {
        "folder": str(place),
        "task": translator.name,
        "parameters": sum(parameters.values()),
        "of_these_embedding": parameters["embedding.weight"],
        **translator.model.config.model_dump(),
        "weights_sha256": checkpoint.sha256(place / "model.safetensors"),
    }
    if (place / "training.json").exists():
        record["training"] = checkpoint.read_json(place / "training.json")
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
