"""The command of the report of a run."""

import shlex

from glassformer.inspection.run_report import as_command
from glassformer.train_config import TrainConfig


def test_the_command_has_all_options_as_train_reads_them():
    options = {
        "src": ["a b.tsv"], "model": {"n_kv_heads": 2, "bias": False, "activation": "silu"}, "pre_norm": False,
        "lowercase": True, "skip_bad": False, "lr": 0.001,
    }  # fmt: skip
    words = shlex.split(as_command(options))
    expected = ["glassformer", "train", "--src", "a b.tsv", "--lowercase", "--no-pre-norm", "--lr", "0.001"]
    model = ["--model", "n_kv_heads=2", "bias=false", 'activation="silu"']
    at = words.index("--model")
    assert words[at : at + 4] == model
    assert sorted(words[:at] + words[at + 4 :]) == sorted(expected)
    assert TrainConfig.parse_assignments(words[at + 1 : at + 4]) == options["model"]
