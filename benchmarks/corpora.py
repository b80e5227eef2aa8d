"""Conversion of public data sets to files for `glassformer train`.

Data sets without a dev set are split by a hash of the text, with about 10% of the examples held out.
"""

import csv
import gzip
import hashlib
import json


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def part_of(text, n_parts):
    """Part of a text, by a hash of it."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") % n_parts


def is_held_out(text, n_parts=10):
    return part_of(text, n_parts) == 0


def write(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def split(folder, records, key):
    write(folder / "train.jsonl", [record for record in records if not is_held_out(record[key])])
    write(folder / "dev.jsonl", [record for record in records if is_held_out(record[key])])
    return [folder / "train.jsonl"], [folder / "dev.jsonl"]


def sentiment(data, folder):
    rows = (line.split("\t", 1) for line in lines(data / "sentence-polarity/sentence_polarity.tsv.gz"))
    return split(folder, [{"text": text, "label": label} for label, text in rows], "text")


def questions(data, folder):
    rows = (line.split("\t") for line in lines(data / "trec-questions/trec_qc.train.tsv.gz"))
    return split(folder, [{"text": text, "label": label} for label, _, text in rows], "text")


def acceptability(data, folder):
    for part, name in (("train", "raw.in_domain_train"), ("dev", "raw.in_domain_dev")):
        rows = (line.split("\t") for line in lines(data / f"cola/{name}.tsv.gz"))
        write(folder / f"{part}.jsonl", [{"text": row[3], "label": row[1]} for row in rows])
    return [folder / "train.jsonl"], [folder / "dev.jsonl"]


def similarity(data, folder):
    for part in ("train", "dev"):
        rows = csv.reader(lines(data / f"stsb/stsb-en-{part}.csv.gz"))
        write(folder / f"{part}.jsonl", [{"text": a, "text2": b, "score": float(s)} for a, b, s in rows])
    return [folder / "train.jsonl"], [folder / "dev.jsonl"]


def alike(data, folder):
    """Semantic similarity as text to text: pairs of texts as input, "0.0" to "5.0" in steps of 0.2 as output."""
    for path in (path for part in similarity(data, folder) for path in part):
        rows = map(json.loads, path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
        records = (
            {"task": "alike", "text": r["text"], "text2": r["text2"], "label": f"{round(5 * r['score']) / 5:.1f}"}
            for r in rows
        )
        write(path, list(records))
    return [folder / "train.jsonl"], [folder / "dev.jsonl"]


def tags(data, folder):
    return tuple([data / f"ud-english-ewt/en_ewt-ud-{part}.conllu.gz"] for part in ("train", "dev"))


def entities(data, folder):
    return [data / "wnut17/wnut17train.conll.gz"], [data / "wnut17/emerging.dev.conll.gz"]


def answers(data, folder):
    with gzip.open(data / "xquad/xquad.en.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["data"]
    parts = {"train": [], "dev": []}
    for article in articles:
        for paragraph in article["paragraphs"]:
            part = "dev" if is_held_out(paragraph["context"], 5) else "train"
            parts[part].append({"title": article["title"], "paragraphs": [paragraph]})
    folder.mkdir(parents=True, exist_ok=True)
    for part, paragraphs in parts.items():
        (folder / f"{part}.json").write_text(json.dumps({"version": "1.1", "data": paragraphs}), encoding="utf-8")
    return [folder / "train.json"], [folder / "dev.json"]


def shakespeare(data, folder):
    text = gzip.open(data / "tinyshakespeare/input.txt.gz", "rt", encoding="utf-8").read()
    cut = len(text) * 9 // 10
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.txt").write_text(text[:cut], encoding="utf-8")
    (folder / "dev.txt").write_text(text[cut:], encoding="utf-8")
    return [folder / "train.txt"], [folder / "dev.txt"]


def summaries(data, folder):
    for part in ("train", "dev"):
        rows = map(json.loads, lines(data / f"dialogsum/dialogsum.{part}.jsonl.gz"))
        write(folder / f"{part}.jsonl", [{"src": row["dialogue"], "tgt": row["summary"]} for row in rows])
    return [folder / "train.jsonl"], [folder / "dev.jsonl"]


def spelling(data, folder):
    rows = (line.split("->", 1) for line in lines(data / "spelling/codespell.dictionary.txt.gz"))
    split(folder, [{"src": a, "tgt": b.split(",")[0].strip()} for a, b in rows], "src")
    few = (folder / "dev.jsonl").read_text(encoding="utf-8").split("\n")[:1000]
    (folder / "few.jsonl").write_text("\n".join(few) + "\n", encoding="utf-8")  # the dev set during training
    return [folder / "train.jsonl"], [folder / "few.jsonl"], [folder / "dev.jsonl"]
