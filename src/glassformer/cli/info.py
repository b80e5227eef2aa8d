"""`glassformer info`"""

import json as json_module
import math
import os
import platform
from pathlib import Path

from glassformer.config import JsonObject
from glassformer.errors import ConfigError

PACKAGES = (
    *("numpy", "tokenizers", "safetensors", "pydantic", "cyclopts", "torch", "sacrebleu", "transformers"),
    *("ctranslate2", "onnxruntime", "fastapi", "uvicorn", "ray"),
)
"""Packages whose versions a report of a defect needs."""


def info(model: Path | None = None, /, *, hardware: bool = False, json: bool = False) -> None:
    """Print the configuration, size and training metadata of a model folder, and verify its checksums.

    Args:
        model: Model folder written by `glassformer train` or `glassformer import`.
        hardware: Describe this machine and the kernels that are used on it, instead of a model.
        json: Print as JSON.
    """
    if (model is None) != hardware:
        raise ConfigError("give either a model folder or --hardware.\n  For example: glassformer info --hardware")
    print_record(hardware_record() if model is None else model_record(model), json)


def print_versions() -> None:
    """Print what a report of a defect needs: versions, system, processor, kernels. Without importing PyTorch."""
    from importlib.metadata import distributions

    from glassformer.kernels.library import implementation
    from glassformer.measurement import cache_directory, processor
    from glassformer.threads import n_threads
    from glassformer.version import __version__

    installed = {(found.name or "").lower(): found.version for found in distributions()}
    record = {
        "glassformer": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.platform(),
        "processor": processor(),
        "kernels": implementation(),
        "threads": n_threads(),
        "cache": cache_directory(),
        **{name: installed.get(name, "not installed") for name in PACKAGES},
    }
    print_record(record, json=False)


def hardware_record() -> JsonObject:
    """Processor, memory and GPUs of this machine, the kernels that are used on it, and the rates of each precision for
    base sizes of a Transformer."""
    import torch

    from glassformer.kernels.library import load
    from glassformer.measurement import processor
    from glassformer.memory import available_bytes
    from glassformer.model_config import TransformerConfig
    from glassformer.runtime.precision import measured_choice
    from glassformer.training.arithmetic import Sizes, candidates, choose_among, describe

    kernels, reason = load()
    memory = available_bytes("cpu")
    base = TransformerConfig(vocab_size=8_000)
    sizes = Sizes(base.d_model, base.d_ff, base.n_encoder_layers, base.vocab_size)
    training = choose_among(sizes, candidates(torch.device("cpu")))
    decoding = measured_choice(base)
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
        "available_memory": "unknown" if memory is None else f"{memory / 2**30:.1f} GiB",
        "gpus": ", ".join(gpus) or "none",
        "kernels": reason,
        "instruction_sets": ", ".join(kernels.supported) if kernels else "those of PyTorch",
        "int8_decoding": "C library" if kernels else "PyTorch, which is several times slower",
        "fp32_decoding": "C library" if kernels and not kernels.is_plain else "PyTorch",
        "training_on_cpu": "C library and PyTorch" if kernels else "PyTorch",
        "training_precision": describe(training),
        "decoding_precision": "fp32"
        if decoding is None
        else f"{decoding.name}. Measured {decoding.when}, in tokens/s of a layer: "
        + ", ".join(f"{name} {rate:,.0f}" for name, rate in decoding.rates.items()),
        "torch": f"{torch.__version__}, {torch.backends.cpu.get_cpu_capability()}",
    }


def model_record(model: Path) -> JsonObject:
    """Configuration, size and training metadata of a model folder."""
    from glassformer.manifest import MANIFEST, read_json, sha256
    from glassformer.runtime.graph_file import FILE
    from glassformer.tasks.registry import find_model, load

    path = find_model(model)
    task = load(path, device="cpu")
    has_programs = FILE in read_json(path / MANIFEST)["files"]
    needs_torch = not has_programs and task.config.weight_shapes() is None
    record: JsonObject = {
        "folder": str(path),
        "task": task.name,
        **{name: " ".join(values) for name in task.stored_attributes if (values := getattr(task, name))},
        **({"labels": " ".join(task.labels)} if task.labels else {}),
        "parameters": task.source.n_parameters,
        "of_these_embedding": math.prod(task.source.shape("embedding.weight")),
        "stored_precision": read_json(path / "config.json").get("precision", "fp32"),
        "needs_pytorch": "yes: it has no programs.json" if needs_torch else "no",
        **task.config.model_dump(),
        "weights_sha256": sha256(path / "model.safetensors"),
    }
    if (path / "training.json").exists():
        record["training"] = read_json(path / "training.json")
    return record


def print_record(record: JsonObject, json: bool) -> None:
    """Print a record as lines of names and values, or as JSON."""
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
