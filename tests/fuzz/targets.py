"""Functions of bytes that read what strangers write. Each raises an error only if there is a defect.

The first byte of an input chooses the type of the file. What is refused with an error of ours, with what, where and
how to fix it, is right; another error, a crash of the process, a hang or a broken promise is not.
"""

import asyncio
import contextlib
import io
import json
import logging
import shutil
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from email.message import Message
from functools import cache
from typing import Any
from urllib.error import HTTPError

from starlette.requests import Request

from glassformer.config import read_toml
from glassformer.corpora.corpus import read_pairs
from glassformer.corpora.detect import find_task
from glassformer.corpora.doctor.diagnosis import diagnose
from glassformer.corpora.doctor.issues import CHECKS
from glassformer.corpora.doctor.labeled import diagnose_labeled
from glassformer.corpora.doctor.repair import repair_corpus
from glassformer.corpora.labeled import read_labeled
from glassformer.corpora.memory import Memory
from glassformer.corpora.read_options import DETECT
from glassformer.corpora.squad import read_questions
from glassformer.corpora.tagged import read_tagged
from glassformer.corpora.terms import Glossary, matches, protect_pattern
from glassformer.decode_config import DecodeConfig
from glassformer.documents.document import Document
from glassformer.documents.inline import detach, put_back
from glassformer.documents.package import Package
from glassformer.documents.reader import document_of, read_document
from glassformer.documents.spans import TAG
from glassformer.errors import UserError
from glassformer.interop.sentencepiece import marian_tokenizer, read_sentencepiece, sentencepiece_tokenizer
from glassformer.model_config import FAMILIES
from glassformer.serve.documents import TranslateFile
from glassformer.serve.errors import ApiError
from glassformer.serve.huggingface import CALL_PARAMETERS, GenerationParameters, Inference, arguments, texts_in
from glassformer.serve.keys import Keys
from glassformer.serve.libretranslate import Detect, Suggest, Translate
from glassformer.serve.openai_requests import Chat, Completion, Embeddings, checked
from glassformer.serve.requests import parse, read_fields
from glassformer.synthetic.answers import Answers
from glassformer.synthetic.endpoint import answer_of, message_of, retry_after
from glassformer.tasks.question_answering import question_of
from glassformer.tasks.texts import no_op
from glassformer.tokens.tokenizer import SpecialTokens, Tokenizer, TokenizerType, well_formed
from glassformer.train_config import TrainConfig
from tests.fuzz.inputs import FOLDER, chosen, file_of
from tests.fuzz.model_targets import folder, imported, program, weights

Target = Callable[[bytes], None]
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
MAX_ITEMS = 2000
"""Number of items of a file that are read: an input is small, and makes no more."""
LANGUAGES = ("en", "fr")


def read_all(items: Iterable[object]) -> None:
    """Read a few items."""
    for _, _ in zip(items, range(MAX_ITEMS), strict=False):
        pass


def pairs(data: bytes) -> None:
    suffix, data = chosen(data, [".tsv", ".csv", ".jsonl", ".json", ".tmx", ".xlf", ".po", ".tsv.gz", ".zip", ".any"])
    with contextlib.suppress(UserError):
        read_all(read_pairs([file_of(suffix, data)], languages=LANGUAGES, log=no_op))


def two_files(data: bytes) -> None:
    suffix, data = chosen(data, [".txt", ".properties", ".strings", ".arb", ".json", ".xml"])
    first, _, second = data.partition(b"\0")
    one, other = file_of(suffix, first), file_of(f".2{suffix}", second)
    with contextlib.suppress(UserError):
        read_all(read_pairs([one], [other], languages=LANGUAGES, log=no_op))


def labeled(data: bytes) -> None:
    suffix, data = chosen(data, [".tsv", ".csv", ".jsonl", ".json", ".txt"])
    path = file_of(suffix, data)
    for keys in ((), ("text=a", "label=b"), ("text=1", "label=2")):
        with contextlib.suppress(UserError):
            read_all(read_labeled([path], keys, skip_bad=bool(keys), log=no_op))


def doctor(data: bytes) -> None:
    """What is inferred, diagnosed and repaired. After a repair, nothing is left to repair."""
    suffix, data = chosen(data, [".tsv", ".txt", ".csv", ".jsonl", ".tmx", ".po", ".json", ".conll", ".tsv.gz"])
    path, out = file_of(suffix, data), FOLDER / "repaired"
    shutil.rmtree(out, ignore_errors=True)
    with contextlib.suppress(UserError):
        find_task([path])
    with contextlib.suppress(UserError):
        diagnose_labeled([path], DETECT, held_out={})
    with contextlib.suppress(UserError):
        json.dumps(diagnose([path], languages=LANGUAGES).to_json())
        (repaired, *_) = repair_corpus([path], [], out, languages=LANGUAGES).files
        found = diagnose([repaired], languages=LANGUAGES).counts
        assert not {kind for kind in found if CHECKS[kind].action in ("drop", "repair")}, found


def tagged(data: bytes) -> None:
    suffix, data = chosen(data, [".conll", ".conllu", ".jsonl"])
    with contextlib.suppress(UserError):
        read_all(read_tagged([file_of(suffix, data)]))


def questions(data: bytes) -> None:
    with contextlib.suppress(UserError):
        read_all(read_questions([file_of(".json", data)]))
    with contextlib.suppress(UserError):
        question_of(data.decode("utf-8", "replace"), 0)


def glossary(data: bytes) -> None:
    suffix, data = chosen(data, [".tsv", ".csv", ".tbx"])
    with contextlib.suppress(UserError):
        found = Glossary.read(file_of(suffix, data), LANGUAGES)
        list(found.find("the engine and a filter, the Engine"))


def protection(data: bytes) -> None:
    patterns = data.decode("utf-8", "replace").split("\n")
    with contextlib.suppress(UserError):
        pattern = protect_pattern(patterns)
        for text in ("a" * 40 + "!? see https://a.b/c?d=1 {x} <b>12</b>", patterns[0] * 9):
            list(matches(pattern, text) if pattern else ())


def memory(data: bytes) -> None:
    first, _, second = data.decode("utf-8", "replace").partition("\0")
    found = Memory((line, line.upper()) for line in first.split("\n"))
    for text in second.split("\n")[:20]:
        exact, similar = found.exact(text), found.similar(text, 0.3)
        assert exact is None or exact.similarity == 1
        assert similar is None or 0.3 <= similar.similarity <= 1


TEXTS = [".txt", ".srt", ".html", ".po", ".xlf", ".tmx", ".md", ".properties", ".strings", ".xml", ".json", ".arb"]


def document(data: bytes) -> None:
    suffix, data = chosen(data, TEXTS)
    check_document(f"input{suffix}", data)


def check_document(name: str, data: bytes) -> None:
    """Read a document and write it, also as its record, which is sent between processes."""
    try:
        found = read_document(name, data, LANGUAGES)
    except UserError:
        return
    if isinstance(found, Package):
        found = replace(found, data=data)
    sent = document_of(json.dumps(found.to_record()).encode(), data)
    sources = [segment.text for segment in found.segments]
    assert sources == [segment.text for segment in sent.segments]
    with contextlib.suppress(UserError):  # a character that its encoding does not have
        same = found.render(sources)
        assert sent.render(sources) == same
        if isinstance(found, Document) and not found.entries:
            assert same == data
        every = sent.only("all")
        every.render([f"é <{segment.text[::-1]}> &" for segment in every.segments], languages=LANGUAGES)
        every.render(["" for segment in every.segments], languages=LANGUAGES)


def inline(data: bytes) -> None:
    """Tags that are taken out and put back: each is there once, and pairs are nested as before."""
    source, _, output = data[1:].decode("utf-8", "replace").partition("\0")
    spans = [match.span() for match in TAG.finditer(source)][:100]
    found = detach(source, spans)
    output = TAG.sub("", output)
    n_source, n_target = len(found.core.split()), len(output.split())
    links = [(i % n_source, i * data[0] % n_target) for i in range(min(30, n_source))] if n_target else []
    written = put_back(found, output, links)
    tags = sorted(source[a:b] for a, b in spans)
    assert sorted(match[0] for match in TAG.finditer(written)) == tags or "<" in output or "<" in TAG.sub("", source)


PARTS = {
    ".docx": "word/document.xml", ".pptx": "ppt/slides/slide1.xml", ".xlsx": "xl/sharedStrings.xml",
    ".odt": "content.xml", ".ods": "content.xml", ".epub": "a.xhtml",
}  # fmt: skip


def part(data: bytes) -> None:
    suffix, data = chosen(data, list(PARTS))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in OTHER_PARTS.get(suffix, {}).items():
            archive.writestr(name, content)
        archive.writestr(PARTS[suffix], data)
    check_document(f"input{suffix}", out.getvalue())


CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="a.opf"/>'
    "</rootfiles></container>"
)
OPF = (
    '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
    '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine>'
    "</package>"
)
OTHER_PARTS = {
    ".docx": {"[Content_Types].xml": "<Types/>"},
    ".epub": {"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER, "a.opf": OPF},
}


def archive(data: bytes) -> None:
    suffix, data = chosen(data, list(PARTS))
    check_document(f"input{suffix}", data)


def tokenizer(data: bytes) -> None:
    with contextlib.suppress(UserError):
        found = Tokenizer.from_json(data.decode("utf-8", "replace"), SpecialTokens())
        found.decode(found.encode("The cat. né 🙂"))


def sentencepiece(data: bytes) -> None:
    with contextlib.suppress(UserError):
        model = read_sentencepiece(file_of(".model", data))
        vocabulary = {text: i for i, (text, *_) in enumerate(model.entries)}
        for make in (lambda: sentencepiece_tokenizer(model, 2), lambda: marian_tokenizer(model, vocabulary)):
            with contextlib.suppress(UserError):
                make().encode("The cat. né 🙂")


@cache
def tokenizers() -> list[Tokenizer]:
    texts = ["The cat sat on the mat.", "né 🙂 naïve 12 dogs", "a b c d e f g h"]
    kinds: tuple[TokenizerType, ...] = ("bpe", "char", "byte", "unigram", "wordpiece", "word")
    return [Tokenizer.train(texts, kind=kind, vocab_size=400) for kind in kinds]


def text(data: bytes) -> None:
    """A tokenizer that knows all bytes gives any text back."""
    try:
        line = well_formed(data[1:].decode("utf-16-le", "surrogatepass") if len(data) % 2 else data.decode())
    except UnicodeDecodeError:
        return
    for each in tokenizers():
        ids, spans = each.offsets(line)
        assert ids == each.encode(line)
        assert all(0 <= start <= end <= len(line) for start, end in spans)
        if each.unk_id is None and each.special_tokens.mask_token is None:
            assert each.decode(ids) == line
            stable = each.decode_stable_prefix(ids[: len(ids) // 2])
            assert line.startswith(stable)


def answer(data: bytes) -> None:
    """What an endpoint answers to a teacher, and the file of answers."""
    status, data = chosen(data, ["200", "503", "kept"])
    if status == "200":
        with contextlib.suppress(UserError):
            found = answer_of(data, "The cat", "http://a.b")
            assert all(isinstance(text, str) for text in found.texts)
        return
    if status == "kept":
        with contextlib.suppress(UserError):
            Answers(file_of(".jsonl", data), "teacher").file.close()
        return
    wait, _, body = data.partition(b"\0")
    headers = Message()
    headers["Retry-After"] = " ".join(wait.decode("latin-1").split())
    error = HTTPError("http://a.b", 503, "Busy", headers, io.BytesIO(body))
    assert isinstance(message_of(error), str)
    seconds = retry_after(error)
    assert seconds is None or seconds >= 0


MODELS: list[Any] = [
    Translate, TranslateFile, Detect, Suggest, Chat, Completion, Embeddings, Inference, GenerationParameters
]  # fmt: skip
TYPES = [
    "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "text/plain", "\xff"
]  # fmt: skip


def http(data: bytes) -> None:
    kind, body = chosen(data, TYPES)
    query, _, body = body.partition(b"\0") if kind == "" else (b"", b"", body)
    headers = [(b"content-type", kind.encode("latin-1"))] if kind else []
    sent = False

    async def receive() -> dict[str, object]:
        nonlocal sent
        assert not sent
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": query}
    try:
        fields = asyncio.run(read_fields(Request(scope, receive)))
    except ApiError:
        return
    for model in MODELS:
        with contextlib.suppress(ApiError, UserError):
            parsed = parse(model, fields)
            if isinstance(parsed, GenerationParameters):
                parsed.options()
            if isinstance(parsed, Inference):
                texts_in(parsed.inputs)
                for pipeline in CALL_PARAMETERS:
                    with contextlib.suppress(ApiError):
                        arguments(pipeline, parsed.inputs, parsed.parameters)
        with contextlib.suppress(ApiError):
            checked(model, fields)


def configuration(data: bytes) -> None:
    kind, data = chosen(data, ["toml", "decode", "train", *FAMILIES, "keys"])
    with contextlib.suppress(UserError):
        if kind == "keys":
            Keys(file_of(".toml", data)).find("gf-x")
            return
        if kind == "toml":
            TrainConfig.resolve(read_toml(file_of(".toml", data)))
            return
        try:
            record = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(record, dict):
            model = {"decode": DecodeConfig, "train": TrainConfig}.get(kind) or FAMILIES[kind].config_class
            model.resolve(record)


MODEL_TARGETS: dict[str, Target] = {target.__name__: target for target in (program, weights, folder, imported)}

TARGETS: dict[str, Target] = {
    target.__name__: target
    for target in (
        pairs, two_files, labeled, doctor, tagged, questions, glossary, protection, memory, document, part, archive,
        inline, tokenizer, sentencepiece, text, http, answer, configuration,
    )
} | MODEL_TARGETS  # fmt: skip
