"""Oracle: markdown-it reads the output again, and the bytes of the file."""

import random
import re
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from glassformer.errors import CorpusError
from tests.documents.test_tmx import by_alignment, kept, read, shouted, shuffled, texts

PARTS = st.sampled_from([
    "word", "Two words", "*a*", "**bold**", "`code`", "[link](http://x.y/a_b)", "![image](a.png)", "# ", "\n", "\n\n",
    "- ", "1. ", "> ", "  ", "\\*", "_x_",
    "a_b_c", "|", "---", "<b>", "</b>", "<!-- c -->", "&amp;", "```\n", "    ", "$x$", "2 * 3", "[^1]", "~~no~~", ".",
    "\\\n", "  \n", "é", "\t", "~", "[", "](", "\r\n", ":::tip T", '!!! note "T"\n', '=== "T"\n', "> [!NOTE]\n", "$$\n",
    "```{note}\n", "{#id}", "{{ x }}", "[[p]]", "![a](b)",
])  # fmt: skip


@given(st.lists(PARTS, max_size=14).map("".join))
@settings(max_examples=300)
def test_texts_that_stay_keep_their_bytes(text):
    assert kept(read("a.md", text)).decode() == text


def structure(text: str) -> list:
    """Blocks, and kinds, marks and addresses of what is in them, without texts."""
    found = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        inner = [(t.type, t.markup, t.attrs, t.content if "code" in t.type else "") for t in token.children or []]
        content = token.content if token.type in ("fence", "code_block", "html_block") else ""
        found.append(
            (
                token.type,
                token.markup,
                token.attrs,
                content,
                [each for each in inner if each[0] not in ("text", "softbreak")],
            )
        )
    return found


SENTENCES = st.lists(
    st.sampled_from(["word", "Two words", "*a b*", "**bold**", "`code x`", "[link to](http://x.y 'T')",
        "![image](a.png)", "<b>x</b>", "a_b_c", "~~no~~", "<http://x.y>", "_it_", "***both***"]),
    min_size=1, max_size=5,
).map(" ".join)  # fmt: skip
BLOCKS = st.lists(
    st.tuples(st.sampled_from(["", "# ", "- ", "> ", "1. ", "| a | b |\n|---|---|\n| ", "```\nx\n```\n\n"]),
        SENTENCES).map("".join),
    min_size=1, max_size=4,
).map("\n\n".join)  # fmt: skip


@given(BLOCKS)
@settings(max_examples=150)
def test_a_translation_of_each_word_has_the_same_structure(text):
    assert structure(shouted(read("a.md", text)).decode()) == structure(text)


@given(BLOCKS, st.integers(0, 1 << 32))
@settings(max_examples=100)
def test_a_translation_with_any_alignment_has_each_code_once(text, seed):
    document = read("a.md", text)
    rng = random.Random(seed)
    words = [" ".join(rng.choice(["u", "v", "w"]) for _ in range(rng.randrange(1, 6))) for _ in document.segments]
    alignments = [
        [(rng.randrange(len(t.split())), rng.randrange(len(w.split()))) for _ in range(4)]
        for t, w in zip(texts(document), words, strict=True)
    ]
    result = by_alignment(document, words, alignments).decode()
    for code in ("`code x`", "[", "](http://x.y 'T')", "![", "](a.png)", "<b>", "</b>", "<http://x.y>"):
        assert result.count(code) == text.count(code)
    for mark in ("*", "~~"):  # left out in pairs, where no word is aligned
        assert result.count(mark) <= text.count(mark)
        assert (text.count(mark) - result.count(mark)) % 2 == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# The *cat*\n", "# THE *CAT*\n"), ("Title\n=====\n", "TITLE\n=====\n"),
        ("- one\n- two\n\n  more\n", "- ONE\n- TWO\n\n  MORE\n"),
        ("One. Two **b** here.\n", "ONE. TWO **B** HERE.\n"), ("> quoted\n> text\n", "> QUOTED TEXT\n"),
        ("use `a b` now\n", "USE `a b` NOW\n"),
        ("    code\n\n```py\nx = 1\n```\n~~~\ny\n~~~\n",) * 2, ("<div>\nkept\n</div>\n", "<div>\nKEPT\n</div>\n"),
        ("---\ntitle: x\n---\nText\n", "---\ntitle: x\n---\nTEXT\n"),
        ("see [the site](http://x.y/z 'No') now\n", "SEE [THE SITE](http://x.y/z 'No') NOW\n"),
        ("[ref]: http://x.y\n\nsee [this][ref]\n", "[ref]: http://x.y\n\nSEE [THIS][ref]\n"),
        ("see https://x.y/z now\n", "SEE https://x.y/z NOW\n"), ("energy $e = mc^2$ is\n", "ENERGY $e = mc^2$ IS\n"),
        ("one <br> two\n", "ONE <br> TWO\n"),
("a snake_case_name\n", "A SNAKE_CASE_NAME\n"), ("* * *\n",) * 2, ("12\n",) * 2,
        ("| a b | `c` |\n|-----|-----|\n| d | **e** |\n", "| A B | `c` |\n|-----|-----|\n| D | **E** |\n"),
        ("note[^1] x\n\n[^1]: The text\n", "NOTE[^1] X\n\n[^1]: THE TEXT\n"),
    ],
)  # fmt: skip
def test_examples(text, expected):
    document = read("a.md", text)
    assert shouted(document).decode() == expected
    assert kept(document).decode() == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":::tip My title\nText *x*.\n:::\n", ":::tip MY TITLE\nTEXT *X*.\n:::\n"),
        ("::: warning\nText.\n\nMore.\n:::\n", "::: warning\nTEXT.\n\nMORE.\n:::\n"),
        ('!!! note "A title"\n    Text.\n\n    More `c`.\n\n        code\n\nAfter.\n',
         '!!! note "A TITLE"\n    TEXT.\n\n    MORE `c`.\n\n        code\n\nAFTER.\n'),
        ('=== "Linux"\n\n    Run:\n\n    ```sh\n    ls\n    ```\n',
         '=== "LINUX"\n\n    RUN:\n\n    ```sh\n    ls\n    ```\n'),
        ("- item\n\n    ??? tip\n        text\n", "- ITEM\n\n    ??? tip\n        TEXT\n"),
        ("!!! note\n\ttext\n", "!!! note\n\tTEXT\n"), ("\\!!! note\n", "\\!!! NOTE\n"),
        ("!!! This is great\n", "!!! THIS IS GREAT\n"), ("!!! danger\n",) * 2,
        ('!!! note "note"\n    text\n', '!!! note "note"\n    TEXT\n'),
        ("> [!NOTE]\n> text\n", "> [!NOTE]\n> TEXT\n"), ("> [!tip] Title\n> text\n", "> [!tip] TITLE\n> TEXT\n"),
        ("```{note}\n:class: tip\nText.\n```\n", "```{note}\n:class: tip\nTEXT.\n```\n"),
        ("````{admonition} Title\nText.\n```py\nx = 1\n```\nMore.\n````\n",
         "````{admonition} TITLE\nTEXT.\n```py\nx = 1\n```\nMORE.\n````\n"),
        ("```\n:::tip a\n!!! note\n    b\n```\n",) * 2, ("$$\na = b\nc\n$$\nText\n", "$$\na = b\nc\n$$\nTEXT\n"),
        ("$$\none is no formula\n", "$$ ONE IS NO FORMULA\n"),
        ("$$ x $$\n",) * 2,
        ("from $$ to $$$ a night\n", "FROM $$ TO $$$ A NIGHT\n"),
        ("$$\\begin{a}\nx\n$$\ntext\n\n$$\\begin{b}\ny\n$$\nmore\n",
         "$$\\begin{a}\nx\n$$\nTEXT\n\n$$\\begin{b}\ny\n$$\nMORE\n"),
        ("```\n$$\n```\n$$\na\n$$\ntext\n", "```\n$$\n```\n$$\na\n$$\nTEXT\n"),
        ("API\n===\n\n    code here\n", "API\n===\n\n    code here\n"),
        ("[![Build Status]][a] see ![logo] here\n\n[Build Status]: b.svg\n[a]: http://x.y\n[logo]: l.png\n",
         "[![Build Status]][a] SEE ![logo] HERE\n\n[Build Status]: b.svg\n[a]: http://x.y\n[logo]: l.png\n"),
        ("- ```sh\n  !!! a\n  ```\n\n!!! note\n    text\n", "- ```sh\n  !!! a\n  ```\n\n!!! note\n    TEXT\n"),
        ("# Title {#my-id}\n", "# TITLE {#my-id}\n"), ("{% include a.html %}\n",) * 2,
        ("hi {{ user.name }} and {ref}`a b`\n", "HI {{ user.name }} AND {ref}`a b`\n"),
        ("see [[Page]] or [[1]](http://x.y) now\n", "SEE [[Page]] OR [[1]](http://x.y) NOW\n"),
        ("see ![a cat](c.png 'T') and ![](x.png)\n", "SEE ![A CAT](c.png 'T') AND ![](x.png)\n"),
        ("[![Alt](b.svg)](http://x.y)\n", "[![ALT](b.svg)](http://x.y)\n"),
    ],
)  # fmt: skip
def test_dialects(text, expected):
    document = read("a.md", text)
    assert shouted(document).decode() == expected
    assert kept(document).decode() == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a \\*not em\\* b\n", "A \\*NOT EM\\* B\n"), ("a \\[x\\](y) b\n", "A \\[X\\](Y) B\n"),
        ("a \\`x\\` b\n", "A \\`X\\` B\n"), ("it \\_is\\_ so\n", "IT \\_IS\\_ SO\n"),
        ("a \\<b> c\n", "A \\<B> C\n"),
    ],
)  # fmt: skip
def test_escaped_marks_are_no_marks(text, expected):
    document = read("a.md", text)
    assert structure(shouted(document).decode()) == structure(expected)
    assert shouted(document).decode() == expected


@pytest.mark.parametrize(
    "text",
    ["one  \r\ntwo\r\n", "one\\\r\ntwo\r\n", "a `b\r\nc` d\r\n", "- one\r\n  goes on\r\n", "> one  \r\n> two\r\n"],
)
def test_a_file_with_crlf_has_no_other_line_ends(text):
    result = shouted(read("a.md", text)).decode()
    assert result.replace("\r\n", "").isprintable()
    assert structure(result.replace("\r\n", "\n")) == structure(text.replace("\r\n", "\n"))


@pytest.mark.parametrize("text", ["> one  \n> two\n", "- one\\\n  two\n", "> - a `b\n>   c` d\n"])
def test_a_hard_break_in_a_quotation_or_a_list_keeps_its_structure(text):
    assert structure(shouted(read("a.md", text)).decode()) == structure(text)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_keeps_its_encoding_and_its_line_ends(codec, newline):
    text = "---\na: b\n---\n# Café\n\n- **one** two\n- three\n".replace("\n", newline)
    document = read("a.markdown", text.encode(codec))
    assert kept(document) == text.encode(codec)
    expected = text.replace("Café", "CAFÉ").replace("one", "ONE").replace("two", "TWO").replace("three", "THREE")
    assert shouted(document) == expected.encode(codec)


def test_codes_follow_their_words():
    document = read("a.md", "The **black cat** sees [the dog](x) here.")
    alignment = [(0, 2), (1, 3), (2, 4), (3, 1), (4, 5), (5, 6), (6, 0)]
    assert by_alignment(document, ["Hier sieht die schwarze Katze den Hund."], [alignment]).decode() == (
        "Hier sieht die **schwarze Katze** [den Hund](x)."
    )


@pytest.mark.parametrize(
    "text",
    [
        "*" * 20_000 + "a",
        "[" * 5_000 + "a",
        "`" * 20_000,
        "a *b* " * 300,
        "<a " * 10_000,
        "$a" * 10_000,
        "> " * 3_000 + "a",
        "_a " * 300,
        "!!! a\n" * 5_000,
        "".join(" " * (4 * i) + "!!! a\n" for i in range(1_000)),
        "```{note}\n" * 5_000 + "a",
        "$$a" * 5_000,
        "{{a" * 5_000,
        "{%" * 10_000,
        "{#a" * 5_000,
        "![a" * 5_000,
        "[[a" * 5_000,
    ],
)
def test_hostile_files_are_read_or_refused_in_time(text):
    try:
        document = read("a.md", text)
    except CorpusError:
        return
    assert kept(document).decode() == text
    shuffled(document, 1)


def test_a_sentence_of_many_codes_is_written_in_linear_time():
    start = time.process_time()
    document = read("a.md", "a *b* " * 2_000)
    result = document.render([text + " c" for text in texts(document)])
    assert result.count(b"*") == 4_000
    assert time.process_time() - start < 1.5


def test_marks_around_a_word_that_is_not_aligned_are_not_written_without_a_word():
    document = read("a.md", "The **very** old cat")
    assert "****" not in by_alignment(document, ["Die alte Katze"], [[(0, 0), (2, 1), (3, 2)]]).decode()


@pytest.mark.parametrize("link", ["](\nhttps://x.org/a)", "](\n  x.md\n)", "]( x.md 'A title' )"])
def test_an_address_may_be_in_the_line_after_its_text(link):
    document = read("a.md", f"> Read this [old issue{link} now.".replace("\n", "\n> "))
    assert texts(document) == ["Read this old issue now."]
    expected = f"> READ THIS [OLD ISSUE{link} NOW.".replace("\n", "\n> ")
    assert re.sub(r"\s+", " ", shouted(document).decode()) == re.sub(r"\s+", " ", expected)


def test_a_link_is_around_a_word_and_marks_around_none_are_left_out():
    document = read("a.md", "Read the [old *book*](x.md) now.")
    assert by_alignment(document, ["Lies jetzt."], [[(0, 0), (4, 1)]]).decode() == "Lies [jetzt](x.md)."


def test_each_code_of_a_list_stays_before_its_comma():
    codes = ", ".join(f"`c{i}`" for i in range(5))
    text = f"Commands such as {codes}, or `push` to it"
    assert shouted(read("a.md", text)).decode() == f"COMMANDS SUCH AS {codes}, OR `push` TO IT"


def test_an_entity_is_part_of_its_word():
    assert shouted(read("a.md", "caf&eacute; bar")).decode() in ("CAF&eacute; BAR", "CAFÉ BAR")


def test_an_ampersand_is_a_sign_of_its_text_unless_an_entity_would_begin_with_it():
    text = "AT&amp;T &amp; R&D; not &amp;copy; or &lt;"
    document = read("a.md", text)
    assert texts(document)[0].startswith("AT&T & R&D; not")
    assert shouted(document).decode() == "AT&T & R&D; NOT &amp;COPY; OR &lt;"
    assert kept(document).decode() == text


def test_the_box_of_a_task_is_no_text():
    assert texts(read("a.md", "- [ ] todo\n- [x] done\n")) == ["todo", "done"]


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"\xff\xfea", "not UTF-16"), (b"\xe9t", "not UTF-8"), (b"a\0b", "NUL"), (b"PK\3\4", "zip archive")],
)
def test_a_file_that_cannot_be_read_is_one_clear_error(data, message):
    with pytest.raises(CorpusError, match=message):
        read("a.md", data)


LINKS = """\
Read the [Installation guide], the [user
guide][] and the [manual][Other], not [x] or [**bold] text**.

- [`code` of it] and [ "Quoted" Text ]

[Installation guide]: http://a
[user guide]: http://b
[other]: http://c
[`code` of it]: http://d
["quoted" text]: http://e
"""


def test_links_keep_the_labels_of_their_addresses():
    document = read("a.md", LINKS)
    assert kept(document).decode() == LINKS
    assert texts(document)[0] == "Read the Installation guide, the user guide and the manual, not [x] or [bold] text."
    result = shouted(document).decode()
    addresses = lambda text: [
        token.attrs["href"]
        for block in MarkdownIt("commonmark").parse(text)
        for token in block.children or []
        if token.type == "link_open"
    ]
    assert addresses(result) == addresses(LINKS) == [f"http://{letter}" for letter in "abcde"]
    assert "[INSTALLATION GUIDE][Installation guide]" in result
    assert "not [x] or [**bold] text**".upper() in result.upper()


def test_hard_breaks_separate_lines():
    text = "Roses are red,  \nViolets are blue,\\\nsugar is sweet.  \nAnd so.\n"
    document = read("a.md", text)
    assert texts(document) == ["Roses are red,", "Violets are blue, sugar is sweet.", "And so."]
    assert kept(document).decode() == text
    assert shouted(document).decode().split("\n")[0] == "ROSES ARE RED,  "


def test_front_matter_of_toml_stays():
    front = '+++\ntitle = "My page"\ndraft = true\n+++\n'
    assert shouted(read("a.md", f"{front}\nHello\n")).decode() == f"{front}\nHELLO\n"


DEFINITIONS = """A man fishes.[^1] A girl runs.[^2]

[^1]: A dog is big.
[^2]: A cat is
    small.

Good
: A girl.

*[HTML]: Hyper text
*[CSS]: Style sheets
"""


def test_footnotes_definitions_and_abbreviations_have_a_line_each():
    document = read("a.md", DEFINITIONS)
    assert texts(document)[1:] == ["A dog is big.", "A cat is small.", "Good", "A girl.", "Hyper text", "Style sheets"]
    assert kept(document).decode() == DEFINITIONS
    marks = [
        "[^1]: A DOG IS BIG.\n",
        "[^2]: A CAT IS SMALL.\n",
        "GOOD\n: A GIRL.\n",
        "*[HTML]: HYPER TEXT\n*[CSS]: STYLE",
    ]
    assert all(mark in shouted(document).decode() for mark in marks)


def test_blocks_of_html_are_translated():
    text = (
        '<h1 align="center">My tool &amp; more</h1>\n\n<details>\n<summary>Click <b>here</b></summary>\n\n'
        "Inner *text*\n\n"
        '</details>\n\n<!-- a comment -->\n\n<pre>\ncode\n</pre>\n\n<img src="a.png" alt="A cat">\n\n> <p>\n> kept\n'
    )
    document = read("a.md", text)
    assert texts(document) == ["My tool & more", "Click here", "Inner text", "A cat"]
    assert kept(document).decode() == text
    found = shouted(document).decode()
    assert found == (
        text.replace("My tool &amp; more", "MY TOOL &amp; MORE").replace("Click <b>here", "CLICK <b>HERE")
        .replace("Inner *text", "INNER *TEXT").replace("A cat", "A CAT")
    )  # fmt: skip


def test_blocks_of_html_stay_without_the_library_and_a_note_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, "glassformer.documents.html", raising=False)
    monkeypatch.setitem(sys.modules, "turbohtml", None)
    document = read("a.md", "<p>\nOne\n</p>\n\nTwo\n")
    assert texts(document) == ["Two"]
    assert document.notes == ("1 blocks of HTML are not translated: they need pip install 'glassformer[serve]'",)


def test_a_pipe_in_a_cell():
    text = "| a | b |\n|---|---|\n| red \\| blue | `x \\| y` |\n"
    document = read("a.md", text)
    assert kept(document).decode() == text
    assert shouted(document).decode() == "| A | B |\n|---|---|\n| RED \\| BLUE | `x \\| y` |\n"


def test_statements_of_modules_stay_and_labels_of_tabs_are_translated():
    text = (
        "# Page\n\nimport Tabs from '@theme/Tabs';\nimport \"./style.css\"\nexport const x = 1;\n\n<Tabs>\n"
        '  <TabItem value="a" label="A cat">\n\n  import it from the shop.\n\n  </TabItem>\n</Tabs>\n\nYou may\n'
        "import numbers from 'file.csv'\ninto it.\n"
    )
    document = read("a.mdx.md", text)
    assert sorted(texts(document)) == [
        "A cat", "Page", "You may import numbers from 'file.csv' into it.", "import it from the shop."
    ]  # fmt: skip
    assert kept(document).decode() == text


@pytest.mark.parametrize(
    "block",
    [
        "<p>{{ page.title }}</p>",
        "<div>\n{% include a.html %}\n</div>",
        "<div onClick={() => alert('hi you')}>\nx y\n</div>",
        "<ul>\n{items.map((item) => <Item/>)}\n</ul>",
        "<p>{/* a comment */}</p>",
        '<div class="a" markdown>\n- One dog\n</div>',
    ],
)
def test_blocks_with_templates_programs_or_markdown_stay_and_a_note_says_so(block):
    document = read("a.md", f"{block}\n\nText\n")
    assert texts(document) == ["Text"]
    assert document.notes == ("1 blocks of HTML are not translated: they have templates, programs or Markdown in them",)


@pytest.mark.parametrize("translation", ["5. Mai 2020", "7) x", "- mehr", "* mehr", "+ mehr", "# x", "> x", "-"])
def test_a_translation_does_not_become_a_block(translation):
    document = read("a.md", "May 5, 2020\n\n- May 5\n\n| May 5 |\n|---|\n")
    assert b"| 5. x |" in document.render(["5. x"] * 3)  # no paragraph
    html = MarkdownIt("commonmark").enable("table").render(document.render([translation] * 3).decode())
    expected = "<p>{0}</p>\n<ul>\n<li>{0}</li>\n</ul>\n<table>\n<thead>\n<tr>\n<th>{0}</th>"
    assert html.startswith(expected.format(translation.replace(">", "&gt;")))
