"""The tables of docs/results.md and README.md: from the records of benchmarks/results/*.json to rows."""

import statistics

from benchmarks.option_speed import OPTIONS
from benchmarks.results_page import Row, Rows, Table
from benchmarks.results_tables_server import SERVER, joined
from benchmarks.results_tables_tasks import CONTROL, METHODS, TASKS, percent, times

SIZES = ("tiny", "small", "base")
SETTINGS = {
    "batch 32 beam 4": "32 sentences, beam 4",
    "batch 64 beam 4": "64 sentences, beam 4",
    "batch 32 beam 1": "32 sentences, greedy",
    "batch 1 beam 4": "one sentence, beam 4",
    "batch 1 beam 1": "one sentence, greedy",
}
SEARCHES = ((1, "greedy"), (4, "beam 4"))
LENGTHS = (32, 64, 256, 512, 992)


def multi30k(languages: str) -> Rows:
    def rows(record: dict) -> list[Row]:
        minutes = round(record.get("minutes_in_all", record["training"]["minutes"]))
        score = lambda name, metric: f"{record['scores'][name][metric]['score']:.1f}"
        return [
            [languages, minutes, name, score(f"{name} greedy", "BLEU")]
            + [score(f"{name} beam 4", metric) for metric in ("BLEU", "chrF2", "TER")]
            for name in ("val", "test_2016_flickr")
        ]

    return rows


def int8_accuracy(name: str) -> Rows:
    def row(record: dict, beam: int, search: str) -> Row:
        bleu = [f"{record[f'beam {beam}, {precision}']['bleu']:.2f}" for precision in ("fp32", "bf16", "int8")]
        equal = [percent(record[f"beam {beam}, int8"][key]) for key in ("equal_predictions", "equal_tokens")]
        return [f"{name}, {search}", *bleu, *equal]

    return lambda record: [row(record, *search) for search in SEARCHES]


def train_speed(record: dict) -> list[Row]:
    """Target tokens per second of each system in the faster of its two precisions."""
    rates = record["target_tokens_per_s"]
    systems = dict.fromkeys(name.rsplit(" ", 1)[0] for name in rates["base"])
    fastest = lambda system, size: max(rates[size][f"{system} {precision}"] for precision in ("fp32", "bf16"))
    rows = [[system, *(fastest(system, size) for size in SIZES)] for system in systems]
    return [*rows, ["glassformer relative to the fastest other", *(times(record["ratio"][size]) for size in SIZES)]]


def peak(record: dict) -> list[Row]:
    fractions = record.get("fraction_of_peak", {})
    return [[p, *(percent(fractions[size][p], 0) for size in SIZES)] for p in ("fp32", "bf16") if fractions]


def gpu(size: str) -> Rows:
    def row(name: str, result: dict) -> Row:
        rate = next(result[key] for key in ("target_tokens_per_s", "tokens_per_s", "targets_per_s") if key in result)
        mfu = percent(result["mfu"]) if "mfu" in result else ""
        start = f"{result['seconds_to_step_10']} s" if "seconds_to_step_10" in result else ""
        return [name.replace(f" {size}", ""), rate, result["steps_per_s"], mfu, f"{result['peak_gib']} GiB", start]

    return lambda record: [row(*item) for item in record["results"].items() if size in item[0]]


def same_bits(record: dict) -> list[Row]:
    text = {True: "equal", False: "not equal"}
    return [[name, text[row["repeated"]], text[row["resumed"]]] for name, row in record["results"].items()]


def processes(record: dict) -> list[Row]:
    text = lambda name: name.replace("1 x ", "1 process, ").replace("2 x 1 threads", "2 processes, 1 thread each")
    return [[text(name), rate] for name, rate in record["target_tokens_per_s"].items()]


def saving(record: dict) -> list[Row]:
    ways = {"in the background": "a checkpoint holds up training for", "at once": "the same if it were written at once"}
    seconds = record["median_s"]
    return [
        [text, f"{seconds[f'{name}: returns after']} s", "saving_cost", record["commit"]] for name, text in ways.items()
    ]


def growth(record: dict) -> list[Row]:
    def row(axis: str, result: dict) -> Row:
        first, *_, last = map(int, result["points"])
        commit = result.get("commit", record["commit"])  # an axis may have been measured again alone
        return [axis, f"{first:,} to {last:,}", result["slope"]["seconds"], result["slope"]["mb"], commit]

    return [row(*item) for item in record["axes"].items()]


def preparation(record: dict) -> list[Row]:
    axis = record["axes"]["pairs of the corpus: preparation"]

    def row(pairs: str, result: dict) -> Row:
        cpu = result["library_encoding_cpu_s"] / result["cpu_s"]
        wall = f"{result['rate_relative_to_library']:.2f}"
        cells = [f"{result['seconds']:,} s", f"{result['mb']} MB", wall, f"{cpu:.2f}"]
        return [int(pairs), *cells, axis.get("commit", record["commit"])]

    return [row(*item) for item in axis["points"].items()]


def product(model: str, label: str = "") -> Rows:
    """Tokens per second of a model in translate_speed, in each setting that was measured."""

    def rows(record: dict) -> list[Row]:
        found = {text: record["rows"].get(f"{model} {name}") for name, text in SETTINGS.items()}
        return [
            [label + text, row["tokens_per_s"]["glassformer"], row["tokens_per_s"]["CTranslate2"], times(row["ratio"])]
            for text, row in found.items()
            if row
        ]

    return rows


def shortlist_speed(model: str) -> Rows:
    def rows(record: dict) -> list[Row]:
        found = {text: record["rows"].get(f"{model} avx512 {name}, shortlist") for name, text in SETTINGS.items()}
        return [
            [f"{model}, {text}", row["tokens_of_a_list"], times(row["ratio_to_without"]), times(row["ratio"])]
            for text, row in found.items()
            if row
        ]

    return rows


def shortlist(record: dict) -> list[Row]:
    def row(name: str, search: str, result: dict) -> Row:
        bleu = [f"{result[key]:.2f}" for key in ("bleu_without", "bleu_with")]
        return [f"{name}, {search}", *bleu, percent(result["equal_lines"]), times(result["speed_ratio"])]

    models = record["models"].items()
    return [row(name, search, result[f"beam {beam}"]) for name, result in models for beam, search in SEARCHES]


def commands(record: dict) -> list[Row]:
    """Time and memory of whole processes that translate."""
    one, many = (record["rows"][f"process, base, {n} sentences"] for n in ("1", "1,000"))
    cells = lambda run: [f"{run['seconds']} s", f"{run['peak_megabytes']} MB"]
    return [
        [name, *cells(one[name]), *cells(many[name])]
        for name in one
        if name not in ("ratio", "spread") and "seconds" in one[name]
    ]


def decoding(record: dict) -> list[Row]:
    rates = record["tokens_per_s"]
    return [[system, *(rates[name][system] for name in rates)] for system in rates["batch 32 beam 4"]]


def generation(record: dict) -> list[Row]:
    texts = {"batch 1": "one text", "batch 16": "16 texts"}
    return [
        [f"{system}, {texts[batch]}", *(f"{row[str(n)]} ms" if str(n) in row else "" for n in LENGTHS)]
        for batch, rows in record["ms_per_step"].items()
        for system, row in rows.items()
    ]


def encoder(record: dict) -> list[Row]:
    names = {"fp32": "glassformer, fp32", "int8": "glassformer, int8", "onnxruntime int8": "ONNX Runtime, int8"}
    return [[names[name], rate] for name, rate in record["lines_per_s"].items()]


def stream(record: dict) -> list[Row]:
    memory = record["resident_mib"]
    return [[record["lines"], record["lines_per_s"], f"{memory[0]} MiB", f"{memory[-1]} MiB"]]


def options(record: dict) -> list[Row]:
    speeds = record["speed_relative_to_none"]
    return [[f"`--{name.replace('_', '-')}`", times(speeds[name])] for name in OPTIONS if name != "none"]


def search(record: dict) -> list[Row]:
    return [
        [name, *(f"{row[key]:.2f} s" for key in ("seconds", "outside_the_kernels"))]
        for name, row in record["rows"].items()
    ]


PRODUCT_COLUMNS = ("sentences at a time", "glassformer", "CTranslate2", "ratio")
GPU_COLUMNS = ("system", "target tokens/s", "steps/s", "MFU", "peak memory", "time to step 10")
DECODED = [SETTINGS[name] for name in ("batch 32 beam 4", "batch 32 beam 1", "batch 1 beam 4", "batch 1 beam 1")]
COMMAND_COLUMNS = ("program", "1 line", "peak memory", "1,000 lines", "peak memory")
PEERS = ("torch", "transformers", "x-transformers", "Joey NMT", "EOLE")
INT8_COLUMNS = ("model", "BLEU, fp32", "BLEU, bf16", "BLEU, int8", "equal next tokens, int8", "equal tokens, int8")
GROWTH = "python -m benchmarks.growth PAIRS [AXIS]"
GROWTH_COLUMNS = ("what grows", "range", "exponent of time", "exponent of memory", "commit")


def first_minutes(record: dict) -> list[Row]:
    """A row for each training, and the mean of those that differ in their seeds only."""
    rows = record["rows"]
    score = lambda names, key: f"{statistics.mean(rows[name][key]['BLEU'] for name in names):.1f}"

    def row(label: str, names: list[str]) -> Row:
        parameters = f"{rows[names[0]]['n_parameters'] / 1e6:.1f} M"
        return [label, parameters, *(score(names, key) for key in ("greedy", "beam 5, length penalty 1"))]

    groups: dict[str, list[str]] = {}
    for name in rows:
        groups.setdefault(name.partition(", seed ")[0], []).append(name)
    means = [row(f"{name}, mean of {len(names)} seeds", names) for name, names in groups.items() if len(names) > 1]
    return [*(row(name, [name]) for name in rows), *means]


def equal_time(record: dict) -> list[Row]:
    def row(corpus: str, results: dict) -> Row:
        scores = [
            f"{results[recipe][metric]:.1f}" for recipe in ("published", "default") for metric in ("BLEU", "chrF2")
        ]
        return [corpus, results["default"]["preset"], *scores]

    return [row(*item) for item in record["rows"].items()]


def more_text(record: dict) -> list[Row]:
    def row(corpus: str, method: str, result: dict) -> Row:
        scores = [f"{result[metric]:.1f}" for metric in ("BLEU", "chrF2")]
        return [corpus, method, f"{result['n_more']:,}", f"{result['targets'] / 1e6:.1f} M", *scores]

    return [row(corpus, *item) for corpus, results in record["rows"].items() for item in results.items()]


def search_quality(record: dict) -> list[Row]:
    def row(model: str, setting: str, result: dict) -> Row:
        return [model, setting, *(f"{result[metric]:.1f}" for metric in ("BLEU", "chrF2"))]

    return [row(model, *item) for model, results in record["rows"].items() for item in results.items()]


NOISES = (
    "capitals", "title case", "no capitals", "typing error", "as written", "no end mark", "end mark twice", "emoji",
    "code", "list mark", "paragraph", "single words",
)  # fmt: skip


def robustness(record: dict) -> list[Row]:
    """The clean chrF of each model, and the part of it that is left under each noise; and the part of the clean words
    that are read otherwise."""

    def row(name: str, result: dict) -> Row:
        if "as written" not in result:  # before words were read otherwise
            result = result | {"as written": result["typing error"], "typing error": None}
        read = result.get("read otherwise")
        parts = [percent(part, 0) if (part := result.get(noise)) is not None else "–" for noise in NOISES]
        return [name, f"{result['clean']:.1f}", *parts, "–" if read is None else percent(read, 2)]

    return [row(*item) for item in record["results"].items()]


def documents(record: dict) -> list[Row]:
    """Files read and written again: of two languages, then those of Office."""

    def row(name: str, result: dict, accepted: str) -> Row:
        shown = [str(result.get(key) or "–") for key in (accepted, "toolkit", "omegat")]
        return [name, str(result["files"]), str(result.get("refused", 0)), str(result["same"]), *shown]

    return [
        *(row(name, result, "accepted") for name, result in record["identity"].items()),
        *(row(f".{name}", result, "same text") for name, result in record["office"].items()),
    ]


def memory_read(record: dict) -> list[Row]:
    """Speed and memory of reading a translation memory for training."""
    if not (result := record.get("memory")):
        return []
    return [[f"{result['MB']} MB", f"{result['pairs']:,}", f"{result['MB/s']} MB/s", f"{result['memory MB']} MB"]]


KEY_PRESS = "heads_ms", "key_press_ms", "layers_ms"


def browser(record: dict) -> list[Row]:
    def row(name: str, result: dict) -> Row:
        size, first = f"{result['bytes'] / 1e6:.1f} MB", f"{result['first_translation_ms'] / 1000:.2f} s"
        memory = f"{result['memory_bytes'] / 1e6:.0f} MB" if "memory_bytes" in result else "–"
        searches = [result[f"beam {beam}"] for beam, _ in SEARCHES]
        ratios = [" / ".join(times(x[key]) for key in ("ratio", "ratio_avx2") if key in x) for x in searches]
        speeds = [f"{x['page_tokens_per_s']:,}" for x in searches]
        columns = [cell for pair in zip(speeds, ratios, strict=True) for cell in pair]
        key_press = [f"{result[key]:.0f} ms" if key in result else "–" for key in KEY_PRESS]
        return [name, size, first, memory, *key_press, *columns]

    return [row(*item) for item in record["results"].items()]


def browser_onnx(record: dict) -> list[Row]:
    rows = []
    for name, result in record["results"].items():
        peer = " / ".join(f"{size / 1e6:.0f}" for size in result["peer_bytes"].values())
        for beam, search in SEARCHES:
            x = result[f"beam {beam}"]
            page, *others = x["tokens_per_s"].values()
            speeds = [f"{page:,}", " / ".join(f"{y:,}" for y in others), times(x["ratio"])]
            rows.append([name, search, *speeds, f"{result['bytes'] / 1e6:.1f} MB", f"{peer} MB"])
    return rows


def browser_equal(record: dict) -> list[Row]:
    return [[name, x["texts"], *x["differ"].values()] for name, x in record["results"].items()]


def recipes(record: dict) -> list[Row]:
    def row(name: str, result: dict) -> Row:
        corpus, recipe, _ = name.split("/")
        best = max(result["dev"].values(), key=lambda scores: scores["BLEU"])
        plain = result["dev"]["beam 4, 0.6"]["BLEU"]
        targets = f"{result['targets'] / 1e6:.1f} M"
        dev = [f"{plain:.1f}", f"{best['BLEU']:.1f}", f"{best['chrF2']:.1f}"]
        test = [f"{scores['BLEU']:.1f}" for scores in result.get("test", {}).values()] or [""]
        return [corpus, recipe, targets, *dev, *test]

    return sorted(row(*item) for item in record["runs"].items())


TABLES = {
    "first minutes": Table(
        ("model", "parameters", "BLEU, greedy", "BLEU, beam 5"), {"first_minutes": first_minutes}, note=True
    ),
    "recipes": Table(
        ("corpus", "recipe", "targets", "BLEU, beam 4, length penalty 0.6", "best BLEU", "its chrF2", "test BLEU"),
        {"quality": recipes},
        note=True,
    ),
    "equal time": Table(
        ("corpus", "preset chosen", "published: BLEU", "chrF2", "default: BLEU", "chrF2"), {"equal_time": equal_time}
    ),
    "more text": Table(
        ("corpus", "method", "other lines", "targets of the last training", "BLEU", "chrF2"), {"more_text": more_text}
    ),
    "browser": Table(
        (
            *("model", "file", "first translation", "memory", "all heads", "with the translation", "then the layers"),
            *("greedy: tokens/s", "relative to native", "beam 4: tokens/s", "relative to native"),
        ),
        {"browser": browser},
    ),
    "browser equal": Table(
        ("model", "texts", *(f"differ, {name}" for name in ("greedy", "beam 4", "3 best"))),
        {"browser_equal": browser_equal},
    ),
    "browser onnx": Table(
        (
            *("model", "search", "page: tokens/s", "onnxruntime-web, fp32 / int8", "relative to the better one"),
            *("size of the page", "size of runtime and model"),
        ),
        {"browser_onnx": browser_onnx},
        note=True,
    ),
    "documents": Table(
        (
            *("files", "number", "refused", "unchanged outside of targets"),
            *("accepted", "as before for the Translate Toolkit", "for OmegaT"),
        ),
        {"documents": documents},
    ),
    "memory read": Table(
        ("memory (TMX)", "pairs", "read for training", "above the imports"), {"documents": memory_read}
    ),
    "noise": Table(("model", "clean: chrF", *NOISES, "read otherwise"), {"robustness": robustness}),
    "search quality": Table(("corpus", "search", "BLEU", "chrF2"), {"search_quality": search_quality}),
    "multi30k": Table(
        ("languages", "minutes", "set", "BLEU, greedy", "BLEU, beam 4", "chrF2, beam 4", "TER, beam 4"),
        {
            "multi30k_en_de": multi30k("English to German"),
            "multi30k_en_de_teachers_seed_2": multi30k("English to German, two cores, two teachers"),
            "multi30k_en_de_teachers_seed_3": multi30k("the same, another seed"),
            "multi30k_en_fr": multi30k("English to French"),
            "multi30k_en_fr_teachers_seed_2": multi30k("English to French, two cores, two teachers"),
            "multi30k_en_fr_teachers_seed_3": multi30k("the same, another seed"),
            "multi30k_en_fr_teachers_seed_4": multi30k("the same, another seed, a tenth of the pairs changed"),
        },
    ),
    "int8 accuracy": Table(INT8_COLUMNS, {f"int8_accuracy_{name}": int8_accuracy(name) for name in ("tiny", "small")}),
    "train speed": Table(("system", *SIZES), {"train_speed": train_speed}, PEERS),
    "peak": Table(("precision", *SIZES), {"train_speed": peak}, note=True),
    "train memory": Table(
        ("system", "peak memory"),
        {"train_memory": lambda r: [[name, f"{mb:,} MB"] for name, mb in r["peak_mb"].items()]},
        ("torch", "transformers"),
    ),
    "gpu base": Table(GPU_COLUMNS, {"train_speed_gpu_base": gpu("base")}, ("torch", "transformers"), note=True),
    "gpu tiny": Table(GPU_COLUMNS, {"train_speed_gpu_tiny": gpu("tiny")}),
    "gpu texts": Table(GPU_COLUMNS, {"train_speed_gpu_gpt2": gpu("gpt2")}, ("transformers",)),
    "same bits": Table(("training", "repeated", "killed and started again"), {"same_bits": same_bits}),
    "processes": Table(("processes", "target tokens/s"), {"processes": processes}),
    "trainer": Table(
        ("what", "result", "script", "commit"),
        {
            "trainer_overhead": lambda r: [
                ["speed relative to bare steps", r["ratio"]["tiny"], "trainer_overhead", r["commit"]]
            ],
            "validation_cost": lambda r: [
                ["validation, of the time before it", percent(r["fraction"]), "validation_cost", r["commit"]]
            ],
            "saving_cost": saving,
        },
        command="python -m benchmarks.SCRIPT",
    ),
    "growth": Table(GROWTH_COLUMNS, {"growth": growth}, command=GROWTH),
    "preparation": Table(
        (
            "pairs",
            "time",
            "memory",
            "relative to the library, wall time",
            "relative to the library, CPU time",
            "commit",
        ),
        {"growth": preparation},
        command=GROWTH,
    ),
    "translate base": Table(PRODUCT_COLUMNS, {"translate_speed": product("base avx512")}, ("torch", "ctranslate2")),
    "translate trained": Table(
        PRODUCT_COLUMNS, {"translate_speed": product("trained avx512")}, ("torch", "ctranslate2")
    ),
    "translate others": Table(
        ("model, sentences at a time", *PRODUCT_COLUMNS[1:]),
        {
            "translate_speed": joined(
                product("12+2 layers avx512", "12 + 2 layers, "),
                product("tiny avx512", "tiny, "),
                product("base avx2", "base, AVX2, "),
                product("base PyTorch", "base, without C library, "),
            )
        },
        ("torch", "ctranslate2"),
    ),
    "shortlist speed": Table(
        (
            "model, sentences at a time",
            "tokens of a list",
            "relative to no list",
            "relative to CTranslate2 with the list",
        ),
        {"translate_speed": joined(shortlist_speed("base"), shortlist_speed("trained"))},
        ("torch", "ctranslate2"),
    ),
    "shortlist": Table(
        ("model", "BLEU without", "BLEU with", "equal lines", "relative speed"), {"shortlist": shortlist}
    ),
    "commands": Table(COMMAND_COLUMNS, {"translate_speed": commands}, ("torch", "ctranslate2")),
    "decoding": Table(("system", *DECODED), {"decode_speed": decoding}, ("torch", "transformers", "ctranslate2")),
    "generation": Table(
        ("system", *(f"{n} tokens" for n in LENGTHS)), {"generate_speed": generation}, ("torch", "transformers")
    ),
    "encoder": Table(("system", "lines/s"), {"encoder_speed": encoder}, ("torch", "onnxruntime")),
    "stream": Table(
        ("lines", "lines/s", "memory after 50,000 lines", "memory after 950,000 lines"), {"stream_memory": stream}
    ),
    "options": Table(("option", "relative speed"), {"option_speed": options}),
    "search": Table(("source tokens decoded together", "time", "outside of the kernels"), {"search_time": search}),
    **CONTROL,
    **SERVER,
    **TASKS,
    **METHODS,
}


def listed(values: dict) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())


def gpu_ratio(record: dict) -> str:
    rates = record["results"]
    ours, theirs = "glassformer base, compile on", "torch.nn.Transformer base, compiled"
    return f"{rates[ours]['target_tokens_per_s'] / rates[theirs]['target_tokens_per_s']:.2f}"


def product_ratios(record: dict) -> str:
    settings = ("batch 32 beam 4", "batch 32 beam 1", "batch 1 beam 4", "batch 1 beam 1")
    found = {SETTINGS[name]: record["rows"].get(f"base avx512 {name}") for name in settings}
    return "; ".join(f"{text}: {row['ratio']:.1f}" for text, row in found.items() if row)


def glossary(record: dict) -> str:
    g = record["glossary"]
    present = f"{g['terms'] - g['terms_missing']} of {g['terms']} terms"
    return f"{present}; BLEU {g['bleu']:.1f}, without glossary {g['bleu_without_glossary']:.1f}"


def placeholders(record: dict) -> str:
    p = record["placeholders"]
    lines = f"{p['lines'] - p['lines_wrong']:,} of {p['lines']:,} lines"
    return f"{lines}; BLEU of the rest {p['bleu_of_rest']:.1f}, without placeholders {p['bleu_of_untouched_text']:.1f}"


def test_2016(record: dict) -> str:
    return f"{record['scores']['test_2016_flickr beam 4']['BLEU']['score']:.1f} BLEU"


# Name of the file of results, what was measured, the result of a record.
README_ROWS = [
    (
        "multi30k_en_de_teachers_seed_2",
        "English to German on Multi30k, test_2016 (lower-cased, tokenized), an hour of training on two cores,"
        " `--n-teachers 2` (published for this size: 41.02)",
        test_2016,
    ),
    ("multi30k_en_de_teachers_seed_3", "the same, another seed", test_2016),
    ("multi30k_en_de", "the same, 60 minutes of training on one core, without teachers, one seed", test_2016),
    (
        "train_speed",
        "training speed relative to the fastest of torch.nn.Transformer, MarianMTModel, x-transformers, Joey NMT"
        " and EOLE",
        lambda r: listed(r["ratio"]),
    ),
    (
        "train_speed_gpu_base",
        "the whole trainer at base size relative to bare steps of the compiled torch.nn.Transformer",
        gpu_ratio,
    ),
    (
        "train_memory",
        "peak memory of a training step at base size relative to the smaller of torch.nn.Transformer and MarianMTModel",
        lambda r: f"{r['ratio']:.2f}",
    ),
    (
        "translate_speed",
        "translation in int8 at base size, tokenization included, relative to CTranslate2 in int8",
        product_ratios,
    ),
    (
        "serve_libretranslate",
        "server, base in int8, 32 connections with a sentence each: sentences/s relative to LibreTranslate",
        lambda r: f"{r['results']['base']['single']['ratio']:.1f}",
    ),
    ("terms", "glossary, lines of Multi30k test_2016 with 1 to 5 of its terms", glossary),
    ("terms", "placeholders, tags, URLs and numbers with units that are kept byte for byte", placeholders),
    (
        "task_entities",
        "named entities, WNUT17 dev, fine-tuned from MiniLM in 10 minutes on one core",
        lambda r: f"F1 {r['metrics']['F1']['score']:.3f}",
    ),
    (
        "task_similarity",
        "similarity of sentences, STS-B dev, fine-tuned from MiniLM in 8 minutes on one core",
        lambda r: f"Pearson {r['metrics']['Pearson']['score']:.3f}",
    ),
]
