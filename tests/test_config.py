from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.decode_config import DecodeConfig
from glassformer.errors import ConfigError
from glassformer.model_config import RnnConfig
from glassformer.models.t5 import T5Config
from glassformer.models.transformer import TransformerConfig
from glassformer.presets import PRESETS, preset, preset_for, vocab_size_for
from glassformer.train_config import TrainConfig

NEEDED = {"src": ["a.en"], "tgt": ["a.fr"], "out": "run"}


def refusal(config, flags=None, file=None, environment=None) -> str:
    with pytest.raises(ConfigError) as caught:
        config.resolve(flags or {}, file, environment or {})
    return str(caught.value)


def write(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_errors_are_reported_together_with_value_and_source(tmp_path):
    file = write(tmp_path, 'beam = 0\nbeem = 4\nlength_penalty = "much"\n')
    message = refusal(DecodeConfig, {"nbest": 100}, file, {"GLASSFORMER_BATCH_TOKENS": "-7"})
    lines = {line.split(":")[0].strip(): line for line in message.split("\n")[1:]}
    assert lines.keys() == {"beam", "beem", "length_penalty", "nbest", "batch_tokens"}
    assert "no such option" in lines["beem"]
    for name, value in {"beam": "0", "length_penalty": "'much'", "nbest": "100", "batch_tokens": "'-7'"}.items():
        assert value in lines[name]
    for name in ("beam", "beem", "length_penalty"):
        assert f"(in {file})" in lines[name]
    assert "(in the environment)" in lines["batch_tokens"]
    assert "(" not in lines["nbest"]


def test_what_must_be_given_is_named():
    message = refusal(TrainConfig)
    assert "src: required" in message
    assert "out: required; on the command line --out" in message


def test_wrong_usage_exits_with_2():
    assert ConfigError.exit_code == 2


def test_flags_come_before_environment_before_file_before_defaults(tmp_path):
    file = write(tmp_path, "beam = 2\nnbest = 2\nbatch_tokens = 2\n")
    environment = {"GLASSFORMER_BEAM": "3", "GLASSFORMER_NBEST": "3"}
    config = DecodeConfig.resolve({"beam": 5}, file, environment)
    assert (config.beam, config.nbest, config.batch_tokens) == (5, 3, 2)
    assert config.length_penalty == DecodeConfig().length_penalty


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"beam": 2, "nbest": 3}, "raise beam"),
        ({"nbest": 3, "temperature": 0.9}, "nbest: needs a search"),
        ({"max_length": 0}, "max_length"),
        ({"max_length": 1 << 20}, "max_length"),
        ({"length_penalty": float("nan")}, "length_penalty"),
    ],
)
def test_invalid_decoding_options_are_an_error(flags, why):
    assert why in refusal(DecodeConfig, flags)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"steps": 7, "epochs": 2}, "steps and epochs are mutually exclusive"),
        ({"dev_tgt": ["d.fr"]}, "dev_tgt needs dev_src"),
        ({"warmup_ratio": 0.7, "decay_ratio": 0.7}, "warmup_ratio and decay_ratio"),
        ({"preset": "huge"}, "preset"),
        ({"dropout": 1.0}, "dropout: 1.0: a probability"),
        ({"dropout": float("nan")}, "dropout: nan: input should be a finite number"),
        ({"lr": 0}, "lr"),
        ({"lr": 1e300}, "lr"),
        ({"minutes": -1}, "minutes"),
        ({"src": []}, "src"),
    ],
)
def test_invalid_training_options_are_an_error(flags, why):
    assert why in refusal(TrainConfig, NEEDED | flags)


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ({"d_model": 10, "n_heads": 3}, "n_heads = 3"),
        ({"d_model": 33, "n_heads": 3}, "d_model = 33 must be even"),
        ({"dropout": 1.0}, "dropout"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"d_ff": 0}, "d_ff"),
        ({"max_len": 0}, "max_len"),
    ],
)
def test_invalid_model_sizes_are_an_error(sizes, why):
    assert why in refusal(TransformerConfig, {"vocab_size": 31} | sizes)


def test_distances_of_t5_go_beyond_the_buckets_of_one_distance():
    T5Config(vocab_size=31, n_buckets=32, max_distance=17)
    assert "max_distance 16 is not more than half of n_buckets = 32" in refusal(
        T5Config, {"vocab_size": 31, "n_buckets": 32, "max_distance": 16}
    )


@pytest.mark.parametrize(
    ("config", "name", "given", "values"),
    [
        (DecodeConfig, "protect", "all", ("all",)),
        (DecodeConfig, "memory", "m.tmx", (Path("m.tmx"),)),
        (DecodeConfig, "memory", Path("m.tmx"), (Path("m.tmx"),)),
        (TrainConfig, "src", "a.tsv", (Path("a.tsv"),)),
        (TrainConfig, "keys", "text=a b", ("text=a b",)),
        (TrainConfig, "keys", {"text": "a b", "label": 2}, ("text=a b", "label=2")),
    ],
)
def test_one_value_is_a_list_of_one(config, name, given, values):
    needed = NEEDED if config is TrainConfig else {}
    assert getattr(config.resolve({**needed, name: given}), name) == values


@pytest.mark.parametrize(
    ("config", "flags", "why"),
    [
        (DecodeConfig, {"protect": 3}, 'protect: 3: expected a list, for example protect=["…"]'),
        (TrainConfig, {"weights": 3}, "weights: 3: expected a list, for example weights=[3, 0.5]"),
        (
            TrainConfig,
            {"languages": "en fr"},
            '\'en fr\': expected a list of codes, for example languages=["en", "fr"]',
        ),
        (TrainConfig, {"dev": "x.csv"}, "dev: no such option; did you mean dev_src?"),
        (TrainConfig, {"columns": ["text=a"]}, "columns: no such option; did you mean keys?"),
    ],
)
def test_what_is_no_list_and_names_of_the_command_line_are_refused_with_an_example(config, flags, why):
    assert why in refusal(config, NEEDED | flags if config is TrainConfig else flags)


def test_configs_are_immutable():
    with pytest.raises(ValueError, match="frozen"):
        DecodeConfig().beam = 7


def test_an_unknown_option_is_an_error_in_python_too():
    with pytest.raises(ValueError, match="beem"):
        DecodeConfig(beem=4)


TRAINING = st.builds(
    TrainConfig,
    src=st.lists(st.sampled_from(["a.en", "dir/b é.en", 'quote".en']), min_size=1, max_size=3).map(tuple),
    out=st.just("run"),
    steps=st.none() | st.integers(1, 1 << 40),
    lr=st.none() | st.floats(1e-9, 1e9),
    pre_norm=st.none() | st.booleans(),
    preset=st.sampled_from(["auto", *PRESETS["transformer"]]),
    seed=st.integers(0, (1 << 63) - 1),
    dropout=st.none() | st.floats(0, 1, exclude_max=True),
)


@given(config=TRAINING)
def test_reading_toml_restores_the_options(tmp_path_factory, config):
    path = tmp_path_factory.getbasetemp() / "round.toml"
    path.write_text(config.to_toml(), encoding="utf-8")
    assert TrainConfig.resolve({}, path, environment={}) == config


@pytest.mark.parametrize("text", ["beam = ", "[", "beam = 1\nbeam = 2", "\x00"])
def test_a_file_that_is_not_toml_is_reported(tmp_path, text):
    file = write(tmp_path, text)
    assert f"{file}: not TOML" in refusal(DecodeConfig, file=file)


def test_a_file_that_is_not_text_is_reported(tmp_path):
    (tmp_path / "run.toml").write_bytes(b"\xff\xfe")
    assert "not TOML" in refusal(DecodeConfig, file=tmp_path / "run.toml")


def test_a_missing_file_is_named_with_what_is_wanted(tmp_path):
    message = refusal(DecodeConfig, file=tmp_path / "no.toml")
    assert "no.toml: No such file" in message
    assert "run.toml" in message


# Presets

SIZES = ("d_model", "n_heads", "d_ff")


def sizes(name: str) -> TransformerConfig:
    row = preset(name)
    return TransformerConfig(
        vocab_size=31,
        n_encoder_layers=row["n_layers"],
        n_decoder_layers=row["n_layers"],
        **{key: row[key] for key in (*SIZES, "dropout", "pre_norm") if row[key] != "auto"},
    )


ALL = [(family, name) for family, rows in PRESETS.items() for name in rows]


@pytest.mark.parametrize("name", PRESETS["transformer"])
def test_the_model_of_every_preset_can_be_built(name):
    assert sizes(name).d_model > 0


@pytest.mark.parametrize(("family", "name"), ALL)
def test_the_training_options_of_every_preset_are_valid(family, name):
    config = TrainConfig(**NEEDED, **preset(name, family))
    assert bool(config.steps) != bool(config.epochs)


@pytest.mark.parametrize(
    ("name", "d_model", "n_heads", "d_ff", "n_layers"),
    [("tiny", 128, 4, 256, 4), ("base", 512, 8, 2048, 6), ("big", 1024, 16, 4096, 6)],
)
def test_presets_have_the_sizes_of_their_papers(name, d_model, n_heads, d_ff, n_layers):
    """Base and big: Vaswani et al. 2017, table 3."""
    c = sizes(name)
    assert (c.d_model, c.n_heads, c.d_ff) == (d_model, n_heads, d_ff)
    assert (c.n_encoder_layers, c.n_decoder_layers) == (n_layers, n_layers)


def test_base_is_the_default_of_the_model():
    base, default = sizes("base"), TransformerConfig(vocab_size=31)
    assert base == default


@pytest.mark.parametrize(("name", "dropout"), [("base", 0.1), ("big", 0.3)])
def test_presets_of_the_paper_are_post_norm_with_its_dropout(name, dropout):
    assert (sizes(name).pre_norm, sizes(name).dropout) == (False, dropout)


def test_the_peak_rate_of_base_is_that_of_the_paper():
    """Vaswani et al. 2017, equation 3 with 4,000 warm-up steps, of 100,000."""
    row = preset("base")
    assert row["lr"] == pytest.approx((512 * 4000) ** -0.5, rel=0.01)
    assert row["warmup_ratio"] * row["steps"] == pytest.approx(4000)


def test_model_and_vocabulary_sizes_increase_with_the_number_of_pairs():
    n_pairs = [10**k for k in range(10)]
    chosen = [sizes(preset_for(n)).d_model for n in n_pairs]
    assert chosen == sorted(chosen)
    units = [vocab_size_for(n) for n in n_pairs]
    assert units == sorted(units)
    assert (units[0], units[-1]) == (1_000, 32_000)


def test_a_short_training_has_a_smaller_preset():
    times = [preset_for(2_000_000, n_flop=10.0**k, vocab_size=16_000) for k in range(12, 20)]
    assert times == ["tiny"] * 4 + ["small"] + ["base"] * 3
    assert preset_for(200_000, n_flop=1e30, vocab_size=8_000) == "small"
    assert preset_for(20_000, n_flop=1e30, vocab_size=8_000) == "tiny"
    assert preset_for(200_000, "bert", n_flop=1.0) == preset_for(200_000, "bert")


def test_a_budget_replaces_another_one_of_a_weaker_source(tmp_path):
    file = write(tmp_path, "steps = 100\nlr = 0.1\n")
    config = TrainConfig.resolve({**NEEDED, "minutes": 5}, file)
    assert (config.steps, config.minutes, config.lr) == (None, 5, 0.1)
    config = TrainConfig.resolve(NEEDED, file, {"GLASSFORMER_EPOCHS": "2"})
    assert (config.steps, config.epochs) == (None, 2)
    config = TrainConfig.resolve({**NEEDED, "minutes": 5}, file, {"GLASSFORMER_EPOCHS": "2"})
    assert (config.steps, config.epochs, config.minutes) == (None, None, 5)
    assert "steps and minutes are mutually exclusive" in refusal(TrainConfig, {**NEEDED, "minutes": 5, "steps": 9})


def test_teachers_with_a_vocabulary_each_are_refused():
    message = refusal(TrainConfig, {**NEEDED, "n_teachers": 2, "tokenizer": "unigram"})
    assert "use bpe" in message
    assert TrainConfig.resolve({**NEEDED, "n_teachers": 1, "tokenizer": "unigram"}).n_teachers == 1


def test_an_lstm_needs_an_even_width():
    assert "d_model" in (message := refusal(RnnConfig, {"vocab_size": 9, "d_model": 33}))
    assert "must be even" in message
