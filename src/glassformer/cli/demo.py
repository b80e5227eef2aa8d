"""`glassformer demo`"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from glassformer.cli.options import Count


def demo(
    *,
    out: Path = Path("runs/demo"),
    steps: Count = 700,
    pairs: Count = 40_000,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> None:
    """Train a small English-French translator on built-in text, print its BLEU on held-out sentences and examples.

    Args:
        out: Run folder. A second run continues the first.
        steps: Training length in updates; the default takes about 2 minutes on 2 cores.
        pairs: Number of sentence pairs to generate and train on.
        quiet: Print results only.
    """
    from glassformer.corpora.demo.pairs import HANDWRITTEN_EXAMPLES, split_pairs
    from glassformer.corpora.example import Example
    from glassformer.train_config import TrainConfig
    from glassformer.training.run import make_run_folder, train

    texts = out.with_name(f"{out.name}-text")
    config = TrainConfig.resolve(
        {"src": (texts / "train.tsv",), "dev_src": (texts / "dev.tsv",), "out": out, "steps": steps, **RECIPE},
        environment={},
    )
    training, held_out = split_pairs(pairs, N_DEV + N_TEST, seed=1)
    dev, test = held_out[:N_DEV], held_out[N_DEV:]
    write_pairs(texts / "train.tsv", training)
    write_pairs(texts / "dev.tsv", dev)
    write_pairs(texts / "test.tsv", test)
    if not quiet:
        print(f"{pairs:,} English-French sentence pairs from a grammar, {len(held_out)} others held out: {texts}")
    make_run_folder(out)
    translator = train(config, quiet=quiet)
    _, scores = translator.evaluate([Example(*pair, str(texts / "test.tsv"), n) for n, pair in enumerate(test, 1)])
    print(f"\nBLEU on {len(test)} held-out sentences: {scores[0].value:.1f}   ({scores[0].signature})\n")
    for english, french in HANDWRITTEN_EXAMPLES:
        found = translator(english)
        print(f"  {english}\n  {found}" + ("" if found == french else f"\n      (expected: {french})") + "\n")
    print(
        "Try next:\n"
        f'  echo "The white cat slept." | glassformer translate {out}\n'
        f"  glassformer info {out}\n"
        "  glassformer train YOUR.en YOUR.fr --out my-translator --minutes 30"
    )


N_DEV, N_TEST = 200, 500

# Translations from a grammar have no noise: label smoothing and dropout would only slow down training.
RECIPE = {
    **{"preset": "tiny", "n_layers": 2, "d_ff": 512, "vocab_size": 1500, "batch_tokens": 1000},
    **{"optimizer": "muon", "lr": 0.01, "dropout": 0.0, "label_smoothing": 0.0, "languages": ("en", "fr")},
}


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> None:
    """Write pairs as TSV, unless the file already holds them."""
    text = "".join(f"{english}\t{french}\n" for english, french in pairs)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8", newline="\n")
