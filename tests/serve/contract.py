"""Requests to the API of LibreTranslate, and the form of the answers.

libretranslate-1.9.6.json has the answers of LibreTranslate itself: status, JSON keys and types. They are recorded by
`python -m tests.serve.contract http://127.0.0.1:5901`, from a server with the languages en and de and `--suggestions`.
"""

import http.client
import json
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit


class Call(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = ""


def get(path: str) -> Call:
    """A request without a body."""
    return Call("GET", path)


def post(value: Any, path: str = "/translate") -> Call:
    """A request in JSON."""
    return Call("POST", path, json.dumps(value).encode(), "application/json")


def form(fields: Mapping[str, Any], path: str = "/translate") -> Call:
    """A form."""
    return Call("POST", path, urlencode(fields, doseq=True).encode(), "application/x-www-form-urlencoded")


def multipart(fields: Mapping[str, str], path: str = "/translate", file: tuple[str, bytes] | None = None) -> Call:
    """A multipart form, with a file."""
    parts = [f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
    if file:
        head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{file[0]}"\r\n\r\n'
        parts.append(head.encode() + file[1] + b"\r\n")
    return Call("POST", path, b"".join(parts) + b"--x--\r\n", "multipart/form-data; boundary=x")


PAIR = {"source": "en", "target": "de"}
OK = {"q": "The cat sat on the mat.", **PAIR}
FILE = "/translate_file"

CALLS = {
    "languages": get("/languages"),
    "settings": get("/frontend/settings"),
    "health": get("/health"),
    "spec": get("/spec"),
    "json": post(OK),
    "form": form(OK),
    "multipart": multipart(OK),
    "query string": Call("POST", "/translate?" + urlencode(OK)),
    "alternatives": post({**OK, "alternatives": 3}),
    "alternatives of a list": post({**OK, "q": ["One cat.", "Two dogs."], "alternatives": 3}),
    "alternatives: text in a form": form({**OK, "alternatives": "x"}),
    "alternatives: text": post({**OK, "alternatives": "x"}),
    "alternatives: null": post({**OK, "alternatives": None}),
    "alternatives: -1": post({**OK, "alternatives": -1}),
    "alternatives: 2.7": post({**OK, "alternatives": 2.7}),
    "list": post({**OK, "q": ["One.", "Two.", ""]}),
    "list, auto": post({**OK, "q": ["The cat.", "The dog."], "source": "auto"}),
    "list, auto, alternatives": post({**OK, "q": ["The cat.", "The dog."], "source": "auto", "alternatives": 3}),
    "repeated field of a form": form({**OK, "q": ["a", "b"]}),
    "auto": post({**OK, "source": "auto"}),
    "same language": post({**OK, "target": "en"}),
    "html": post({**OK, "q": "<p>The <b>big</b> cat &amp; dog.</p>", "format": "html"}),
    "format: xml": post({**OK, "format": "xml"}),
    "q: none": post(PAIR),
    "q: empty": post({**OK, "q": ""}),
    "q: empty list": post({**OK, "q": []}),
    "q: 5": post({**OK, "q": 5}),
    "q: [1]": post({**OK, "q": [1]}),
    "q: object": post({**OK, "q": {"a": 1}}),
    "q: list of lists": post({**OK, "q": [["a"]]}),
    "q: blank": post({**OK, "q": "   "}),
    "q: lines": post({**OK, "q": "The cat.\n\nThe dog.\n"}),
    "source: none": post({"q": "The cat.", "target": "de"}),
    "target: none": post({"q": "The cat.", "source": "en"}),
    "source: 5": post({**OK, "source": 5}),
    "source: xx": post({**OK, "source": "xx"}),
    "source: EN": post({**OK, "source": "EN"}),
    "source: en-US": post({**OK, "source": "en-US"}),
    "target: xx": post({**OK, "target": "xx"}),
    "target: auto": post({**OK, "target": "auto"}),
    "array": post([1]),
    "broken JSON": Call("POST", "/translate", b"{", "application/json"),
    "no body": Call("POST", "/translate"),
    "plain text": Call("POST", "/translate", b"The cat.", "text/plain"),
    "half of a surrogate pair": post({**OK, "q": "\ud800"}),
    "key that is not needed": post({**OK, "api_key": "x"}),
    "detect": post({"q": "The old man and the dog"}, "/detect"),
    "detect: list": post({"q": ["The old man", "Der alte Mann"]}, "/detect"),
    "detect: form": form({"q": "The old man"}, "/detect"),
    "detect: 5": post({"q": 5}, "/detect"),
    "detect: none": post({}, "/detect"),
    "suggest": post({"q": "The cat.", "s": "Die Katze.", **PAIR}, "/suggest"),
    "suggest: form": form({"q": "The cat.", "s": "Die Katze.", **PAIR}, "/suggest"),
    "suggest: no s": post({"q": "The cat.", **PAIR}, "/suggest"),
    "suggest: no source": post({"q": "The cat.", "s": "Die Katze.", "target": "de"}, "/suggest"),
    "suggest: target xx": post({"q": "The cat.", "s": "x", "source": "en", "target": "xx"}, "/suggest"),
    "GET /translate": get("/translate"),
    "unknown path": get("/nope"),
    "unknown method": Call("POST", "/languages"),
    "file": multipart(PAIR, FILE, ("a.txt", b"The cat.\n")),
    "file: none": multipart(PAIR, FILE),
    "file: .srt": multipart(PAIR, FILE, ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\nThe cat.\n")),
    "file: .html": multipart(PAIR, FILE, ("a.html", b"<p>The cat.</p>")),
    "file: .exe": multipart(PAIR, FILE, ("a.exe", b"x")),
    "file: .docx that is none": multipart(PAIR, FILE, ("a.docx", b"x")),
    "file: UTF-16": multipart(PAIR, FILE, ("a.txt", "The cat.".encode("utf-16"))),
    "file: .TXT": multipart(PAIR, FILE, ("A.TXT", b"The cat.")),
    "file: target xx": multipart({**PAIR, "target": "xx"}, FILE, ("a.txt", b"The cat.")),
    "file: no source": multipart({"target": "de"}, FILE, ("a.txt", b"The cat.")),
    "download: none": get("/download_file/nope.txt"),
    "download: path": get("/download_file/..%2f..%2fetc%2fpasswd"),
}  # fmt: skip


def form_of(value: Any) -> Any:
    """Keys and types of a JSON value; of a list those of its first element."""
    if isinstance(value, dict):
        return {key: form_of(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [form_of(item) for item in value[:1]]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def answers(host: str, port: int) -> dict[str, Any]:
    """Status and form of the answer to each request."""
    found = {}
    for name, call in CALLS.items():
        connection = http.client.HTTPConnection(host, port, timeout=60)
        connection.request(call.method, call.path, call.body, {"Content-Type": call.content_type} if call.body else {})
        response = connection.getresponse()
        data, kind = response.read(), (response.getheader("content-type") or "").partition(";")[0]
        body = "OpenAPI description" if name == "spec" else form_of(json.loads(data)) if "json" in kind else kind
        found[name] = {"status": response.status, "body": body}
        connection.close()
    return found


if __name__ == "__main__":
    address = urlsplit(sys.argv[1])
    rows = answers(str(address.hostname), int(address.port or 80))
    print("{" + ",".join(f"\n {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()) + "\n}")
