"""Named sizes and recipes, one row each, only what differs from "base"."""

from typing import Any

# Vaswani et al. 2017, table 3 and section 5: (512 * 4000)^-0.5 = 7e-4 after 4,000 of 100,000 steps.
BASE: dict[str, Any] = {
    **{"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 6, "dropout": 0.1, "pre_norm": False},
    **{"batch_tokens": 25_000, "lr": 7e-4, "warmup": 0.04, "cooldown": 0.0, "steps": 100_000},
}

# On little text and little time pre-norm and small batches learn in far fewer steps than the published recipe.
SHORT = {"pre_norm": True, "warmup": 0.05, "cooldown": 0.3, "batch_tokens": 1500}

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": SHORT
    | {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_layers": 4, "dropout": 0.25, "lr": 3e-3, "steps": 15_000},
    "small": SHORT | {"d_model": 256, "n_heads": 4, "d_ff": 1024, "n_layers": 3, "lr": 1.5e-3, "steps": 20_000},
    "base": {},
    "big": {
        "d_model": 1024,
        "n_heads": 16,
        "d_ff": 4096,
        "dropout": 0.3,
        "lr": 5e-4,
        "warmup": 0.013,
        "steps": 300_000,
    },
}


def preset(name: str) -> dict[str, Any]:
    """Sizes and recipe: options of `TrainConfig`, all that a preset decides."""
    return {**BASE, **PRESETS[name]}


def preset_for(n_pairs: int) -> str:
    """The preset that a corpus of this many sentence pairs can feed."""
    return "tiny" if n_pairs < 100_000 else "small" if n_pairs < 1_000_000 else "base"


def vocab_size_for(n_pairs: int) -> int:
    """Subword units that a corpus of this many pairs has enough examples of: 1,000 to 32,000."""
    return next((size for size in (1_000, 2_000, 4_000, 8_000, 16_000) if n_pairs < 4 * size), 32_000)
