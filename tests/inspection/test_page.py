"""Pages run no code except their own scripts, for any content of the text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from glassformer.inspection.bundle import bundle, source
from glassformer.inspection.inspect import inspect
from glassformer.inspection.page import ablation_page, frame, inspection_page, page, report_page, worked_page
from glassformer.inspection.worked_example import worked_example, worked_example_of_model
from tests.inspection.models import make

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    "&lt;b&gt; &amp; &#60;",
    "]]> {{policy}} {{record}} ${1}",
    "\\u003cscript\\u003e \\",
    "javascript:alert(1)",
    "\u2028 \u2029 \u202e abc",
]


class Parser(HTMLParser):
    """Parser that collects the scripts of a page, and all tags and attributes."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.attributes, self.policy, self.kind = [], [], "", None
        self.titles, self.tag, self.tags = "", "", set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tag = tag
        self.tags.add(tag)
        given = dict(attrs)
        if tag == "script":
            self.kind = given.get("type", "code")
            self.scripts.append([self.kind, ""])
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_data(self, data):
        if self.tag == "script":
            self.scripts[-1][1] += data
        if self.tag == "title":
            self.titles += data

    def handle_endtag(self, tag):
        self.tag = ""


def check(text):
    found = Parser(text)
    codes = [code for kind, code in found.scripts if kind == "code"]
    hashes = [base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes]
    assert re.findall(r"'sha256-([^']+)'", found.policy) == hashes
    assert "default-src 'none'" in found.policy
    assert "unsafe" not in found.policy.replace("style-src 'unsafe-inline'", "")
    assert len(codes) == 3
    assert not [
        one for one in found.attributes if one[1] in ("src", "srcset", "action", "onerror", "onload", "onclick")
    ]
    assert [value for tag, name, value in found.attributes if name == "href"] == ["data:,"]
    assert found.tags <= {"html", "head", "meta", "title", "link", "style", "body", "main", "noscript", "script"}
    (data,) = [code for kind, code in found.scripts if kind == "application/json"]
    return json.loads(data), found


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_never_interpreted_as_markup(text):
    task = make("translation", "transformer")
    record, found = check(inspection_page(inspect(task, text, text).to_dict()))
    assert record["sides"]["source"]["text"] == text.strip()
    assert record["sides"]["target"]["text"] == text
    assert found.titles == f"glassformer inspect: {text.strip()[:60]}"
    record, _ = check(worked_page(worked_example_of_model(task, text, target=text)))
    record, _ = check(report_page({"run": text, "rows": [[text]]}))
    assert record == {"run": text, "rows": [[text]]}


def test_the_other_pages_run_only_their_own_scripts():
    check(worked_page(worked_example()))
    check(ablation_page({"loss": 1.0}, [], "heads", 3))


@pytest.mark.parametrize("entry", ["inspection", "report", "profile", "worked", "ablation"])
def test_bundled_modules_are_complete_and_ordered(entry):
    text = bundle(entry)
    assert not re.search(r"^\s*(import|export)\b", text, re.MULTILINE)
    made = re.findall(r"^const \$(\w+) = ", text, re.MULTILINE)
    assert len(made) == len(set(made))
    assert made[-1] == entry
    for match in re.finditer(r"const \{([^}]*)\} = \$(\w+);", text):
        assert text.index(f"const ${match[2]} = ") < match.start()
        exported = re.search(rf"const \${match[2]} = .*?\nreturn \{{ ([^}}]*) \}};", text, re.DOTALL)[1].split(", ")
        assert {name.strip() for name in match[1].split(",") if name.strip()} <= set(exported)


@pytest.mark.parametrize("entry", ["inspection", "report", "profile", "worked", "ablation"])
def test_bundles_have_the_code_of_the_modules_and_no_documentation(entry):
    lines = bundle(entry).split("\n")
    assert not any(re.match(r"\s*(/\*\*$|/\*\*.*\*/$| \* )", line) for line in lines)
    for name in re.findall(r"^const \$(\w+) = ", "\n".join(lines), re.MULTILINE):
        code = [line for line in source(f"{name}.js").split("\n") if not re.match(r"\s*(/\*\*|\*|import )", line)]
        assert {line.removeprefix("export ") for line in code} <= set(lines)


def test_nan_in_a_record_is_an_error():
    with pytest.raises(ValueError, match="Out of range float"):
        page("x", {"x": float("nan")}, "report")


def test_notebooks_embed_the_page_in_an_iframe():
    found = inspect(make("classification", "bert"), "The black cat")
    text = found._repr_html_()
    assert text.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in text
    assert "<script" not in text
    assert frame("<b>").count("&lt;b&gt;") == 1
