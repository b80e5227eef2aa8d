"""Files of translators, read and written again: what stays the same, and what other programs say of them.

- Identity: each file is "translated" by its own texts. Outside the targets no byte may change; a file of one language
  must be the same file. Of catalogues, what `msgfmt -c` says may not change. The Translate Toolkit must read the same
  units as before, if it could read the file, with targets; OmegaT the same segments, of Office as
  well; of XLIFF, in which it reads what the targets are, at least as many.
- Office: documents made by python-docx, python-pptx and openpyxl, and by LibreOffice from these. Each is translated
  into capitals: the text that LibreOffice exports must then be the capitals of what it exported before, so that no text
  that a reader sees was left out, and none was lost. A second part checks bytes.
- Memory: entries of a translation memory of 500 MB, read for training: bytes per second and memory.

The samples are those of OmegaT and of the Translate Toolkit, and of the documentation of Python (folders `tm-samples`,
`python-docs-es`, `python-docs-fr`). Files that are broken on purpose are refused, and counted apart.

usage: python -m benchmarks.documents DATA [PART ...]

Parts: identity, memory, office. Default: all.

Needs gettext; for what it compares, LibreOffice, poppler-utils and omegat (packages of Debian), and translate-toolkit.
"""

import gzip
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import docx
import openpyxl
import pptx
from openpyxl.comments import Comment

from benchmarks.machine import save
from glassformer.documents.document import Document, Entry
from glassformer.documents.reader import read_document
from glassformer.documents.tmx import TMX_END, tmx_entry, tmx_start
from glassformer.errors import CorpusError

MEMORY_BYTES = 500_000_000
SUFFIXES = {".tmx": "TMX", ".xlf": "XLIFF", ".xliff": "XLIFF", ".po": "PO", ".properties": "properties"}


def kept(document):
    """The file with all that it has kept."""
    pieces = [piece.kept if isinstance(piece, Entry) else piece for piece in document.pieces]
    return Document(pieces, document.escaping, document.encoding).render([])


def outside(document, texts):
    """The parts of a rendered file that are not targets, and the file."""
    rendered = document.render(texts)
    inner = [piece for piece in document.pieces if isinstance(piece, str)]
    return inner, rendered.decode(document.encoding)


def is_unchanged(document, data):
    """Whether a file keeps its bytes outside of its targets, and its texts."""
    if kept(document) != data:
        return False
    parts, text = outside(document, [segment.text for segment in document.segments])
    position = 0
    for part in parts:  # in their order
        position = text.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


def is_refused(data):
    """Whether msgfmt finds an error in a catalogue."""
    return subprocess.run(["msgfmt", "-c", "-o", "/dev/null", "-"], input=data, capture_output=True).returncode != 0


def units(name, content, folder):
    """The units of a file as the Translate Toolkit reads them: id, source and target. None: it does not read it."""
    from translate.storage import factory

    path = folder / f"file{Path(name).suffix}"
    path.write_bytes(content)
    try:
        return [(unit.getid(), str(unit.source), unit.target) for unit in factory.getobject(str(path)).units]
    except Exception:  # it has no error of its own
        return None


def has_same_units(name, before, after, folder):
    """Whether the Translate Toolkit reads the units of a file as before, with targets where there were some."""
    old, new = units(name, before, folder), units(name, after, folder)
    if old is None:
        return True
    same = [x[:2] == y[:2] and (not x[2] or bool(y[2])) for x, y in zip(old, new or [], strict=False)]
    return new is not None and len(old) == len(new) and all(same)


OMEGAT_PROJECT = """<?xml version="1.0" encoding="UTF-8"?>
<omegat><project version="1.0"><source_dir>__DEFAULT__</source_dir><source_dir_excludes/>
<target_dir>__DEFAULT__</target_dir><tm_dir>__DEFAULT__</tm_dir><glossary_dir>__DEFAULT__</glossary_dir>
<glossary_file>__DEFAULT__</glossary_file><dictionary_dir>__DEFAULT__</dictionary_dir>
<source_lang>en</source_lang><target_lang>fr</target_lang><sentence_seg>false</sentence_seg>
<support_default_translations>true</support_default_translations><remove_tags>false</remove_tags></project></omegat>
"""


def omegat_segments(files, folder):
    """The source texts that OmegaT reads of some files together; or the name of one that it cannot read."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("source", "target", "tm", "glossary", "dictionary", "omegat"):
        (folder / name).mkdir(parents=True)
    (folder / "omegat.project").write_text(OMEGAT_PROJECT)
    for name, content in files.items():
        (folder / "source" / name).write_bytes(content)
    options = ["--mode=console-createpseudotranslatetmx", "--pseudotranslatetype=equal"]
    options += [f"--pseudotranslatetmx={folder}/all.tmx", f"--config-dir={folder}/config", str(folder)]
    done = subprocess.run(["omegat", *options], capture_output=True, text=True)
    if bad := re.search(r"java\.io\.IOException: \S*/source/(\S+)", done.stdout):
        return bad[1]
    texts = re.findall(r"<seg>(.*?)</seg>", (folder / "all.tmx").read_text(encoding="utf-8"), re.DOTALL)
    return sorted(texts[::2])  # each has a translation, which is equal


def same_segments(files, folder):
    """How many files OmegaT reads as before; also those that it could not read before.

    Args:
        files: contents before and after, by name.
    """
    files, n_bad = dict(files), 0
    while files and isinstance(before := omegat_segments({name: x for name, (x, _) in files.items()}, folder), str):
        print("OmegaT cannot read:", before)
        del files[before]
        n_bad += 1
    if not files:
        return n_bad
    after = omegat_segments({name: x for name, (_, x) in files.items()}, folder)
    has_targets = any(name.endswith((".xlf", ".xliff")) for name in files)
    if after == before or (has_targets and isinstance(after, list) and len(after) >= len(before)):
        return len(files) + n_bad
    if len(files) == 1:
        print("OmegaT reads other segments:", *files)
        return n_bad
    names = list(files)
    halves = names[: len(names) // 2], names[len(names) // 2 :]
    return n_bad + sum(same_segments({name: files[name] for name in half}, folder) for half in halves)


def count_omegat(results, rendered, folder):
    """Add to the results how many files of each format OmegaT reads as before."""
    if not shutil.which("omegat"):
        return
    for kind, files in rendered.items():
        results[kind]["omegat"] = same_segments(files, folder)
        print(kind, results[kind], flush=True)


def samples(data):
    """Names and bytes of all sample files."""
    for path in sorted((data / "tm-samples").rglob("*")):
        if path.suffix in SUFFIXES:
            yield str(path), path.read_bytes()
    for language in ("es", "fr"):
        (archive,) = (data / f"python-docs-{language}").glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name.endswith(".po"):
                    yield f"{archive}/{member.name}", tar.extractfile(member).read()


def identity(data, folder):
    results = {}
    has_toolkit = find_spec("translate") is not None
    new = {"files": 0, "refused": 0, "same": 0} | ({"toolkit": 0} if has_toolkit else {})
    rendered = {}
    for name, content in samples(data):
        row = results.setdefault(SUFFIXES[Path(name).suffix], dict(new))
        row["files"] += 1
        try:
            document = read_document(name, content, ("", "fr" if name.endswith(".tmx") else ""))
        except CorpusError as error:
            row["refused"] += 1
            print("refused:", str(error).split("\n")[0])
            continue
        row["same"] += is_unchanged(document, content)
        copy = document.render([segment.text for segment in document.segments])
        suffix = Path(name).suffix
        if suffix != ".tmx":  # no source of OmegaT
            rendered.setdefault(SUFFIXES[suffix], {})[f"{row['files']:04}{suffix}"] = content, copy
        if suffix == ".po":
            row["accepted"] = row.get("accepted", 0) + (is_refused(content) or not is_refused(copy))
        if has_toolkit:
            is_same = has_same_units(name, content, copy, folder)
            row["toolkit"] += is_same
            if not is_same:
                print("Translate Toolkit:", name)
    count_omegat(results, rendered, folder / "omegat")
    return results


def make_office(folder):
    """Documents with what such files have."""
    for number in range(5):
        document = docx.Document()
        document.add_heading(f"Report number {number}", 1)
        paragraph = document.add_paragraph("This is ")
        paragraph.add_run("bold").bold = True
        paragraph.add_run(" and ")
        paragraph.add_run("italic text").italic = True
        paragraph.add_run(" in a sentence. A second one follows.")
        document.add_paragraph("A first item & more", style="List Bullet")
        document.add_paragraph("Left\tright\nnew line")
        table = document.add_table(2, 2)
        for i in range(4):
            table.cell(i // 2, i % 2).text = f"Cell of the table, {i + number}"
        document.sections[0].header.paragraphs[0].text = "Header of the pages"
        document.sections[0].footer.paragraphs[0].text = "Footer of the pages"
        document.save(folder / f"text-{number}.docx")
        slides = pptx.Presentation()
        for layout in (0, 1, 5):
            slide = slides.slides.add_slide(slides.slide_layouts[layout])
            for shape in slide.placeholders:
                shape.text_frame.text = f"Words on slide {layout}"
                run = shape.text_frame.paragraphs[0].add_run()
                run.text, run.font.bold = " in bold", True
            slide.notes_slide.notes_text_frame.text = "Notes for the speaker"
        slides.save(folder / f"slides-{number}.pptx")
        book = openpyxl.Workbook()
        sheet = book.active
        for row in range(5):
            sheet.append([f"Name of thing {row}. It is good.", row * number, "Another cell <x>"])
        sheet["E1"] = "=SUM(B1:B5)"
        sheet["A1"].comment = Comment("A comment on it", "author")
        book.save(folder / f"table-{number}.xlsx")


def convert(path, to, out):
    """A file in another format, by LibreOffice."""
    subprocess.run(
        ["soffice", "--headless", "--convert-to", to, "--outdir", str(out), str(path)], capture_output=True, check=True
    )
    return out / f"{path.stem}.{to.partition(':')[0]}"


EXPORTS = {"docx": "txt:Text", "odt": "txt:Text", "xlsx": "csv", "ods": "csv", "pptx": "pdf", "odp": "pdf"}


def exported(path, folder):
    """The text that LibreOffice exports; None if it cannot."""
    made = convert(path, EXPORTS[path.suffix[1:]], folder)
    if made.suffix == ".pdf":
        done = subprocess.run(["pdftotext", str(made), "-"], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None
    return made.read_text(encoding="utf-8", errors="replace")


def office(folder):
    make_office(folder)
    for first, second in (("docx", "odt"), ("pptx", "odp"), ("xlsx", "ods")):
        (folder / first).mkdir()
        for path in sorted(folder.glob(f"*.{first}")):
            convert(convert(path, second, folder), first, folder / first)
    results, rendered = {}, {}
    for path in sorted(folder.rglob("*.*")):
        if path.suffix[1:] not in EXPORTS:
            continue
        row = results.setdefault(path.suffix[1:], {"files": 0, "same": 0, "opened": 0, "same text": 0})
        row["files"] += 1
        data = path.read_bytes()
        document = read_document(path.name, data)
        document = type(document)(document.parts, document.notes, data)
        copy = folder / "copy.zip"
        copy.write_bytes(document.render([segment.text for segment in document.segments]))
        rendered.setdefault(path.suffix[1:], {})[f"{row['files']:04}{path.suffix}"] = data, copy.read_bytes()
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy) as new:
            row["same"] += all(old.read(name) == new.read(name) for name in old.namelist())
        capitals = folder / "out" / path.name
        capitals.parent.mkdir(exist_ok=True)
        capitals.write_bytes(document.render([segment.text.upper() for segment in document.segments]))
        before, after = exported(path, folder / "before"), exported(capitals, folder / "after")
        row["opened"] += after is not None
        same = before is not None and after is not None and after.split() == before.upper().split()
        row["same text"] += same
        if not same:
            print("differs:", path, set((before or "").upper().split()) ^ set((after or "").split()))
    count_omegat(results, rendered, folder / "omegat")
    return results


def memory(data, folder):
    path = folder / "memory.tmx"
    with gzip.open(data / "python-docs-es/python-docs-es-pairs.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    entries = "\n".join(tmx_entry(row["en"], row["es"], ("en", "es")) for row in rows) + "\n"
    with path.open("w", encoding="utf-8") as file:
        file.write(tmx_start("en"))
        while file.tell() < MEMORY_BYTES:
            file.write(entries)
        file.write(TMX_END)
    del rows, entries
    code = (
        "import re, sys, time\n"
        "from pathlib import Path\n"
        "from glassformer.corpora.corpus import read_pairs\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])\n"
        "Path('/proc/self/clear_refs').write_text('5')\n"  # the peak begins here
        "before, start = peak(), time.perf_counter()\n"
        "n = sum(1 for _ in read_pairs([Path(sys.argv[1])]))\n"
        "print(n, time.perf_counter() - start, (peak() - before) / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    n, seconds, mb = map(float, done.stdout.split())
    size = path.stat().st_size / 1e6
    return {"MB": round(size), "pairs": int(n), "MB/s": round(size / seconds, 1), "memory MB": round(mb, 1)}


def main():
    data, parts = Path(sys.argv[1]), sys.argv[2:] or ["identity", "memory", "office"]
    record = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "identity" in parts:
            record["identity"] = identity(data, folder)
            print(json.dumps(record))
        if "memory" in parts:
            record["memory"] = memory(data, folder)
            print(record["memory"])
        if "office" in parts and shutil.which("soffice"):
            (folder / "office").mkdir()
            record["office"] = office(folder / "office")
            print(record["office"])
    save("documents", record, " ".join(["python -m benchmarks.documents DATA", *sys.argv[2:]]))


if __name__ == "__main__":
    main()
