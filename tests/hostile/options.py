"""Options with wrong values, environment variables, configuration files, and places that cannot be written."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.hostile.case import Case, Expect, command, either, fails, works
from tests.hostile.prepare import SMALL

HUGE = "9" * 400
LONG = "a" * 100_000
NOT_WHOLE = ("x", "2.9", "1e999", "nan", "", "-", "9" * 5000, "1,000", "0x10", "½", "日本語", "--json=1")
NOT_A_NUMBER = ("x", "nan", "inf", "1e999", "", "-", "1,5", "½", "日本語", "1_0_0x")

TRAIN = ("train", "{m}/train.tsv", "--out", "out", *SMALL)
SHORT_TRAIN = {"steps": "2"}
TRANSLATE = ("translate", "{m}/bare/translation", "--max-length", "5")
LINES = b"The cat.\n\nThe dog.\n"


def with_option(base: tuple[str, ...], option: str, value: str) -> list[str]:
    """A command with an option, in place of the one it has."""
    arguments = list(base)
    if option in arguments:
        at = arguments.index(option)
        del arguments[at : at + 2]
    return [*arguments, f"{option}={value}"]


def numbers(
    group: str,
    base: tuple[str, ...],
    option: str,
    *,
    whole: bool,
    low: bool = True,
    zero: bool = False,
    expect: Expect = either(1, 2),  # noqa: B008
    code: int = 2,
    stdin: bytes = b"",
    extra: tuple[str, ...] = (),
) -> Iterator[Case]:
    """Wrong values of one numeric option.

    Args:
        low: whether negative numbers are wrong.
        zero: whether 0 is allowed.
        expect: of values that are allowed.
        extra: options that the command gets for the values that are allowed, to be short.
    """
    refused = (*(NOT_WHOLE if whole else NOT_A_NUMBER), *(("-1", "-1e9" if not whole else "-" + HUGE) if low else ()))
    for value in refused:
        arguments = with_option(base, option, value)
        yield command(f"{group}/{base[0]} {option} {shown(value)}", arguments, fails(code), stdin=stdin)
    for value in ("0", "1", HUGE if whole else "1e300"):
        arguments = [*with_option(base, option, value), *(extra if option not in extra else ())]
        outcome = fails(code) if value == "0" and not zero else expect
        yield command(f"{group}/{base[0]} {option} {shown(value)}", arguments, outcome, stdin=stdin)


def shown(value: str) -> str:
    return repr(value) if len(value) < 20 else f"{value[:8]!r}… of {len(value)}"


TRAIN_WHOLE = (
    *("steps", "epochs", "vocab-size", "d-model", "n-heads", "d-ff", "n-layers", "max-len", "batch-tokens"),
    *(
        "accumulate",
        "micro-batch-tokens",
        "mixing-limit",
        "average-checkpoints",
        "seed",
        "save-every",
        "validate-every",
        "threads",
    ),
)
TRAIN_FRACTION = (
    *("minutes", "dropout", "lr", "warmup-ratio", "decay-ratio", "mixing-temperature", "max-grad-norm"),
    *("prompt-loss-weight", "label-smoothing", "ema", "bpe-dropout", "augment", "weights"),
)
DECODE_WHOLE = ("beam", "nbest", "max-length", "no-repeat-ngram-size", "top-k", "seed", "batch-tokens", "threads")
DECODE_FRACTION = ("length-penalty", "temperature", "top-p")
MAY_BE_ZERO = {
    *("seed", "dropout", "warmup-ratio", "decay-ratio", "prompt-loss-weight", "label-smoothing", "length-penalty"),
    "bpe-dropout",
    "augment",
    "no-repeat-ngram-size",
}


def numeric_options() -> Iterator[Case]:
    steps = ("--steps", "2")
    for name in TRAIN_WHOLE:
        extra = () if name in ("steps", "epochs") else steps
        yield from numbers("options", TRAIN, f"--{name}", whole=True, zero=name in MAY_BE_ZERO, extra=extra)
    for name in TRAIN_FRACTION:
        extra = () if name == "minutes" else steps
        if name == "minutes":
            for value in (*NOT_A_NUMBER, "0", "-1"):
                yield command(f"options/train --minutes {shown(value)}", [*TRAIN, f"--minutes={value}"], fails(2))
            for value in ("1e-9", "1e-300", "1e-5"):
                yield command(f"options/train --minutes {value}", [*TRAIN, f"--minutes={value}"], works())
            continue
        yield from numbers("options", TRAIN, f"--{name}", whole=False, zero=name in MAY_BE_ZERO, extra=extra)
    for name in DECODE_WHOLE:
        expect = either(1, 2, n_lines=3)
        yield from numbers(
            "options", TRANSLATE, f"--{name}", whole=True, zero=name in MAY_BE_ZERO, expect=expect, stdin=LINES
        )
    for name in DECODE_FRACTION:
        expect = either(1, 2, n_lines=3)
        yield from numbers(
            "options", TRANSLATE, f"--{name}", whole=False, zero=name in MAY_BE_ZERO, expect=expect, stdin=LINES
        )
    run = ("complete", "{m}/bare/causal-lm", "--max-length", "5")
    for name in DECODE_WHOLE:
        if name != "nbest":
            expect = either(1, 2, n_lines=3)
            yield from numbers(
                "options", run, f"--{name}", whole=True, zero=name in MAY_BE_ZERO, expect=expect, stdin=LINES
            )
    for name in DECODE_FRACTION:
        expect = either(1, 2, n_lines=3)
        yield from numbers(
            "options", run, f"--{name}", whole=False, zero=name in MAY_BE_ZERO, expect=expect, stdin=LINES
        )
    test = "{m}/classification-test.jsonl"
    others = (
        (("evaluate", "{m}/bare/classification", test), "--threads"),
        (("ablate", "{m}/bare/classification", test), "--examples"),
        (("ablate", "{m}/bare/classification", test, "--out", "pruned"), "--prune"),
        (("doctor", "{m}/test.tsv"), "--show"),
        (("similar", "{m}/bare/skip-gram", "film"), "--n"),
        (("worked-example", "--model", "{m}/bare/translation", "--text", "a cat"), "--head"),
        (("inspect", "{m}/bare/classification", "a film"), "--window"),
        (("trace", "{m}/bare/classification", "a film"), "--window"),
        (("report", "{m}/classification", "--out", "page.html"), "--examples"),
        (("demo", "--out", "demo", "--steps", "1"), "--pairs"),
        (("score", "{m}/bare/translation", "--src", "{m}/test.tsv"), "--threads"),
        (("compare", "{m}/bare/classification", "{m}/bare/classification", test), "--threads"),
    )
    for base, option in others:
        for value in NOT_WHOLE:
            arguments = [*base, f"{option}={value}"]
            yield command(f"options/{base[0]} {option} {shown(value)}", arguments, fails(2))
        for value in ("-1", "0") if option != "--pairs" else ("-1", "0", "1"):
            legal = (option, value) in (("--prune", "0"), ("--pairs", "1")) or (base[0], value) == ("report", "0")
            expect = either(1, 2) if legal else fails(1, 2)
            yield command(f"options/{base[0]} {option} {value}", [*base, f"{option}={value}"], expect)
        if option not in ("--pairs", "--threads"):
            arguments = [*base, f"{option}={HUGE}"]
            yield command(f"options/{base[0]} {option} {shown(HUGE)}", arguments, either(1, 2))
    for value in (*NOT_A_NUMBER, "0", "-1"):
        arguments = ["demo", "--out", "demo", "--pairs", "50", f"--steps={value}"]
        yield command(f"options/demo --steps {shown(value)}", arguments, fails(2))


TEXT_VALUES = ("", "nowhere", LONG, "日本語", "-1", "..", "/", "\t", "a\nb")
CHOICES = {
    TRAIN: ("--task", "--family", "--preset", "--format", "--tokenizer", "--pooling", "--precision", "--device"),
    TRANSLATE: ("--precision", "--device"),
    ("evaluate", "{m}/bare/translation", "{m}/test.tsv"): ("--tokenize", "--device", "--format"),
    ("ablate", "{m}/bare/classification", "{m}/classification-test.jsonl"): ("--parts", "--format"),
    ("export", "{m}/bare/translation", "--out", "exported"): ("--to",),
    ("doctor", "{m}/test.tsv"): ("--format", "--keys"),
    ("score", "{m}/bare/translation", "--src", "{m}/test.tsv"): ("--format", "--device", "--keys"),
}


def text_options() -> Iterator[Case]:
    for base, options in CHOICES.items():
        for option in options:
            for value in TEXT_VALUES:
                if option == "--keys" and value == "":
                    continue
                arguments = with_option(base, option, value)
                yield command(f"options/{base[0]} {option} {shown(value)}", arguments, fails(2), stdin=LINES)
    for option in ("--init-from", "--embeddings", "--dev", "--config", "--columns", "--keys"):
        for value in TEXT_VALUES:
            if value == "" and option in ("--columns", "--keys"):
                continue
            arguments = with_option((*TRAIN, "--steps", "2"), option, value)
            expect = either(1, 2) if option in ("--columns", "--keys") else fails(1, 2)
            yield command(f"options/train {option} {shown(value)}", arguments, expect)
    for name in (
        *(
            "translate",
            "run",
            "complete",
            "classify",
            "tag",
            "answer",
            "similarity",
            "fill-mask",
            "correct",
            "generate",
        ),
        *("summarize", "info", "report", "export"),
    ):
        for value in ("", "nowhere", LONG, "日本語", "/", "/dev/null", "a\udcffb"):
            more = ["--out", "page"] if name in ("report", "export") else []
            yield command(f"options/{name} on {shown(value)}", [name, value, *more], fails(1, 2), stdin=LINES)
    for name in ("similar", "inspect", "trace"):
        for value in ("", LONG, "日本語", "\x01", "\udcff", "a\nb\tc", " ", "<s>", "🎬" * 300):
            model = "{m}/bare/skip-gram" if name == "similar" else "{m}/bare/translation"
            yield command(f"options/{name} text {shown(value)}", [name, model, value], either(1, 2))
    for value in ("", "nowhere", "decoder", "encoder.0", "encoder.9.self_attention", LONG, "日本語"):
        arguments = ["worked-example", "--model", "{m}/bare/translation", "--text", "a cat", "--layer", value]
        yield command(f"options/worked-example --layer {shown(value)}", arguments, either(1, 2))
    for value in ("", "日本語", "a", "zebra"):
        arguments = ["worked-example", "--model", "{m}/bare/translation", "--text", "a cat", "--words", value, "cat"]
        yield command(f"options/worked-example --words {shown(value)}", arguments, either(1, 2))


CONFLICTS = (
    "train",
    "train --out out",
    "train {m}/train.tsv",
    "train - --out out",
    "train - {m}/train.fr --out out",
    "train {m}/train.en --task translation --out out",
    "train {m}/train.en {m}/train.fr {m}/test.en --out out",
    "train {m}/train.tsv {m}/train.fr --out out",
    "train {m}/train.tsv --out out --steps 1 --epochs 1",
    "train {m}/train.tsv --out out --steps 1 --minutes 1",
    "train {m}/train.tsv --out out --steps 2 --warmup-ratio 0.9 --decay-ratio 0.9",
    "train {m}/train.tsv --out out --steps 2 --task skip-gram --family bert",
    "train {m}/train.tsv --out out --steps 2 --task classification",
    "train {m}/train.tsv --out out --steps 2 --task tagging",
    "train {m}/train.tsv --out out --steps 2 --task question-answering",
    "train {m}/train.tsv --out out --steps 2 --task regression",
    "train {m}/train.tsv --out out --steps 2 --family bert",
    "train {m}/train.tsv --out out --steps 2 --preset large",
    "train {m}/train.tsv --out out --steps 2 --lowercase true",
    "train {m}/train.tsv --out out --steps 2 --tokenizer bpe --lowercase",
    "train {m}/train.tsv --out out --steps 2 --dev-tgt {m}/test.fr",
    "train {m}/train.tsv --out out --steps 2 --init-from {m}/bare/classification",
    "train {m}/train.tsv --out out --steps 2 --dev {m}/nowhere",
    "train {m}/train.tsv --out out --steps 2 --dev {m}/text.txt",
    "train {m}/train.tsv --out out --steps 2 --nowhere 7",
    "train {m}/train.tsv --out out --steps",
    "train {m}/train.tsv --out out --config nowhere.toml",
    "train {m}/train.tsv --out out --config {m}",
    "train {m}/train.tsv --out out --config /dev/zero",
    "train {m}/train.tsv --out out --steps 2 --reverse-model {m}/bare/translation",
    "train {m}/train.tsv --out out --steps 2 --more-tgt {m}/test.fr --reverse-model {m}/bare/classification",
    "train {m}/train.tsv --out out --steps 2 --more-tgt {m}/test.fr --reverse-model nowhere",
    "train {m}/train.tsv --out out --steps 2 --more-tgt {m}/test.fr --init-from {m}/bare/translation",
    "train {m}/train.tsv --out out --steps 2 --in-domain {m}/test.en",
    "train {m}/train.tsv --out out --steps 2 --weights 1 2",
    "train {m}/train.tsv --out out --steps 2 --weights 0",
    "train {m}/train.tsv --out out --steps 2 --dropout 2",
    "train {m}/train.tsv --out out --steps 2 --tags news",
    "translate {m}/bare/translation --tag news",
    "translate {m}/bare/translation --rerank mbr --beam 1",
    "translate {m}/bare/translation --rerank best",
    "train {m}/text.txt --out out --steps 2 --more-tgt {m}/test.fr",
    "train {m}/text.txt --out out --steps 2 --augment 0.1",
    "train {m}/train.tsv --out out --steps 2 --augment 2",
    "train {m}/text.txt --out out --steps 2 --bpe-dropout 0.1",
    "train {m}/train.tsv --out out --steps 2 --bpe-dropout 0.1 --tokenizer char",
    "update",
    "update {m}/bare/translation",
    "update {m}/bare/translation nowhere.po --out out",
    "update {m}/bare/classification {m}/test.tsv --out out",
    "update nowhere {m}/test.tsv --out out",
    "update {m}/bare/translation {m}/test.tsv --out {m}",
    "update {m}/bare/translation {m}/test.tsv --out out --max-drop -1",
    "distill",
    "distill {m}/bare/translation",
    "distill {m}/bare/translation --out out",
    "distill {m}/bare/translation --src {m}/test.en",
    "distill {m}/bare/classification --src {m}/test.en --out out",
    "distill nowhere --src {m}/test.en --out out",
    "distill {m}/bare/translation {m}/bare/translation --src {m}/test.en --out out",
    "distill {m}/bare/translation http://127.0.0.1:9 --src {m}/test.en --out out",
    "distill http://127.0.0.1:9 --src {m}/test.en --out out",
    "distill http://127.0.0.1:9 --endpoint-model m --prompt x --src {m}/test.en --out out",
    "distill http:// --endpoint-model m --prompt {text} --src {m}/test.en --out out",
    "distill {m}/bare/translation --prompt {text} --src {m}/test.en --out out",
    "distill {m}/bare/translation --src {m}/test.en --tgt {m}/train.fr --out out",
    "distill {m}/bare/translation --beam 0 --src {m}/test.en --out out",
    "distill {m}/bare/translation --nowhere 7 --src {m}/test.en --out out",
    "translate {m}/bare/translation --ensemble",
    "translate {m}/bare/translation --ensemble {m}/bare/translation",
    "translate {m}/bare/translation --ensemble {m}/bare/classification",
    "translate {m}/bare/translation --ensemble {m}/bare/multitask",
    "translate {m}/bare/translation --ensemble nowhere",
    "evaluate {m}/bare/classification {m}/test.tsv --ensemble {m}/bare/translation",
    "translate",
    "translate {m}/bare/classification",
    "translate {m}/bare/translation more",
    "translate {m}/bare/translation --beam 2 --nbest 3",
    "translate {m}/bare/translation --nbest 64",
    "translate {m}/bare/translation --device cuda",
    "translate {m}/bare/translation --device mps",
    "classify {m}/bare/translation",
    "tag {m}/bare/translation",
    "answer {m}/bare/translation",
    "similarity {m}/bare/classification",
    "fill-mask {m}/bare/causal-lm",
    "summarize {m}/bare/causal-lm",
    "complete {m}/bare/masked-lm",
    "correct {m}/bare/tagging",
    "similar {m}/bare/skip-gram nowhere",
    "evaluate {m}/bare/translation",
    "evaluate {m}/bare/translation --src {m}/test.en",
    "evaluate {m}/bare/translation --src {m}/test.en --ref {m}/train.fr",
    "evaluate {m}/bare/classification {m}/text.txt",
    "evaluate {m}/bare/tagging {m}/squad.json",
    "evaluate {m}/bare/question-answering {m}/test.tsv",
    "compare {m}/bare/translation {m}/bare/classification {m}/test.tsv",
    "compare {m}/bare/translation {m}/bare/translation",
    "ablate {m}/bare/translation",
    "ablate {m}/bare/translation {m}/test.tsv --prune 1",
    "ablate {m}/bare/translation {m}/test.tsv --out out",
    "ablate {m}/bare/translation {m}/test.tsv --prune 1 --parts layers --out out",
    "ablate {m}/bare/translation {m}/test.tsv --prune 999 --out out",
    "score {m}/bare/classification --src {m}/test.tsv",
    "score {m}/bare/translation --src {m}/test.en",
    "score {m}/bare/translation --src {m}/test.en --tgt {m}/train.fr",
    "score {m}/bare/translation",
    "inspect {m}/bare/translation",
    "inspect {m}/bare/translation cat --window 9",
    "worked-example --model {m}/bare/translation",
    "worked-example --text cat",
    "worked-example --head 2",
    "worked-example --model {m}/bare/translation --text cat --head 9",
    "worked-example --model {m}/bare/skip-gram --text film",
    "worked-example --words a b",
    "report {m}/bare/translation --out page.html",
    "doctor",
    "doctor {m}/test.en",
    "doctor {m}/test.en {m}/test.fr {m}/test.tsv",
    "doctor --src {m}/test.en",
    "doctor --src {m}/test.en {m}/train.en --tgt {m}/test.fr",
    "export {m}/bare/multitask",
    "export {m}/bare/skip-gram --out out",
    "import {m}/nowhere --out out",
    "import {m}/bare/translation --out out",
    "import {m}/text.txt --out out",
    "import {m}/theirs",
    "import --out out",
    "nowhere",
    "--nowhere",
    "translate --nowhere",
    "info",
    "info {m}/bare/translation --beam 3",
    "demo --pairs 0 --steps 1",
    "demo more",
)


def conflicts() -> Iterator[Case]:
    """Commands that lack something or whose parts contradict each other."""
    for line in CONFLICTS:
        yield command(f"conflicts/{line.replace('{m}/', '')}", line, fails(1, 2), stdin=LINES)
    for id, arguments in (
        ("no command", []),
        ("help", ["--help"]),
        ("version", ["--version"]),
        ("train help", ["train", "--help-all"]),
    ):
        yield command(f"conflicts/{id}", arguments, works())
    yield command("conflicts/an empty command", [""], fails(2))
    yield command("conflicts/a command with a newline", ["trans\nlate", "x"], fails(2))
    yield command("conflicts/a very long command", [LONG], fails(2))


# Environment and configuration files


COMPLETE = ("complete", "{m}/bare/causal-lm", "--max-length", "5")


def environment() -> Iterator[Case]:
    """Variables GLASSFORMER_<OPTION>: obeyed by commands, with the same checks as options."""
    for name, values in {
        **dict.fromkeys(
            ("BEAM", "NBEST", "MAX_LENGTH", "TOP_K", "BATCH_TOKENS"), ("x", "2.9", "0", "-1", "", "nan", HUGE)
        ),
        **dict.fromkeys(("TEMPERATURE", "TOP_P"), ("x", "0", "-1", "", "nan", "1e999")),
        **{
            "LENGTH_PENALTY": ("x", "-1", "", "nan", "9"),
            "PRECISION": ("x", "", "fp16"),
            "SEED": ("x", "-1", "", HUGE),
        },
    }.items():
        for value in values:
            huge = value == HUGE and name in ("TOP_K", "BATCH_TOKENS")
            for base in (TRANSLATE, *((COMPLETE,) if name != "NBEST" else ())):
                arguments = [part for part in base if name != "MAX_LENGTH" or part not in ("--max-length", "5")]
                expect = either(1, 2, n_lines=3) if huge else fails(2, says=("in the environment", name.lower()))
                id = f"environment/{base[0]}, {name}={shown(value)}"
                variables = {f"GLASSFORMER_{name}": value}
                yield command(id, arguments, expect, stdin=LINES, environment=variables)
    train = ("train", "{m}/train.tsv", "--out", "out")
    for name, values in {
        **dict.fromkeys(
            ("STEPS", "D_MODEL", "VOCAB_SIZE", "THREADS", "MAX_LEN"), ("x", "2.9", "0", "-1", "", HUGE + "x")
        ),
        **dict.fromkeys(("LR", "MINUTES", "DROPOUT"), ("x", "-1", "", "nan", "1e999")),
        **dict.fromkeys(("FAMILY", "PRESET", "TOKENIZER", "FORMAT", "POOLING", "PRE_NORM", "TENSORBOARD"), ("x", "")),
    }.items():
        for value in values:
            expect = fails(2, says=("in the environment", name.lower()))
            id = f"environment/train, {name}={shown(value)}"
            yield command(id, train, expect, environment={f"GLASSFORMER_{name}": value})
    for name, value in (("NOWHERE", "7"), ("", "7"), ("SRC", "/nowhere"), ("STOP", "a:b:c"), ("KEYS", "x")):
        variables = {f"GLASSFORMER_{name}": value}
        id = f"environment/translate, {name}={value}"
        yield command(id, TRANSLATE, works(3), stdin=LINES, environment=variables)
    for value in ("2", "x"):  # an option that the command does not have
        id = f"environment/complete, NBEST={value}"
        yield command(id, COMPLETE, works(3), stdin=LINES, environment={"GLASSFORMER_NBEST": value})
    for name, value in (("TERM", "nowhere"), ("COLUMNS", "x"), ("COLUMNS", "1"), ("LANG", "nowhere"), ("HOME", "")):
        id = f"environment/translate, {name}={value}"
        yield command(id, TRANSLATE, works(3), stdin=LINES, environment={name: value})


BROKEN_TOML: dict[str, bytes] = {
    "no TOML": b"this is no TOML\n",
    "half a table": b"[table\n",
    "half a string": b'src = ["a\n',
    "twice": b"steps = 1\nsteps = 2\n",
    "not UTF-8": b'task = "\xff"\n',
    "UTF-16": "steps = 1\n".encode("utf-16"),
    "NUL": b"steps = 1\0\n",
    "BOM": b"\xef\xbb\xbfsteps = 1\n",
    "binary": bytes(range(256)),
    "JSON": b'{"steps": 1}\n',
    "nested": b"[steps]\nn = 1\n",
    "a list": b"steps = [1]\n",
    "a date": b"steps = 2020-01-01\n",
    "a bool": b"d_model = true\n",
    "a string": b'steps = "many"\n',
    "a fraction": b"steps = 2.5\n",
    "infinite": b"lr = inf\n",
    "nan": b"lr = nan\n",
    "negative": b"steps = -1\n",
    "zero": b"steps = 0\n",
    "giant": b"steps = " + b"9" * 5000 + b"\n",
    "deep": b"steps = " + b"[" * 3000 + b"]" * 3000 + b"\n",
    "unknown": b"beams = 4\n",
    "unknown unicode": '"größe" = 4\n'.encode(),
    "empty key": b'"" = 4\n',
    "wrong choice": b'family = "nowhere"\n',
    "wrong task": b'task = "nowhere"\n',
    "wrong device": b'device = "tpu"\n',
    "empty path": b'init_from = ""\n',
    "NUL in a path": b'init_from = "a\\u0000b"\n',
    "missing model": b'init_from = "nowhere"\n',
    "src a number": b"src = 7\n",
    "src of numbers": b"src = [7]\n",
    "src empty": b"src = []\n",
    "src standard input": b'src = ["-"]\n',
    "out a number": b"out = 7\n",
    "keys a string": b'keys = "x"\n',
    "keys of numbers": b"keys = [1]\n",
    "two budgets": b"steps = 1\nminutes = 1.0\n",
    "lone CR": b"steps = 1\rlr = 1\n",
}


def configs() -> Iterator[Case]:
    """TOML files of `train --config` that are broken, and values in them that are wrong."""
    for name, data in BROKEN_TOML.items():
        for explicit in (True, False):
            files = ["{m}/train.tsv", "--out", "out"] if explicit else []

            def setup(place: Path, shared: Path, data=data) -> None:
                (place / "run.toml").write_bytes(data)

            expect = fails(1, 2)
            if (
                name in ("src a number", "src of numbers", "src empty", "src standard input", "out a number")
                and explicit
            ):
                expect = works(changes=())
            if name == "lone CR" and explicit:
                expect = works()
            arguments = ["train", *files, "--config", "run.toml", *(SMALL if name != "a bool" else SMALL[:2])]
            arguments += [] if name in STEPS_IN else ["--steps", "1"]
            id = f"config/{name}{', files on the command line' if explicit else ''}"
            yield command(id, arguments, expect, setup)


STEPS_IN = {name for name, data in BROKEN_TOML.items() if data.startswith((b"steps", b"[steps", b'{"steps'))}


# Places for output


def places() -> Iterator[Case]:
    """--out, --html and --fix on files, folders and places that cannot be written."""

    def setup(place: Path, shared: Path) -> None:
        (place / "file").write_text("years of work")
        (place / "full").mkdir()
        (place / "full" / "thesis.txt").write_text("years of work")
        (place / "page.html").write_text("years of work")
        (place / "loop").symlink_to("loop")
        (place / "dangling").symlink_to("nowhere/nowhere")

    train = " ".join(["train", "{m}/train.tsv", *SMALL, "--steps", "1", "--out"])
    folders = {
        train: {"full", "file", "file/run", "page.html", "/proc/run", "/sys/run", "/dev/null", "loop", "/dev/full/x"},
        "export {m}/masked-lm-bert --out": {"full", "file", "file/x", "/proc/x", "/sys/x", "/dev/null", "loop"},
        "import {m}/theirs --out": {"full", "file", "file/x", "/proc/x", "/sys/x", "/dev/null", "loop"},
        "ablate {m}/bare/classification {m}/classification-test.jsonl --prune 1 --out": {
            *("full", "file", "file/x", "/proc/x", "/sys/x", "/dev/null", "loop"),
        },
        "doctor {m}/test.tsv --fix": {"file", "file/x", "/proc/x", "/sys/x", "/dev/null", "loop", "full"},
        "demo --steps 1 --pairs 30 --out": {"file", "file/x", "/proc/x", "/sys/x", "/dev/null/x", "full"},
    }
    files = {
        "evaluate {m}/bare/classification {m}/classification-test.jsonl --out": {
            "full",
            "file/x",
            "nowhere/x",
            "/proc/x",
        },
        "inspect {m}/bare/classification film --out": {"page.html", "full", "nowhere/x", "/proc/x", "/sys/x", "file/x"},
        "report {m}/classification --out": {"page.html", "full", "nowhere/x", "/proc/x", "/sys/x", "file/x"},
        "worked-example --html": {"page.html", "full", "nowhere/x", "/proc/x", "/sys/x", "file/x", "loop"},
        "ablate {m}/bare/classification {m}/classification-test.jsonl --html": {
            *("page.html", "full", "nowhere/x", "/proc/x", "/sys/x", "file/x"),
        },
    }
    for table in (folders, files):
        for line, targets in table.items():
            # The last name is too long for any file system.
            for target in [*sorted(targets), "a" * 300]:
                partial = line.split()[0] in ("worked-example", "ablate", "doctor", "demo")
                expect = fails(1, 2, partial=partial)
                if line.startswith("doctor") and target == "full":
                    expect = either(1, 2)
                id = f"places/{line.split()[0]} {line.split()[-1]} {shown(target)}"
                yield command(id, [*line.split(), target], expect, setup)
    for line in (
        "inspect {m}/bare/classification film --out",
        "report {m}/classification --out",
        "worked-example --html",
    ):
        id = f"places/{line.split()[0]} overwrites with --force"
        yield command(id, f"{line} page.html --force", works(changes=("page.html",)), setup)
        for target in ("full", "/proc/x"):
            id = f"places/{line.split()[0]} --force {target}"
            partial = line.startswith("worked")
            yield command(id, f"{line} {target} --force", fails(1, 2, partial=partial), setup)


def all_options() -> Iterator[Case]:
    yield from numeric_options()
    yield from text_options()
    yield from conflicts()
    yield from environment()
    yield from configs()
    yield from places()


__all__: list[Any] = ["all_options"]
