"""Small inputs for each target, which are changed at random."""

import gzip
import json
import zipfile
from functools import cache
from io import BytesIO

from glassformer.model_config import FAMILIES
from glassformer.tokens.tokenizer import Tokenizer
from tests.fuzz.targets import MODEL_TARGETS, OTHER_PARTS, PARTS, TEXTS

TSV = b"The cat sleeps.\tLe chat dort.\nThe dog eats.\tLe chien mange.\n"
CSV = b'text,label\n"a, b",good\n"c ""d""\ne",bad\n'
JSONL = b'{"text": "the film", "label": "good"}\n{"label": "bad", "text": "a \\u00e9"}\n'
TABLE = b"text\tlabel\na, b\tgood\nc\tbad\n"
PAIRS_CSV = b'src,tgt\n"a, b",good\n"c ""d""\ne",bad\n'
PAIRS_JSONL = b'{"src": "a", "tgt": "b"}\n{"src": "c", "tgt": "\\u00e9"}\n'
PAIRS_JSON = b'{"translation": {"en": "a", "fr": "b"}}\n{"translation": {"fr": "c", "en": "d"}}\n'
SQUAD = json.dumps(
    {
        "data": [
            {
                "paragraphs": [
                    {
                        "context": "Ann lives in Oslo.",
                        "qas": [
                            {"id": "1", "question": "Where?", "answers": [{"text": "Oslo", "answer_start": 13}]},
                            {"id": "2", "question": "Who?", "answers": [], "is_impossible": True},
                        ],
                    }
                ]
            }
        ]
    }
).encode()
TMX = b"""<?xml version="1.0"?><!DOCTYPE tmx><tmx version="1.4"><header srclang="en" datatype="plaintext"/><body>
<tu><tuv xml:lang="en"><seg>The <bpt i="1">&lt;b></bpt>cat<ept i="1">&lt;/b></ept></seg></tuv>
<tuv xml:lang="fr"><seg>Le chat</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>A dog<ph x="1"/></seg></tuv></tu></body></tmx>"""
XLIFF = b"""<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"
target-language="fr" original="a" datatype="html"><body><trans-unit id="1"><source>The <g id="1">cat</g><x id="2"/>
</source><target state="needs-translation"></target></trans-unit></body></file></xliff>"""
XLIFF2 = b"""<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="fr"><file id="f">
<unit id="1"><segment state="initial"><source>The <pc id="1">cat</pc><ph id="2"/></source></segment></unit></file>
</xliff>"""
PO = b"""msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: fr\\nPlural-Forms: nplurals=2; plural=(n > 1);\\n"

#, fuzzy
#| msgid "Opens"
msgctxt "menu"
msgid "Open %s"
msgstr "Ouvrir %s"

msgid "a file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#~ msgid "old"
#~ msgstr "vieux"
"""
HTML = b"""<!DOCTYPE html><html lang="en"><head><title>A cat</title><script>x</script></head><body><p class=a>The
<b>black</b> cat &amp; <img alt="a dog"><code>x = 1</code></p><p translate="no">no</p></body></html>"""
MARKDOWN = b"""---
title: A cat
---
# The cat

A *dog* and [a link](https://a.b "title") `code`.

- one
  1. two

> three

| a | b |
|---|---|
| c | d |

```
code
```
"""
STRINGS = b'/* a */\n"open" = "Open \\"it\\"";\n"k" = "v";\n'
PROPERTIES = b"# c\na.b = The \\u0063at\nd: e \\\n  f\n"
ANDROID = b"""<resources><string name="a">The <b>cat</b> %1$s</string><plurals name="p"><item quantity="one">a</item>
</plurals><string-array name="x"><item>b</item></string-array></resources>"""
JSON = b'{"a": {"b": "The cat {n}", "c": ["d"]}, "@a": {"description": "x"}, "@@locale": "en"}'
SRT = b"1\n00:00:01,000 --> 00:00:02,000\nThe cat\n<i>sat</i>\n\n2\n00:00:03,000 --> 00:00:04,000\nA dog\n"
DOCUMENTS = {
    ".txt": b"The cat.\n\nA dog.\n", ".srt": SRT, ".html": HTML, ".po": PO, ".xlf": XLIFF, ".tmx": TMX, ".md": MARKDOWN,
    ".properties": PROPERTIES, ".strings": STRINGS, ".xml": ANDROID, ".json": JSON, ".arb": JSON,
}  # fmt: skip
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"
OPEN = f"""<office:document-content xmlns:office="{OFFICE}office:1.0" xmlns:text="{OFFICE}text:1.0"
xmlns:table="{OFFICE}table:1.0"><office:body><office:text><text:p>The <text:span>cat</text:span><text:s/></text:p>
<table:table><table:table-row><table:table-cell office:value-type="string"><text:p>A dog</text:p></table:table-cell>
</table:table-row></table:table></office:text></office:body></office:document-content>""".encode()
XML = {
    ".docx": f"""<w:document xmlns:w="{W}"><w:body><w:p><w:pPr/><w:r><w:rPr><w:b/></w:rPr><w:t>The </w:t></w:r><w:r>
<w:t xml:space="preserve">cat</w:t><w:tab/></w:r><w:fldSimple w:instr="PAGE"><w:r><w:t>1</w:t></w:r></w:fldSimple>
</w:p></w:body></w:document>""".encode(),
    ".pptx": f"""<p:sld xmlns:p="p" xmlns:a="{A}"><a:p><a:r><a:rPr b="1"/><a:t>The cat</a:t></a:r><a:br/></a:p></p:sld>
""".encode(),
    ".xlsx": f"""<sst xmlns="{S}"><si><t>The cat</t></si><si><r><rPr><b/></rPr><t>a</t></r><r><t>b</t></r></si></sst>
""".encode(),
    ".odt": OPEN,
    ".ods": OPEN,
    ".epub": HTML.replace(b"<!DOCTYPE html>", b"").replace(b" class=a", b"").replace(b'dog">', b'dog"/>'),
}  # fmt: skip


def packed(files: dict[str, bytes | str]) -> bytes:
    """An archive."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def field(number: int, value: bytes | int) -> bytes:
    """A field of a protobuf message."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


PIECES = [("<unk>", 2), ("</s>", 3), ("<pad>", 1), ("\u2581the", 1), ("c", 1), ("at", 1)]
SENTENCEPIECE = b"".join(
    field(1, field(1, text.encode()) + b"\x15\0\0\x80\xbf" + field(3, type_)) for text, type_ in PIECES
) + field(2, field(3, 1)) + field(3, field(1, b"identity") + field(3, 1))  # fmt: skip


def typed(names: list[str], contents: dict[str, bytes]) -> list[bytes]:
    """Inputs whose first byte chooses a type."""
    return [bytes([names.index(name)]) + content for name, content in contents.items()]


def seeds_of(name: str) -> list[bytes]:
    """The seeds of a target. Those of models, which need PyTorch, are made only for these targets."""
    if name in MODEL_TARGETS:
        from tests.fuzz.model_seeds import model_seeds

        return model_seeds()[name]
    return text_seeds()[name]


@cache
def text_seeds() -> dict[str, list[bytes]]:
    """The seeds of the other targets."""
    tokenizer = Tokenizer.train(["a cat", "the cat"], kind="char").to_json()
    request = {
        "q": ["The cat", "a"], "source": "en", "target": "fr", "format": "html", "model": "m", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}]}], "prompt": "a", "max_tokens": 3,
        "temperature": 0.5, "stop": ["a"], "input": ["a"], "inputs": ["a", {"text": "b", "text_pair": "c"}],
        "parameters": {"top_k": 3}, "s": "a", "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    multipart = (
        b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nThe cat\r\n--x\r\nContent-Disposition: form-data; '
        b'name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\na\r\n--x--\r\n'
    )
    toml = b'src = ["a.en"]\nout = "x"\nlr = 1e-3\nsteps = 10\nlanguages = ["en", "fr"]\nweights = [2.0]\n'
    options = {"beam": 4, "length_penalty": 1.0, "protect": ["urls"], "temperature": 0.7, "seed": 1, "confidence": True}
    model = {"d_model": 64, "vocab_size": 300, "max_len": 64, "dropout": 0.1}
    training = {"src": ["a.en"], "out": "x", "task": "translation", "lr": 0.001, "steps": 10, "weights": [1.0]}
    pairs = [
        TSV, PAIRS_CSV, PAIRS_JSONL, PAIRS_JSON, TMX, XLIFF, PO, gzip.compress(TSV, mtime=0),
        packed({"a.tmx": TMX, "b/c.po": PO}), TSV,
    ]  # fmt: skip
    return {
        "pairs": [bytes([i]) + content for i, content in enumerate(pairs)],
        "two_files": [
            bytes([i]) + content + b"\0" + content
            for i, content in enumerate([TSV, PROPERTIES, STRINGS, JSON, STRINGS, ANDROID])
        ],
        "labeled": [bytes([i]) + content for i, content in enumerate([TABLE, CSV, JSONL, JSONL, CSV])],
        "doctor": [
            bytes([i]) + content
            for i, content in enumerate([TSV, TSV, PAIRS_CSV, PAIRS_JSONL, TMX, PO, SQUAD, b"a\tB\nb\tO\n\nc\tO\n"])
        ] + [b"\0The  cat sleeps .\tLe chat\xc2\xa0dort&#39;s\x07.\nThe cat.\tThe cat.\nThe cat.\tThe cat.\n\tx\n"],
        "tagged": [
            b"\0the\tO\nfilm\tB-X\n\nwas\tO\n",
            b"\x011\tthe\tthe\tDET\t_\t_\t_\t_\t_\t_\n1-2\ta" + b"\t_" * 8 + b"\n\n",
            b'\x02{"words": ["a"], "tags": ["B"]}\n',
        ],
        "questions": [SQUAD, b'{"question": "Who?", "context": "Ann."}', b"Who?\tAnn."],
        "glossary": [
            b"\0# c\ncat|cats\tchat|chats\n", b"\x01en,fr\ncat,chat\n",
            b'\x02<martif type="TBX"><text><body><termEntry><langSet xml:lang="en"><tig><term>cat</term></tig>'
            b'</langSet><langSet xml:lang="fr"><tig><term>chat</term></tig></langSet></termEntry></body></text>'
            b"</martif>",
        ],
        "protection": [b"urls\ntags\nnumbers", rb"re:(\w+)-\d{1,3}[a-z]+?", rb"re:(?i:abc)|(?<=a)b(?=c)", b"re:a*b?"],
        "memory": [b"The cat sat.\nA dog ate.\0The cat sat\nA cat ate it\n\n"],
        "document": typed(TEXTS, DOCUMENTS) + typed(TEXTS, {".xlf": XLIFF2}),
        "part": typed(list(PARTS), XML),
        "archive": [
            *typed(list(PARTS), {
                suffix: packed({"[Content_Types].xml": "<Types/>", PARTS[suffix]: content})
                for suffix, content in XML.items()
            }),
            bytes([list(PARTS).index(".epub")]) + packed({**OTHER_PARTS[".epub"], "a.xhtml": XML[".epub"]}),
        ],
        "inline": [
            b'\x01The <b>black</b> cat <i class="x">sat</i><br/>.\0Le chat noir assis.',
            b"\x03<a>The</a> (<c1/>cat) <b><i>x</i> y</b>!\0Le chat x y !", b"\0<b>a\0", b"\0a\0<b>b",
        ],
        "tokenizer": [tokenizer.encode()],
        "sentencepiece": [SENTENCEPIECE],
        "text": [
            "The cat né 🙂  \t</s> <unk> \u2581aa".encode(), b"  ",
            b"x" + "a\u0301\ud83d".encode("utf-16-le", "surrogatepass"),
        ],
        "http": [b"\0" + json.dumps(request).encode(), b"\x01q=a&q=b&source=en&target=fr", b"\x02" + multipart,
                 b"\x03q=a&target=fr\0", b"\x04{}", b"\x05{}",
                 b"\x01q=a&target=fr&source=en&terms=%5B%5B%22a%22%2C%22b%22%5D%5D&only=all&to=tmx"],
        "answer": [
            b'\0{"choices": [{"message": {"content": "<think>x</think>\\"Le chat\\""}, "finish_reason": "length"}], '
            b'"usage": {"prompt_tokens": 3, "completion_tokens": 4}}',
            b'\x013\0{"error": {"message": "Busy"}}', b"\x01Wed, 21 Oct 2065 07:28:00 GMT\0x",
            b'\x02{"key": "a", "texts": ["b"], "is_truncated": false, "score": -0.5, "tokens": [1, 2]}\n',
        ],
        "configuration": [b"\0" + toml, b"\x01" + json.dumps(options).encode(), b"\x02" + json.dumps(training).encode(),
                          *(bytes([i]) + json.dumps(model).encode() for i in range(3, 10)),
                          bytes([3 + len(FAMILIES)]) + b'[a]\nsha256 = "' + b"0" * 64 + b'"\n'],
    }  # fmt: skip


WORDS = [
    *(b"\0", b"\n", b"\r\n", b"\t", b'"', b"'", b",", b"\\", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"&#0;", b"&x;"),
    *(b"<", b">", b"</", b"/>", b"<!--", b"]]>", b"<![CDATA[", b"<?", b"{", b"}", b"[", b"]", b"null", b"true"),
    *(b"1e999", b"NaN", b"-1", "\ud800".encode("utf-8", "surrogatepass"), "\u2028".encode(), "🙂".encode()),
    *(b"\x1f\x8b\x08", b"PK\x03\x04", b"9" * 5000, b"[" * 3000, b"{" * 200, b"(" * 200, b"(?", b"*", b"+", b"{1,9}"),
    *(b"|", b"^", b"$", b"xml:lang"),
]
"""What is put into inputs."""
