"""The tables of docs/results.md about control of translations, other tasks, methods, exports and size."""

from statistics import median

from benchmarks.results_page import Row, Rows, Table

LANGUAGES = {"es": "Spanish", "fr": "French"}


def percent(fraction: float, digits: int = 1) -> str:
    return f"{100 * fraction:.{digits}f}%"


def times(ratio: float) -> str:
    return f"{ratio:.2f}x"


def glossary(record: dict) -> list[Row]:
    g = record["glossary"]
    missing = lambda n: f"{n} of {g['terms']}"
    return [
        ["without", missing(g["terms_missing_without_glossary"]), f"{g['bleu_without_glossary']:.2f}", "1x"],
        ["with", missing(g["terms_missing"]), f"{g['bleu']:.2f}", times(g["speed_ratio"])],
    ]


def placeholders(record: dict) -> list[Row]:
    p = record["placeholders"]
    wrong = lambda n: f"{n:,} of {p['lines']:,}"
    return [
        ["without", wrong(p["lines_wrong_without_protection"]), f"{p['bleu_of_rest_without_protection']:.2f}"],
        ["`--protect all`", wrong(p["lines_wrong"]), f"{p['bleu_of_rest']:.2f}"],
        ["lines without placeholders", "", f"{p['bleu_of_untouched_text']:.2f}"],
    ]


def markup(record: dict) -> list[Row]:
    ways = {
        "own_alignment": "glassformer",
        "eflomal": "eflomal",
        "in_proportion": "none: in proportion to the position",
    }
    keys = ("kept_and_nested", "placed_right", "placed_exactly", "codes_right", "tags_right")
    return [[text, *(percent(record[name][key]) for key in keys)] for name, text in ways.items()]


def inline_codes(record: dict) -> list[Row]:
    names = {"model": "glassformer, `--inline-codes`", "alignment": "glassformer, word alignment", "eflomal": "eflomal"}
    keys = ("kept_and_nested", "placed_right", "placed_exactly", "codes_right", "tags_right")
    return [
        [
            f"English to {LANGUAGES[language]}",
            text,
            *(percent(result[name][key]) for key in keys),
            result[name].get("ms", "–"),
        ]
        for language, result in record["rows"].items()
        for name, text in names.items()
    ]


def translation_memory(record: dict) -> list[Row]:
    names = {"unseen": "other texts of the same files", "training text": "the training text"}
    shown = lambda scores: f"{scores['chrf']:.1f}"
    without = record["without_memory"]
    all_texts: Row = ["none", "all texts", record["test_texts"], 0, "", shown(without), ""]
    return [all_texts] + [
        [names[name], span, row["texts"], row["changed"], *(shown(row[key]) for key in ("match", "without", "with"))]
        for name, memory in record["memories"].items()
        for span, row in memory["rows"].items()
    ]


def corrections(record: dict) -> list[Row]:
    pair = lambda before, after: f"{before:.1f} / {after:.1f}"
    return [
        [
            name,
            row["texts"],
            row["steps"],
            *(pair(row["before"][key], row["after"][key]) for key in ("bleu", "chrf")),
            pair(record["dev"]["chrf"], row["dev"]["chrf"]),
        ]
        for name, row in record["files"].items()
    ]


def bulk(record: dict) -> list[Row]:
    names = {
        "stream": "`translate < FILE`",
        "one": "`translate FILE --lines --out`",
        "processes": "the same, `--workers` for each core",
        "ray": "the same, `--ray local` with an actor for each core",
    }
    same = {True: "equal outputs", False: "different outputs"}
    rows: list[Row] = []
    if speed := record.get("speed"):
        seconds = {name: median(found) for name, found in speed["seconds"].items()}
        rows += [[names[name], f"{speed['n_lines'] / time_s:,.0f} lines/s"] for name, time_s in seconds.items()]
    if kills := record.get("kills"):
        rows.append([f"{kills['n_lines']:,} lines, {kills['n_killed']} times `kill -9`", same[kills["is_equal"]]])
    if killed := record.get("actors"):
        what = f"{killed['n_lines']:,} lines, actors of Ray killed {killed['n_killed']} times"
        rows.append([what, same[killed["is_equal"]]])
    if memory := record.get("memory"):
        first, *_, last = memory["peak_mb"]
        rows.append([f"peak memory after {memory['n_lines'] // 10:,} lines", f"{first:,.0f} MB"])
        rows.append([f"peak memory after {memory['n_lines']:,} lines", f"{last:,.0f} MB"])
    if model := record.get("model"):
        for n, hours in model["hours"].items():
            what = f"computed: {model['n_lines']:,} lines, {n} machine{'s' * (n != '1')} of {model['cores']} cores"
            rows.append([what, f"{hours['total'] * 60:,.0f} minutes (reading: {hours['read'] * 60:,.0f})"])
    return rows


def bitflips(record: dict) -> list[Row]:
    return [
        [
            what,
            row["files"],
            row["flips"],
            row["noticed"],
            row["without effect"],
            row["silent"],
            ", ".join(row.get("files without effect", ())),
        ]
        for what, row in record["rows"].items()
    ]


def emulated_arm(record: dict) -> list[Row]:
    return [
        [kernels, precision, row["lines"], "yes" if row["equal"] else "no"]
        for kernels, rows in record["rows"].items()
        for precision, row in rows.items()
    ]


def powerloss(record: dict) -> list[Row]:
    training, whole = record["training"], [("training", record["training"]), ("bulk", record["bulk"])]
    checkpoints = training["checkpoints"]
    return [
        ["checkpoints", training["calls"], checkpoints["states"], "all opened", checkpoints["lost"]],
        *(
            [name, found["calls"], each["states"], each["continued"], each["refused"] + each["different"]]
            for name, found in whole
            if (each := found["whole"])
        ),
    ]


def fuzz(record: dict) -> list[Row]:
    targets = record["targets"]
    rows = [
        [name, found["inputs"], found["failures"], found["inputs_per_s"], found["features"]]
        for name, found in targets.items()
    ]
    total = [sum(found[key] for found in targets.values()) for key in ("inputs", "failures", "seconds")]
    return [*rows, ["all", total[0], total[1], round(total[0] / total[2]), ""]]


def killtest(record: dict) -> list[Row]:
    return [[name, *(kind[key] for key in ("kills", "runs", "different"))] for name, kind in record["kinds"].items()]


def loops(record: dict) -> list[Row]:
    found = record["results"]
    names = {
        "repeated_without_detection": "without detection",
        "undetected": "with detection, not reported",
        "left_and_reported": "with detection, reported",
    }
    return [[text, found[name]] for name, text in names.items()]


def alignment(record: dict) -> list[Row]:
    links = record["known_links"]
    return [
        [f"error rate on {links:,} known links of the demo's grammar", f"{record['alignment_error_rate']:.3f}"],
        ["agreement (F1) with eflomal on Multi30k test_2016", f"{record['agreement_with_another_aligner']:.2f}"],
    ]


def confidence(record: dict) -> list[Row]:
    chrf = ("chrf", "chrf_without_the_least_confident_tenth")
    return [
        [name, f"{row['ece_of_words_on_test']:.3f}", *(f"{row[key]:.1f}" for key in chrf)]
        for name, row in record["models"].items()
    ]


def task(text: str, *metrics: str) -> Rows:
    """The row of a task: its metrics, the minutes of training, and what the script is called with."""

    def rows(record: dict) -> list[Row]:
        scores = [f"{metric} {record['metrics'][metric]['score']:.3f}" for metric in metrics]
        name = record["command"].split()[3]
        return [[text, ", ".join(scores), round(record["training"]["minutes"]), name, record["commit"]]]

    return rows


def subwords(record: dict) -> list[Row]:
    names = {"wordpiece": "WordPiece", "bpe": "BPE", "unigram": "unigram"}
    return [
        [
            text,
            *(f"{n:.2f}" for n in record[name]["pieces_per_word"].values()),
            f"{record[name]['val']['BLEU']['score']:.1f}",
        ]
        for name, text in names.items()
    ]


def recurrence(record: dict) -> list[Row]:
    def row(length: str, result: dict) -> Row:
        transformer, lstm = (result[name]["step_s"] for name in ("transformer", "rnn"))
        return [int(length), f"{transformer:.3f} s", f"{lstm:.3f} s", f"{lstm / transformer:.1f}x"]

    return [row(*item) for item in record["lengths"].items()]


def recurrence_bleu(record: dict) -> list[Row]:
    names = {"transformer": "Transformer", "rnn": "LSTM with attention"}
    return [[text, f"{record[name]['test_2016_flickr']['BLEU']['score']:.1f}"] for name, text in names.items()]


def agreement(record: dict) -> list[Row]:
    def row(name: str, result: dict) -> Row:
        lines, refused = result["compared"].split()[0], result["refused"].removesuffix(" wrong weights")
        return [name, lines, result["equal"].removesuffix(" tokens"), f"{result['difference']:.1e}", refused]

    return [row(*item) for item in record["models"].items()]


def export_defaults(record: dict) -> list[Row]:
    equal = record["equal"]
    text = lambda name: name.replace("huggingface", "transformers").replace("ctranslate2", "CTranslate2")
    names = dict.fromkeys(name.split("; ")[0] for name in equal)
    kinds = ("as it is", "without the guard")
    return [[text(name), *(equal[f"{name}; glassformer {kind}"] for kind in kinds)] for name in names]


def inspection(record: dict) -> list[Row]:
    return [
        ["forward pass that records all tensors, relative to one that does not", f"{record['on_ratio']}x as long"],
        ["size of the page", f"{record['page_mb']} MB"],
        ["first paint of the page in Chromium", f"{record['first_paint_s']} s"],
    ]


def footprint(record: dict) -> list[Row]:
    sizes = record.get("wheel_mb", {}).values()
    return [
        *([[f"{len(sizes)} wheels", f"{min(sizes)} to {max(sizes)} MB"]] if sizes else []),
        *(
            [f"{package}: {what}", f"{mb} MB"]
            for package, found in record.get("packages", {}).items()
            for what, mb in found.items()
        ),
        *([f"size of {name}", f"{mb} MB"] for name, mb in record["megabytes"].items()),
        ["time of `pip install`", f"{record['pip_install_s']} s"],
        ["time of `glassformer --help`", f"{record['help_s']} s"],
        *([["time of `import glassformer`", f"{record['import_s']} s"]] if "import_s" in record else []),
    ]


def wordpiece(record: dict) -> list[Row]:
    return [[f"{record['text_bytes'] / 1e6:.0f} MB", record["words"], f"{record['median_s']['both']} s"]]


def task_table(**rows: Rows) -> Table:
    columns = ("task", "score", "minutes", "NAME", "commit")
    files = {f"task_{name}": made for name, made in rows.items()}
    return Table(columns, files, command="python -m benchmarks.tasks NAME DATA")


CONTROL = {
    "glossary": Table(("glossary", "missing terms", "BLEU", "relative speed"), {"terms": glossary}),
    "placeholders": Table(("protection", "wrong lines", "BLEU of the rest"), {"terms": placeholders}),
    "markup": Table(
        (
            "alignment",
            "kept and nested",
            "right",
            "exactly right",
            "codes in a sentence right",
            "tags around words right",
        ),
        {"markup": markup},
    ),
    "inline_codes": Table(
        (
            "texts",
            "codes placed by",
            "kept and nested",
            "right",
            "exactly right",
            "codes in a sentence right",
            "tags around words right",
            "ms for a sentence, one thread",
        ),
        {"inline_codes": inline_codes},
    ),
    "translation_memory": Table(
        (
            "memory",
            "similarity",
            "texts",
            "changed",
            "chrF of the match as it is",
            "chrF without memory",
            "chrF with it",
        ),
        {"translation_memory": translation_memory},
    ),
    "corrections": Table(
        (
            "file",
            "other texts",
            "updates",
            "BLEU before / after",
            "chrF before / after",
            "chrF of the dev set before / after",
        ),
        {"corrections": corrections},
    ),
    "bulk": Table(("what", "result"), {"bulk": bulk}),
    "bitflips": Table(
        ("folder", "files", "bits flipped", "noticed", "without effect", "silent", "files of those without effect"),
        {"bitflips": bitflips},
    ),
    "emulated_arm": Table(
        ("instruction set of ARM", "precision", "lines", "equal to this processor's"), {"emulated_arm": emulated_arm}
    ),
    "powerloss": Table(
        ("what was cut off", "system calls", "states of the disk", "continued", "results that differ"),
        {"powerloss": powerloss},
    ),
    "fuzz": Table(("what reads the inputs", "inputs", "failed", "inputs/s", "code covered (features)"), {"fuzz": fuzz}),
    "killtest": Table(("what was killed", "kills", "runs", "results that differ"), {"killtest": killtest}),
    "loops": Table(("outputs that repeat themselves although the input does not", "number"), {"loops": loops}),
    "alignment": Table(("what", "result"), {"alignment": alignment}),
    "confidence": Table(
        ("model", "calibration error of words", "chrF of all lines", "chrF without the least confident tenth"),
        {"confidence": confidence},
    ),
}

TASKS = {
    "fine-tuned": task_table(
        entities=task("named entities (WNUT17)", "F1"),
        tags=task("parts of speech (UD English EWT)", "accuracy"),
        sentiment=task("sentiment of film reviews", "accuracy"),
        questions=task("type of a question (TREC)", "accuracy"),
        similarity=task("similarity of two sentences (STS-B)", "Pearson"),
        acceptability=task("acceptability of a sentence (CoLA)", "MCC"),
        answers=task("answers in a text (XQuAD)", "EM", "F1"),
    ),
    "from scratch": task_table(
        sentiment_scratch=task("sentiment of film reviews", "accuracy"),
        questions_scratch=task("type of a question (TREC)", "accuracy"),
        tags_scratch=task("parts of speech (UD English EWT)", "accuracy"),
        spelling=task("spelling correction", "exact"),
        similarity_text=task("similarity of two sentences, as a generated number (STS-B)", "alike Pearson"),
    ),
    "language models": task_table(
        summaries_60=task("summaries of dialogues", "ROUGE-1", "ROUGE-2", "ROUGE-L"),
        summaries_0=task("the same, earlier, `--prompt-loss-weight 0`", "ROUGE-1"),
        summaries_20=task("the same, earlier, `--prompt-loss-weight 0.2`", "ROUGE-1"),
        summaries_100=task("the same, earlier, `--prompt-loss-weight 1`", "ROUGE-1"),
        shakespeare=task("characters of tinyshakespeare", "loss"),
        shakespeare_60=task("the same, a larger model", "loss"),
    ),
}

METHODS = {
    "subwords": Table(
        ("tokenizer", "tokens per English word", "tokens per German word", "BLEU"), {"subwords": subwords}
    ),
    "recurrence": Table(("tokens", "Transformer", "LSTM with attention", "ratio of times"), {"recurrence": recurrence}),
    "recurrence bleu": Table(("model", "BLEU"), {"recurrence": recurrence_bleu}),
    "agreement": Table(
        ("model, format", "lines", "equal tokens or labels", "largest difference", "wrong weights refused"),
        {"export_agreement": agreement},
        ("torch", "ctranslate2", "onnxruntime"),
    ),
    "export defaults": Table(
        ("program and calls", "equal to glassformer", "equal to glassformer without its guard"),
        {"export_defaults": export_defaults},
        ("torch", "transformers", "ctranslate2"),
    ),
    "inspection": Table(("what", "result"), {"inspection": inspection}),
    "footprint": Table(("what", "result"), {"footprint": footprint}),
    "wordpiece": Table(("text", "words", "time"), {"wordpiece": wordpiece}),
}
