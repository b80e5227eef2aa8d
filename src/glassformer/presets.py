"""Presets: model sizes and training options by name. Each lists only what differs from "base" of its family."""

from glassformer.config import JsonObject

# Optimizer and schedule of a preset that sets no others. Source: Vaswani et al. 2017, section 5.3.
ADAM: JsonObject = {
    **{"optimizer": "adam", "beta1": 0.9, "beta2": 0.98, "eps": 1e-9, "weight_decay": 0.0},
    **{"schedule": "inverse-sqrt", "decay_ratio": 0.0},
}

# For small corpora and short trainings: pre-norm and small batches need far fewer steps than the published recipe.
SHORT = ADAM | {"pre_norm": True, "warmup_ratio": 0.05, "decay_ratio": 0.3, "batch_tokens": 1500}

# For translation from little text: see docs/results.md, the first six minutes, and text as users write it. Relative
# positions: benchmarks/NOTES.md.
MUON: JsonObject = {"optimizer": "muon", "dropout": "auto", "batch_tokens": 1000, "augment": 0.1, "rotary": True}

TINY = {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_layers": 4, "dropout": 0.25}
SMALL = {"d_model": 256, "n_heads": 4, "d_ff": 1024, "n_layers": 3}

PRESETS: dict[str, dict[str, JsonObject]] = {
    "transformer": {
        # Sizes, dropout, label smoothing, batches and rate: Vaswani et al. 2017, table 3 and section 5.
        # The peak rate is (512 * 4000)^-0.5 = 7e-4 after 4,000 of 100,000 steps.
        "base": {
            **{"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 6, "dropout": 0.1, "pre_norm": False},
            **{"batch_tokens": 25_000, "lr": 7e-4, "warmup_ratio": 0.04, "steps": 100_000},
            **{"label_smoothing": 0.1, "max_len": 256},
        },
        "big": {
            **{"d_model": 1024, "n_heads": 16, "d_ff": 4096, "dropout": 0.3},
            **{"lr": 5e-4, "warmup_ratio": 0.013, "steps": 300_000},
        },
        "small": SHORT | SMALL | MUON | {"lr": 4e-3, "steps": 20_000, "batch_tokens": 1500},
        "tiny": SHORT | TINY | MUON | {"lr": 8e-3, "steps": 20_000},
    },
    "bert": {
        # Sizes, dropout, optimizer, peak rate, warm-up and linear decay: Devlin et al. 2018, sections 3 and A.2;
        # eps and decoupled weight decay: its published code. Not as in A.2: a batch has 8,000 tokens (A.2: 128,000),
        # the training 10 epochs (A.2: 40).
        "base": {
            **{"d_model": 768, "n_heads": 12, "d_ff": 3072, "n_layers": 12, "dropout": 0.1, "pre_norm": False},
            **{"optimizer": "adamw", "beta1": 0.9, "beta2": 0.999, "eps": 1e-6, "weight_decay": 0.01},
            **{"batch_tokens": 8_000, "lr": 1e-4, "schedule": "linear", "warmup_ratio": 0.01, "epochs": 10},
            **{"label_smoothing": 0.0, "max_len": 512, "pooling": "first", "max_grad_norm": 1.0},
        },
        "large": {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "n_layers": 24},
        "small": SHORT | SMALL | {"lr": 5e-4, "max_len": 256, "pooling": "mean"},
        "tiny": SHORT | TINY | {"n_layers": 2, "lr": 1e-3, "max_len": 256, "pooling": "mean"},
    },
    "gpt2": {
        # Sizes: Radford et al. 2019, the smallest model (124 M parameters). Its training options were not published:
        # optimizer, peak rate and cosine decay are those of GPT-3's model of this size, Brown et al. 2020, section B
        # (there to 10% of the peak), batch and length our own.
        "base": {
            **{"d_model": 768, "n_heads": 12, "d_ff": 3072, "n_layers": 12, "dropout": 0.1},
            **{"optimizer": "adamw", "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1},
            **{"batch_tokens": 8_000, "lr": 6e-4, "schedule": "cosine", "warmup_ratio": 0.02, "steps": 100_000},
            **{"label_smoothing": 0.0, "max_len": 1024, "max_grad_norm": 1.0},
        },
        "small": {
            **ADAM,
            **{"d_model": 384, "n_heads": 6, "d_ff": 1536, "n_layers": 6, "dropout": 0.2},
            **{"batch_tokens": 4096, "lr": 1e-3, "decay_ratio": 0.9, "steps": 5_000, "max_len": 256},
        },
        "tiny": {
            **ADAM,
            **{"d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 4, "dropout": 0.0},
            **{"batch_tokens": 800, "lr": 5e-3, "steps": 10_000, "max_len": 128, "decay_ratio": 0.6},
        },
    },
    "llama": {
        # Optimizer, clipping and cosine decay: Touvron et al. 2023, section 2.3 (there to 10% of the peak); eps: Llama
        # 2. Sizes, peak rate, batch and length are our own: those of GPT-2, and d_ff = 8/3 d_model.
        "base": {
            **{"d_model": 768, "n_heads": 12, "d_ff": 2048, "n_layers": 12, "dropout": 0.0},
            **{"optimizer": "adamw", "beta1": 0.9, "beta2": 0.95, "eps": 1e-5, "weight_decay": 0.1},
            **{"batch_tokens": 8_000, "lr": 6e-4, "schedule": "cosine", "warmup_ratio": 0.02, "steps": 100_000},
            **{"label_smoothing": 0.0, "max_len": 1024, "max_grad_norm": 1.0},
        },
        "small": {
            **ADAM,
            **{"d_model": 384, "n_heads": 6, "d_ff": 1024, "n_layers": 6, "dropout": 0.2},
            **{"batch_tokens": 4096, "lr": 1e-3, "decay_ratio": 0.9, "steps": 5_000, "max_len": 256},
        },
        "tiny": {
            **ADAM,
            **{"d_model": 128, "n_heads": 4, "d_ff": 344, "n_layers": 4, "dropout": 0.0},
            **{"batch_tokens": 800, "lr": 5e-3, "steps": 10_000, "max_len": 128, "decay_ratio": 0.6},
        },
    },
    "rnn": {
        # Layers, dropout and gradient norm: Luong et al. 2015, section 4.1, which has 1,000 cells per layer and plain
        # gradient descent. Optimizer, rate, label smoothing and length of training are those of the Transformer.
        "base": {
            **{"d_model": 1024, "n_layers": 4, "dropout": 0.2, "max_grad_norm": 5.0},
            **{"batch_tokens": 8_000, "lr": 5e-4, "warmup_ratio": 0.04, "decay_ratio": 0.3, "steps": 100_000},
            **{"label_smoothing": 0.1, "max_len": 256},
        },
        # About as many parameters as the tiny Transformer with a vocabulary of 8,000.
        "tiny": {
            "d_model": 192,
            "n_layers": 1,
            "batch_tokens": 1500,
            "lr": 3e-3,
            "warmup_ratio": 0.05,
            "steps": 15_000,
        },
    },
    "skipgram": {
        # Vectors of 300 numbers: Mikolov et al. 2013 (1310.4546). Adam, learning rate and epochs are our own.
        "base": {
            **{"d_model": 300, "batch_tokens": 4000, "lr": 1e-3, "warmup_ratio": 0.0, "decay_ratio": 1.0, "epochs": 5},
            **{"label_smoothing": 0.0, "max_len": 256},
        },
        "tiny": {"d_model": 100, "batch_tokens": 1000, "lr": 1e-2, "epochs": 15},
    },
    "t5": {
        # Sizes, dropout, optimizer, peak rate and warm-up: Raffel et al. 2019, section 3.1, where the rate is constant
        # during the warm-up of 10,000 of 524,288 steps. Batch and length are those of the Transformer.
        "base": {
            **{"d_model": 768, "n_heads": 12, "d_ff": 3072, "n_layers": 12, "dropout": 0.1},
            **{"batch_tokens": 25_000, "optimizer": "adafactor", "lr": 1e-2, "warmup_ratio": 0.02, "steps": 100_000},
            **{"label_smoothing": 0.0, "max_len": 512},
        },
        "small": {"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 6},
        # Adafactor's updates are relative to the weights, of which embeddings are the largest. With Adam or Muon they
        # would need a higher rate than the others. The peak rate: benchmarks/NOTES.md.
        "tiny": {
            **(SHORT | TINY),
            **{"optimizer": "adafactor", "lr": 3e-2, "dropout": "auto", "batch_tokens": 1000, "steps": 15_000},
            **{"max_len": 256, "label_smoothing": 0.1},
        },
    },
}

GENERIC = {"base": {"batch_tokens": 4000, "lr": 1e-3, "warmup_ratio": 0.05, "decay_ratio": 0.3, "steps": 10_000}}
"""The presets of a family that has none of its own. Its sizes are the defaults of its configuration."""

# Epochs: Devlin et al. 2018, section A.3 (2 to 4). The learning rate is above its 2e-5 to 5e-5, which small models
# tolerate. Optimizer, warm-up, decay and batch size are our own.
FINE_TUNING: JsonObject = {
    **ADAM,
    **{"lr": 1e-4, "warmup_ratio": 0.1, "decay_ratio": 0.9, "batch_tokens": 1000, "epochs": 4, "augment": 0.0},
}


def presets_of(family: str) -> dict[str, JsonObject]:
    """The presets of a family by name."""
    return PRESETS.get(family, GENERIC)


def preset(name: str, family: str = "transformer") -> JsonObject:
    """All options of `TrainConfig` that a preset sets: model sizes and training options."""
    options = {**ADAM, **presets_of(family)["base"], **presets_of(family)[name]}
    if len({"steps", "epochs"} & options.keys()) == 2:
        del options["epochs"]
    return options


BASE_FOR_LARGE = ("transformer",)
"""Families of which `base` is the default for large corpora, and a smaller preset for short trainings."""

TARGETS_PER_WEIGHT = 5
"""A larger preset is chosen if the training has time for so many targets for each weight."""


def preset_for(
    n_examples: int, family: str = "transformer", *, n_flop: float | None = None, vocab_size: int = 0
) -> str:
    """Default preset for a corpus with this number of examples.

    Args:
        n_flop: floating-point operations that the training has time for. None: not known.
        vocab_size: size of the vocabulary, which is needed with `n_flop`.
    """
    large = "base" if n_examples >= 1_000_000 and family in BASE_FOR_LARGE else "small"
    fitting = "tiny" if n_examples < 100_000 else large
    if n_flop is not None and family in BASE_FOR_LARGE:
        smaller = ("base", "small", "tiny")[("base", "small", "tiny").index(fitting) :]
        fitting = next((name for name in smaller if training_flop(name, vocab_size) <= n_flop), "tiny")
    return next(name for name in (fitting, "tiny", "base") if name in presets_of(family))


def training_flop(name: str, vocab_size: int) -> float:
    """Floating-point operations of a training of a preset of the Transformer with TARGETS_PER_WEIGHT."""
    options = preset(name)
    d_model, d_ff, n_layers = options["d_model"], options["d_ff"], options["n_layers"]
    n_weights = vocab_size * d_model + n_layers * (12 * d_model**2 + 4 * d_model * d_ff)
    return float(6 * n_weights * TARGETS_PER_WEIGHT * n_weights)


def vocab_size_for(n_examples: int) -> int:
    """Default vocabulary size for a corpus with this number of examples: 1,000 to 32,000."""
    limits = {4_000: 1_000, 8_000: 2_000, 16_000: 4_000, 300_000: 8_000, 1_500_000: 16_000}
    return next((size for limit, size in limits.items() if n_examples < limit), 32_000)
