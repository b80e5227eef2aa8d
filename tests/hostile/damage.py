"""Damaged model and run folders, and folders with wrong contents whose checksums are right."""

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.hostile.case import Case, Setup, command, either, fails, works
from tests.hostile.prepare import TEST_FILES, train_command

# Damage: each changes one file.


def flip(position: float, bit: int) -> Callable[[Path], None]:
    """Flip a bit of the byte at this fraction of the file."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[min(len(data) - 1, int(position * len(data)))] ^= 1 << bit
        path.write_bytes(data)

    return damage


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_last_byte(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_other_file(path: Path) -> None:
    others = sorted(p for p in path.parent.iterdir() if p.is_file() and p != path and p.stat().st_size)
    path.write_bytes(others[0].read_bytes() if others else b"{}")


def replace_by_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(path.name).randbytes(997))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut in half": truncate,
    "last byte gone": cut_last_byte,
    "empty": lambda path: path.write_bytes(b""),
    **{f"bit {bit} at {position:.0%}": flip(position, bit) for position, bit in ((0, 0), (0.3, 2), (0.6, 5), (1, 6))},
    "removed": Path.unlink,
    "a folder": replace_by_folder,
    "another file": replace_by_other_file,
    "a FIFO": replace_by_fifo,
    "a dangling link": replace_by_dangling_link,
    "garbage": garbage,
    "a byte more": append,
}

COMMANDS_ON = {
    "translation": (
        ("translate @ --max-length 5", b"The cat.\n"),
        ("info @", b""),
        ("run @ --max-length 5", b"The cat.\n"),
        ("evaluate @ {m}/test.tsv --max-length 5", b""),
        ("score @ --src {m}/test.tsv", b""),
        ("inspect @ cat", b""),
        ("trace @ cat", b""),
        ("ablate @ {m}/test.tsv", b""),
        ("export @ --out exported", b""),
        ("compare {m}/translation @ {m}/test.tsv", b""),
        ("worked-example --model @ --text cat", b""),
    ),
    "classification": (
        ("classify @", b"the film\n"),
        ("info @ --json", b""),
        ("evaluate @ {m}/classification-test.jsonl", b""),
        ("similar @ film", b""),
    ),
    "causal-lm": (("complete @ --max-length 5", b"the film\n"), ("trace @ film", b"")),
}
MODEL_FILES = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "training.json"),
    "manifest.json",
)


def copy_model(task: str, name: str = "model") -> Setup:
    """Copy the model files of a task into the folder of the case."""
    return lambda place, shared: shutil.copytree(shared / "bare" / task, place / name)


def damaged_models() -> Iterator[Case]:
    """Each file of a model folder in each way damaged, with each command in turn."""
    for task, commands in COMMANDS_ON.items():
        n = 0
        for file in MODEL_FILES:
            for what, damage in DAMAGES.items():
                line, stdin = commands[n % len(commands)]
                n += 1

                def setup(place: Path, shared: Path, file=file, damage=damage, task=task) -> None:
                    copy_model(task)(place, shared)
                    damage(place / "model" / file)

                # A bit or a byte of the manifest may be one that says nothing, such as the version of torch.
                silent = file == "manifest.json" and what.startswith(("bit", "a byte"))
                expect = either(1) if silent else fails(1, says="manifest" if file == "manifest.json" else file)
                if file == "manifest.json" and what in ("garbage", "another file", "cut in half"):
                    expect = fails(1, says="model")
                yield command(
                    f"damaged model/{task}, {file}: {what}", line.replace("@", "model"), expect, setup, stdin=stdin
                )
    for name, expect in (("nowhere", "no such folder"), ("file", "not a model folder"), ("empty", "manifest.json")):
        for task, commands in COMMANDS_ON.items():
            for line, stdin in commands:

                def setup(place: Path, shared: Path) -> None:
                    (place / "file").write_text("x")
                    (place / "empty").mkdir()

                id = f"damaged model/{name} for a {task} model: {line.split()[0]}"
                yield command(id, line.replace("@", name), fails(1, 2, says=expect), setup, stdin=stdin)


RUN_FILES = (
    *("run.toml", "env.json", "train.log", "metrics.jsonl", "config.json", "model.safetensors", "manifest.json"),
    *("training.json", "tokenizer.json", "README.md", ".lock"),
    *(f"checkpoints/step-4/{name}" for name in ("model.safetensors", "training.safetensors", "progress.json")),
    *(f"checkpoints/step-4/{name}" for name in ("manifest.json", "config.json", "tokenizer.json")),
    *("best/step-4/model.safetensors", "best/step-4/manifest.json"),
    *("data/corpus.json", "data/dev.jsonl", "data/tokenizer.json", "data/train/src.u2", "data/train/src.ends"),
)
RUN_DAMAGES = ("cut in half", "empty", "bit 2 at 30%", "removed", "a folder", "garbage", "a FIFO")


def copy_run(place: Path, shared: Path) -> None:
    shutil.copytree(shared / "run", place / "run")


def continue_command(shared: str = "{m}", out: str = "run") -> list[str]:
    return [*train_command("translation", Path(shared), out, "--steps", "6"), "--save-every", "2"]


def damaged_runs() -> Iterator[Case]:
    """Each file of a run folder in several ways damaged; then the run is continued, or its folder used."""
    for file in RUN_FILES:
        for what in RUN_DAMAGES:

            def setup(place: Path, shared: Path, file=file, what=what) -> None:
                copy_run(place, shared)
                path = place / "run" / file
                if path.stat().st_size or not what.startswith("bit"):
                    DAMAGES[what](path)

            expect = either(1, 2, changes=("run/",))
            if file.startswith("checkpoints/step-4/") and what in ("cut in half", "empty", "removed", "garbage"):
                name = "step-4" if "manifest" in file else Path(file).name
                expect = works(changes=("run/",), warns=(name,))
            yield command(f"damaged run/continue, {file}: {what}", continue_command(), expect, setup)
    for file in ("manifest.json", "run.toml", "model.safetensors", "best/step-4/model.safetensors"):
        for line in ("info run", "translate run --max-length 5", "report run --out page.html"):
            for what in ("empty", "removed", "garbage"):

                def setup(place: Path, shared: Path, file=file, what=what) -> None:
                    copy_run(place, shared)
                    DAMAGES[what](place / "run" / file)

                id = f"damaged run/{line.split()[0]}, {file}: {what}"
                yield command(id, line, either(1, 2), setup, stdin=b"The cat.\n")
    for name in ("checkpoints", "best", "data", "data/train"):
        for what in ("removed", "a file", "empty"):

            def setup(place: Path, shared: Path, name=name, what=what) -> None:
                copy_run(place, shared)
                shutil.rmtree(place / "run" / name)
                if what == "a file":
                    (place / "run" / name).write_text("x")
                elif what == "empty":
                    (place / "run" / name).mkdir()

            id = f"damaged run/continue, folder {name}: {what}"
            yield command(id, continue_command(), either(1, 2, changes=("run/",)), setup)


# Folders whose checksums are right


def sign(folder: Path, *names: str) -> None:
    """Write the size and the SHA-256 of files into the manifest."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in names:
        data = (folder / name).read_bytes()
        manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


REMOVE = object()


def edited(task: str, file: str, key: str, value: Any) -> Setup:
    """A model folder with another value in a JSON file, signed again."""

    def setup(place: Path, shared: Path) -> None:
        copy_model(task)(place, shared)
        path = place / "model" / file
        record = json.loads(path.read_text())
        if value is REMOVE:
            record.pop(key, None)
        else:
            record[key] = value
        path.write_text(json.dumps(record))
        if file != "manifest.json":
            sign(place / "model", file)

    return setup


def rewritten(task: str, file: str, data: bytes) -> Setup:
    """A model folder with other contents of a file, signed again."""

    def setup(place: Path, shared: Path) -> None:
        copy_model(task)(place, shared)
        (place / "model" / file).write_bytes(data)
        if file != "manifest.json":
            sign(place / "model", file)

    return setup


USE = {
    "translation": ("translate model --max-length 5", b"The cat.\n"),
    "classification": ("run model", b"the film\n"),
    "causal-lm": ("run model --max-length 5", b"the film\n"),
    "skip-gram": ("similar model film", b""),
    "masked-lm": ("run model", b"the <mask>\n"),
    "question-answering": ("run model", b"Where?\tAnn lives in Oslo.\n"),
    "regression": ("run model", b"the film\tcast\n"),
    "tagging": ("run model", b"the film\n"),
    "summarization": ("run model --max-length 5", b"the film\n"),
    "multitask": ("run model --max-length 5", b"short: the film\n"),
}

LONG = "9" * 400
NOT_A_NUMBER = (None, "x", [], {}, [1], float("inf"), float("nan"), "", "1e999", "a" * 10_000)
NOT_A_SIZE = (*NOT_A_NUMBER, 2.5, -1, 10**30, -(10**30))
NOT_A_BOOL = (None, "x", 7, [], {}, 2.5, float("nan"), "maybe")
NOT_A_NAME = (None, "x", 7, True, [], {}, "", "a" * 10_000, "日本語")

SIZES = ("vocab_size", "d_model", "max_len", "pad_id", "bos_id", "eos_id", "n_heads", "d_ff")
WRONG_VALUES = {
    "translation": {
        **dict.fromkeys((*SIZES, "n_encoder_layers", "n_decoder_layers"), NOT_A_SIZE),
        "dropout": (*NOT_A_NUMBER, -1, 1, 2.5),
        **dict.fromkeys(("pre_norm", "scale_embedding", "output_bias"), NOT_A_BOOL),
        **dict.fromkeys(("attention", "activation", "sinusoid_layout", "task", "model_type"), NOT_A_NAME),
        "pruned_heads": (None, "x", 7, [], {"a": "x"}, {"a": None}, {"a": []}, {"a": -1}, {"a": 1}),
    },
    "classification": {
        **dict.fromkeys(("n_labels", "n_token_types", "position_offset", "n_layers"), NOT_A_SIZE),
        "norm_eps": NOT_A_NUMBER,
        "pooler": NOT_A_BOOL,
        **dict.fromkeys(("head", "pooling", "pooler_activation"), NOT_A_NAME),
    },
    "causal-lm": {**dict.fromkeys(("n_layers", "max_len"), NOT_A_SIZE), "norm_eps": NOT_A_NUMBER},
    "skip-gram": {**dict.fromkeys(("d_model", "vocab_size"), NOT_A_SIZE)},
}
"""Task -> key of config.json -> values that must be refused."""

OTHER_SIZES = {
    "translation": {
        "vocab_size": (1, 4, 299, 301, 1 << 20, (1 << 20) + 1),
        "d_model": (2, 30, 31, 64, 1 << 14, (1 << 14) + 2),
        "max_len": (0, 1, 2, 7, 8193),
        "pad_id": (300, 1 << 62),
        "n_heads": (3, 5, 64, 1 << 40),
        "d_ff": (1, 31, 33, 1 << 16),
        "n_encoder_layers": (2, 128, 129),
        "n_decoder_layers": (2, 128, 129),
        "output_bias": (True,),
    },
    "classification": {"n_labels": (0, 1, 8, 10), "n_layers": (2, 128), "head": ("none", "mlm", "tokens", "span")},
    "causal-lm": {"max_len": (1, 7, 64, 129, 4096), "n_layers": (2,), "d_ff": (33,)},
    "skip-gram": {"d_model": (2, 33, 64), "max_len": (0, 1, 7)},
    "question-answering": {"head": ("tokens", "mlm"), "max_len": (1, 7)},
    "masked-lm": {"head": ("none", "sequence"), "max_len": (1, 7)},
    "tagging": {"head": ("sequence",), "max_len": (1, 7)},
    "regression": {"n_labels": (0, 2), "max_len": (1, 7)},
    "summarization": {"max_len": (1, 7)},
    "multitask": {"max_len": (1, 7), "n_buckets": (0, 3, 5, 64), "max_distance": (0, 7), "d_head": (0, 15)},
}
"""Task -> key of config.json -> sizes that the weights do not have."""


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if value is not REMOVE else "removed"
    return text if len(text) < 30 else f"{text[:12]}… of {len(text)}"


def wrong_configs() -> Iterator[Case]:
    """config.json with wrong values, with missing and additional keys, and contents that are no configuration."""
    for table in (WRONG_VALUES, OTHER_SIZES):
        for task, keys in table.items():
            for key, values in keys.items():
                for value in values:
                    line, stdin = USE[task]
                    yield command(
                        f"signed config/{task}, {key} {shown(value)}",
                        line,
                        fails(1, says="config.json" if table is WRONG_VALUES else "model"),
                        edited(task, "config.json", key, value),
                        stdin=stdin,
                    )
    for task in USE:
        line, stdin = USE[task]
        for key in ("task", "model_type", "vocab_size"):
            expect = fails(1, says="config.json")
            setup = edited(task, "config.json", key, REMOVE)
            yield command(f"signed config/{task}, without {key}", line, expect, setup, stdin=stdin)
        # A missing size has its default, which the weights then do not have.
        for key in ("d_model", "n_layers", "n_heads", "max_len"):
            setup = edited(task, "config.json", key, REMOVE)
            yield command(f"signed config/{task}, without {key}", line, either(1), setup, stdin=stdin)
        setup = edited(task, "config.json", "colour", 7)
        expect = fails(1, says=("config.json", "colour"))
        yield command(f"signed config/{task}, with another key", line, expect, setup, stdin=stdin)
        setup = edited(task, "config.json", "max_len", 8)
        yield command(f"signed config/{task}, max_len 8", line, either(1), setup, stdin=stdin)
    for name, data in NO_OBJECTS.items():
        for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            line, stdin = USE["translation"]
            expect = fails(1, says="config" if file == "config.json" else "token")
            setup = rewritten("translation", file, data)
            yield command(f"signed config/{file} is {name}", line, expect, setup, stdin=stdin)
    for data, name in ((b"", "empty"), (b"{}", "{}"), (b"\0" * 97, "NUL bytes"), (b"\xff" * 997, "0xFF bytes")):
        for task in ("translation", "classification", "skip-gram"):
            line, stdin = USE[task]
            setup = rewritten(task, "model.safetensors", data)
            id = f"signed config/{task}, model.safetensors is {name}"
            yield command(id, line, fails(1, says="model.safetensors"), setup, stdin=stdin)


NO_OBJECTS = {
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "empty": b"",
    "half an object": b'{"a": ',
    "deeply nested": b"[" * 100_000,
    "nested objects": b'{"a":' * 100_000,
    "NUL": b"\0",
    "not UTF-8": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a giant integer": b'{"vocab_size": ' + b"9" * 10_000 + b"}",
}


def wrong_labels() -> Iterator[Case]:
    """Labels of wrong type and number."""
    anything = (7, "ab", [7], {"a": 1}, None, True, [None], [["a"]])
    wrong = {
        "classification": (*anything, [], ["a"], ["a"] * 8, ["a"] * 10),
        "tagging": (*anything, [], ["O"]),
        "regression": (
            *anything,
            [],
            ["1"],
            ["x", "y"],
            ["1", "1"],
            ["nan", "1"],
            ["1", "inf"],
            ["1", "2", "3"],
            ["2", "1"],
        ),
    }
    for task, values in wrong.items():
        line, stdin = USE[task]
        for value in values:
            for use in (line, "info model"):
                setup = edited(task, "config.json", "labels", value)
                id = f"signed labels/{task}, {shown(value)}: {use.split()[0]}"
                yield command(id, use, fails(1, says="config.json"), setup, stdin=stdin)
    for task in ("classification", "tagging"):
        line, stdin = USE[task]
        setup = edited(task, "config.json", "labels", REMOVE)
        yield command(f"signed labels/{task}, removed", line, fails(1, says="config.json"), setup, stdin=stdin)


def wrong_tokenizers() -> Iterator[Case]:
    """tokenizer_config.json and tokenizer.json with wrong values."""
    for key in ("pad_token", "bos_token", "eos_token", "mask_token", "prefix"):
        for value in (7, 0.5, True, [], ["a"], {}, None, float("nan")):
            if key == "mask_token" and value is None:
                continue
            setup = edited("translation", "tokenizer_config.json", key, value)
            line, stdin = USE["translation"]
            expect = fails(1, says=("tokenizer_config.json", key))
            yield command(f"signed tokenizer/{key} {shown(value)}", line, expect, setup, stdin=stdin)
        if key != "prefix":
            for value in ("", "nowhere", "a" * 10_000, "\0", "日本語"):
                if key == "mask_token" and value == "":
                    continue
                setup = edited("translation", "tokenizer_config.json", key, value)
                line, stdin = USE["translation"]
                expect = fails(1, says="token")
                yield command(f"signed tokenizer/{key} {shown(value)}", line, expect, setup, stdin=stdin)
    for task in ("translation", "classification", "masked-lm"):
        line, stdin = USE[task]
        for key in ("model", "added_tokens", "pre_tokenizer", "decoder", "normalizer", "version", "truncation"):
            for value in (7, "x", [7], {"type": "Nowhere"}, REMOVE):
                setup = edited(task, "tokenizer.json", key, value)
                id = f"signed tokenizer/{task}, tokenizer.json {key} {shown(value)}"
                expect = fails(1, says="tokenizer") if key == "model" else either(1)
                yield command(id, line, expect, setup, stdin=stdin)


def wrong_manifests() -> Iterator[Case]:
    """manifest.json with wrong values."""
    line, stdin = USE["translation"]
    for value in (0, 1, 3, 10**30, -1, "2", None, 2.5, [], {}, float("nan"), float("inf"), REMOVE):
        setup = edited("translation", "manifest.json", "format_version", value)
        yield command(f"manifest/format_version {shown(value)}", line, fails(1, says="model"), setup, stdin=stdin)
    digest = {"bytes": 1, "sha256": "0" * 64}
    rows = (
        *(None, 7, "x", [], ["x"], {}, {"x": None}, {"x": {}}, {"x": 7}, {"x": {"bytes": "?", "sha256": ""}}),
        *(
            {name: digest}
            for name in ("../x", "/etc/hostname", "a/../../x", ".", "..", "", "config.json", "\0", "nowhere")
        ),
        {"config.json": {"bytes": float("inf"), "sha256": ""}},
        {"config.json": {"bytes": None, "sha256": None}},
        {"a" * 300: digest},
        REMOVE,
    )
    for value in rows:
        setup = edited("translation", "manifest.json", "files", value)
        yield command(f"manifest/files {shown(value)}", line, fails(1, says="model"), setup, stdin=stdin)
    for name, data in NO_OBJECTS.items():
        setup = rewritten("translation", "manifest.json", data)
        yield command(f"manifest/is {name}", line, fails(1, says="manifest.json"), setup, stdin=stdin)
    for key in ("torch", "glassformer", "threads"):
        for value in (None, 7, "x", [], REMOVE):
            setup = edited("translation", "manifest.json", key, value)
            yield command(f"manifest/{key} {shown(value)}", line, works(1), setup, stdin=stdin)


def changed_weights(task: str, change: Callable[[dict[str, Any]], None]) -> Setup:
    """A model folder with other weights, signed again."""

    def setup(place: Path, shared: Path) -> None:
        import safetensors.torch

        copy_model(task)(place, shared)
        path = place / "model" / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        change(tensors)
        safetensors.torch.save_file({name: value.contiguous() for name, value in tensors.items()}, path)
        sign(place / "model", "model.safetensors")

    return setup


def set_first(value: float) -> Callable[[dict[str, Any]], None]:
    """Set all numbers of all weight tensors."""

    def change(tensors: dict[str, Any]) -> None:
        for tensor in tensors.values():
            tensor.fill_(value)

    return change


def reshape_each(change_one: Callable[[Any], Any], first: bool) -> Callable[[dict[str, Any]], None]:
    def change(tensors: dict[str, Any]) -> None:
        names = sorted(tensors)
        name = names[0] if first else names[-1]
        tensors[name] = change_one(tensors[name])

    return change


def remove_tensor(tensors: dict[str, Any]) -> None:
    del tensors[sorted(tensors)[0]]


def add_tensor(tensors: dict[str, Any]) -> None:
    tensors["another.weight"] = next(iter(tensors.values())).clone()


WEIGHT_COMMANDS = {
    "translation": (
        "translate model --max-length 5",
        "translate model --temperature 1 --max-length 5",
        "translate model --json --max-length 5",
        "evaluate model {m}/test.tsv --max-length 5",
        "score model --src {m}/test.tsv",
        "compare model model {m}/test.tsv --threads 1",
    ),
    "causal-lm": ("run model --max-length 5", "run model --beam 2 --max-length 5", "evaluate model {m}/text.txt"),
    "classification": ("run model", "run model --json", "evaluate model {m}/classification-test.jsonl"),
    "regression": ("run model", "run model --json", "evaluate model {m}/regression-test.jsonl"),
    "tagging": ("run model", "run model --json", "evaluate model {m}/tagging-test.jsonl"),
    "question-answering": ("run model", "run model --json", "evaluate model {m}/squad.json"),
    "masked-lm": ("run model", "run model --json", "evaluate model {m}/text.txt"),
    "skip-gram": ("run model", "similar model film"),
    "summarization": ("run model --max-length 5", "run model --json --max-length 5"),
    "multitask": ("run model --max-length 5", "run model --beam 1 --max-length 5"),
}


def wrong_weights() -> Iterator[Case]:
    """Weights that are not finite, and tensors of other names, shapes and types."""
    for task, lines in WEIGHT_COMMANDS.items():
        stdin = USE[task][1] or b"film\n"
        for value in ("nan", "inf"):
            for line in lines:
                setup = changed_weights(task, set_first(float(value)))
                id = f"weights/{task}, all {value}: {line.partition(' ')[0]}{' '.join(line.split(' ')[2:4])}"
                yield command(id, line, fails(1, says="finite"), setup, stdin=stdin)
    for task in USE:
        line, stdin = USE[task]
        changes = {
            "a tensor less": remove_tensor,
            "a tensor more": add_tensor,
            "no tensor": dict.clear,
            "first transposed": reshape_each(lambda x: x[..., None], True),
            "last cut": reshape_each(lambda x: x[:-1], False),
            "last longer": reshape_each(lambda x: x.new_zeros((x.shape[0] + 1, *x.shape[1:])), False),
            "first empty": reshape_each(lambda x: x[:0], True),
            "first a scalar": reshape_each(lambda x: x.flatten()[0], True),
        }
        for what, change in changes.items():
            setup = changed_weights(task, change)
            yield command(f"weights/{task}, {what}", line, fails(1, says="model"), setup, stdin=stdin)
        for dtype in ("int64", "bool", "float16", "float64", "bfloat16", "complex64"):

            def convert(tensors: dict[str, Any], dtype=dtype) -> None:
                import torch

                for name in tensors:
                    tensors[name] = tensors[name].to(getattr(torch, dtype))

            setup = changed_weights(task, convert)
            expect = fails(1, says="model") if dtype in ("int64", "bool", "complex64") else either(1)
            yield command(f"weights/{task}, {dtype}", line, expect, setup, stdin=stdin)
    for task, line in (("translation", "trace model cat"), ("classification", "trace model film")):
        setup = changed_weights(task, set_first(float("nan")))
        yield command(f"weights/{task}, trace with NaN", line, fails(1, says="finite"), setup)
    for task in ("translation", "classification", "causal-lm", "tagging", "masked-lm", "question-answering"):
        text = "Where?\tAnn lives in Oslo." if task == "question-answering" else "the <mask> film"
        for value in ("nan", "inf"):
            for line in (["inspect", "model", text], ["inspect", "model", text, "--out", "page.html"]):
                setup = changed_weights(task, set_first(float(value)))
                yield command(f"weights/{task}, inspect {len(line)} with {value}", line, fails(1, says="finite"), setup)


def all_damage() -> Iterator[Case]:
    yield from damaged_models()
    yield from damaged_runs()
    yield from wrong_configs()
    yield from wrong_labels()
    yield from wrong_tokenizers()
    yield from wrong_manifests()
    yield from wrong_weights()


__all__ = ["TEST_FILES", "all_damage"]
