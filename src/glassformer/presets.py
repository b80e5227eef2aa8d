"""Named sizes and recipes, one row each, only what differs from "base"."""

from typing import Any

BASE: dict[str, Any] = dict(
    d_model=512, n_heads=8, d_ff=2048, n_layers=6, dropout=0.1, pre_norm=False, batch_tokens=25_000,
    lr=7e-4, warmup=0.04, cooldown=0.0, steps=100_000,
)  # fmt: skip
"""Vaswani et al. 2017, table 3 and section 5: (512 * 4000)^-0.5 = 7e-4 after 4,000 of 100,000 steps."""

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": dict(d_model=128, n_heads=4, d_ff=256, n_layers=4, dropout=0.2, pre_norm=True, batch_tokens=2500, lr=4e-3, warmup=0.05, cooldown=0.3, steps=8_000),
    "small": dict(d_model=256, n_heads=4, d_ff=1024, n_layers=3, dropout=0.3, pre_norm=True, batch_tokens=2500, lr=2e-3, warmup=0.05, cooldown=0.3, steps=20_000),
    "base": dict(),
    "big": dict(d_model=1024, n_heads=16, d_ff=4096, dropout=0.3, lr=5e-4, warmup=0.013, steps=300_000),  # table 3, "big"
}  # fmt: skip


def preset(name: str) -> dict[str, Any]:
    """Sizes (d_model, n_heads, d_ff, n_layers, dropout) and recipe (batch_tokens, lr, warmup, cooldown, steps)."""
    return {**BASE, **PRESETS[name]}


def preset_for(n_pairs: int) -> str:
    """The preset that a corpus of this many sentence pairs can feed."""
    return "tiny" if n_pairs < 10_000 else "small" if n_pairs < 500_000 else "base"


def vocab_size_for(n_pairs: int) -> int:
    """Subword units that a corpus of this many pairs has enough examples of: 1,000 to 32,000, a power of two."""
    for size in (1_000, 2_000, 4_000, 8_000, 16_000):
        if n_pairs < 4 * size:
            return size
    return 32_000
