"""The page itself: it translates while one types, without a server, and says what is wrong."""

import functools
import http.server
import json
import threading
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from glassformer.browser.page import page, site
from tests.browser.conftest import OWN
from tests.browser.translators import TRAINED
from tests.serve.test_page import until

pytestmark = pytest.mark.slow
TEXT = "The black cat sat on the couch. A man saw 25 dogs!\nTHE BLACK CAT."


@pytest.fixture(scope="module")
def file(small_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(page(small_translator, "model"), encoding="utf-8")
    return path


def opened(tabs, file, **options):
    tab = tabs(file.as_uri(), OWN, **options)
    tab.wait_for_selector(".translator, [role=alert]:not(:empty)")
    until(tab, "document.activeElement !== document.body || !document.querySelector('[autofocus]')")
    return tab


def typed(tab, text):
    tab.fill(".mirror textarea", text)
    until(tab, "document.querySelector('.output .sentence') && !document.querySelector('.waiting')")


def translated(task, text):
    return task(text, precision="int8")


def test_the_translation_appears_while_one_types(small_translator, tabs, file):
    tab = opened(tabs, file)
    typed(tab, TEXT)
    first, second = (translated(small_translator, sentence) for sentence in TEXT.split("\n")[0].split(". "))
    first = translated(small_translator, "The black cat sat on the couch.")
    assert (
        tab.locator(".output").text_content() == f"{first} {second}\n{translated(small_translator, 'THE BLACK CAT.')}"
    )
    assert tab.title() == "Translation – model"
    assert tab.locator("select").first.input_value() == "en"
    assert not tab.get_by_role("button", name="Code", exact=True).is_visible()


def test_the_page_says_which_words_were_read_otherwise(tabs, file):
    tab = opened(tabs, file)
    typed(tab, "The blakc cat sat on the couch.")
    status = tab.get_by_text("Words that the training text does not have, read as: blakc → black.")
    status.wait_for()
    typed(tab, "The black cat.")
    status.wait_for(state="hidden")


def test_a_word_has_alternatives_and_partners(tabs, file):
    tab = opened(tabs, file)
    typed(tab, "The black cat sat on the couch.")
    tab.locator(".output .word").nth(1).hover()
    assert tab.locator(".mirror .on, .output .on").count() >= 1
    tab.locator(".output .word").nth(0).click()
    tab.get_by_text("Other words").wait_for()


def test_the_inside_is_shown_while_one_types(small_translator, tabs, file):
    tab = opened(tabs, file)
    typed(tab, "The black cat.")
    tab.get_by_role("button", name="Look inside").click()
    inside = tab.frame_locator("iframe")
    inside.locator("blockquote", has_text="The black cat.").wait_for()
    assert inside.locator("h2").all_text_contents() == [
        "Tokens",
        "The whole way",
        "Predictions",
        "Sampling",
        "Attention",
        "One head, step by step",
        "Alignment",
        "Search",
        "Layer by layer",
        "Residual stream",
        "Vectors",
    ]
    until(tab, "document.querySelector('iframe').clientHeight > 500")
    click = "(node) => node.click()"  # the frame grows: one at a position may meet something else
    inside.locator("h2", has_text="Tokens").evaluate(click)
    inside.get_by_role("button", name="layer 2, head 3", exact=True).evaluate(click)
    typed(tab, "The black dog.")
    inside.locator("blockquote", has_text="The black dog.").wait_for()
    assert inside.get_by_role("button", name="layer 2, head 3", exact=True).get_attribute("aria-pressed") == "true"
    assert not inside.locator(".tokens").first.is_visible()
    assert tab.locator("iframe").bounding_box()["height"] < 10000
    typed(tab, "12345")
    inside.get_by_text("This text is not translated").wait_for()
    until(tab, "document.querySelector('iframe').clientHeight < 200")
    tab.keyboard.press("Alt+I")
    assert tab.locator("iframe").count() == 0
    tab.keyboard.press("Alt+I")
    tab.get_by_role("button", name="Close", exact=True).last.click()
    assert tab.locator("iframe").count() == 0


def test_the_inside_stays_that_of_the_sentence_in_which_one_types(tabs, file):
    tab = opened(tabs, file)
    typed(tab, "The black cat sat. A man saw it.")  # the caret is at the end
    tab.get_by_role("button", name="Look inside").click()
    inside = tab.frame_locator("iframe")
    second = inside.locator("blockquote", has_text="A man saw it.")
    second.wait_for()
    inside.get_by_role("button", name="layer 2, head 3", exact=True).click()
    inside.get_by_role("button", name="Switch this head off").click()
    inside.locator(".note", has_text="Switched off").first.wait_for()
    assert second.count() == 1
    tab.locator(".output .word").first.click()
    inside.locator("blockquote", has_text="The black cat sat.").wait_for()


def test_what_is_used_in_the_inside_keeps_the_focus(tabs, file):
    tab = opened(tabs, file)
    typed(tab, "The black cat sat.")
    tab.get_by_role("button", name="Look inside").click()
    inside = tab.frame_locator("iframe")
    slider = inside.get_by_label("beam")
    slider.focus()
    before = int(slider.input_value())
    for n in (1, 2):
        tab.keyboard.press("ArrowLeft")
        inside.locator("output", has_text=str(before - n)).first.wait_for()
        tab.wait_for_timeout(300)
        assert inside.locator(":focus").get_attribute("aria-label") == slider.get_attribute("aria-label")
        assert int(slider.input_value()) == before - n


CLICK = "(node) => node.click()"  # the frame grows: one at a position may meet something else


def test_a_link_opens_the_inside_with_its_settings(tabs, file):
    off, view = [["cross", 1, 0], ["encoder", 0, 3]], {"kind": "cross", "layer": 1, "head": 5}
    inside = json.dumps({"off": off, "search": {"beam": 2, "alpha": 1}, "view": view})
    link = f"{file.as_uri()}#{urlencode({'q': 'The black cat.', 'inside': inside})}"
    tab = tabs(link, OWN)
    frame = tab.frame_locator("iframe")
    frame.locator("blockquote", has_text="The black cat.").wait_for()
    assert frame.locator(".overview .thumbnail[aria-pressed=true]").get_attribute("aria-label") == "layer 2, head 6"
    assert (
        frame.locator(".note")
        .first.text_content()
        .startswith("Switched off: cross-attention layer 2, head 1; encoder layer 1, head 4.")
    )
    assert frame.get_by_label("beam").input_value() == "2"
    tab.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    frame.get_by_role("button", name="Switch all 2 on").first.evaluate(CLICK)
    frame.locator(".note").first.wait_for(state="detached")
    tab.get_by_role("button", name="Copy a link to this view").click()
    until(tab, "window.copied")
    asked = parse_qs(urlsplit(tab.evaluate("window.copied")).fragment)
    assert asked["q"] == ["The black cat."]
    assert json.loads(asked["inside"][0]) == {"off": [], "search": {"beam": 2, "alpha": 1}, "view": view}
    tab.evaluate("document.execCommand = () => { window.selected = getSelection().toString(); }")
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    tab.get_by_role("button", name="Copy a link to this view").click()
    until(tab, "window.selected === window.copied")
    assert tab.locator("body > pre").count() == 0


@pytest.mark.parametrize(
    "inside",
    [
        "",
        "{",
        '{"off": [["x", {}, 1], 7, ["cross", 99, 99], ["cross", 0, -1]], "search": {"beam": "<b>"}}',
        '{"search": {"beam": 1e9, "alpha": -5, "x": 1}, "view": {"kind": "cross", "layer": 0, "head": {}}}',
        "[]",
    ],
)
def test_a_link_that_is_not_of_this_page_does_no_harm(tabs, file, inside):
    text = "<img src=x onerror=alert(1)> black"
    tab = tabs(f"{file.as_uri()}#{urlencode({'q': text, 'inside': inside})}", OWN)
    frame = tab.frame_locator("iframe")
    frame.locator("blockquote", has_text="black").first.wait_for()
    assert frame.get_by_label("beam").input_value() == "4"
    assert tab.locator("img").count() == 0


def test_the_tour_goes_on_with_the_next_text(tabs, file):
    tab = opened(tabs, file)
    typed(tab, "The black cat.")
    tab.get_by_role("button", name="Look inside").click()
    inside = tab.frame_locator("iframe")
    inside.get_by_role("button", name="Tour: what to look for").evaluate(CLICK)
    titles = []
    for i in range(11):
        step = inside.locator(".tour")
        titles.append(step.locator("xpath=../summary").text_content())
        assert step.get_by_text(f"{i + 1} of 11").count() == 1
        if i == 3:
            scrolled = tab.evaluate("scrollY")
            typed(tab, "The black dog.")
            inside.locator("blockquote", has_text="The black dog.").wait_for()
        step.locator("button").first.evaluate(CLICK)
    assert titles == inside.locator("h2").all_text_contents()
    assert scrolled > 1000
    assert inside.locator(".tour").count() == 0


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
def test_the_page_and_its_inside_are_accessible(tabs, file, scheme, width):
    axe = Path(find_spec("axe_core_python").origin).with_name("axe.min.js").read_text(encoding="utf-8")
    inside = json.dumps({"off": [["cross", 1, 0]]})
    tab = tabs(
        f"{file.as_uri()}#{urlencode({'q': 'The black cat.', 'inside': inside})}", OWN, scheme=scheme, width=width
    )
    frame = tab.frame_locator("iframe")
    frame.locator("summary", has_text="One head, step by step").evaluate(CLICK)
    frame.locator("h3", has_text="Softmax").wait_for()
    frame.get_by_role("button", name="Tour: what to look for").evaluate(CLICK)
    for part in tab.frames:
        part.evaluate(axe)
        found = part.evaluate(
            "axe.run(document, { iframes: false, resultTypes: ['violations'] }).then("
            "r => r.violations.map(v => `${v.id}: ${v.nodes.map(n => n.html).slice(0, 3)}`))"
        )
        assert found == []


def test_what_sampling_could_choose(small_translator, tabs, file):
    tab = opened(tabs, file)
    typed(tab, "The black cat.")
    tab.get_by_role("button", name="Look inside").click()
    inside = tab.frame_locator("iframe")
    inside.locator(".sampling").wait_for()
    rows = lambda: [
        [float(x) for x in row.locator("td").all_text_contents()] for row in inside.locator(".sampling tbody tr").all()
    ]
    assert all(model == chosen for model, chosen in rows())
    move = "(node, value) => { node.value = value; node.dispatchEvent(new Event('input')); }"
    inside.get_by_label("top-k").evaluate(move, 3)
    assert [chosen > 0 for _, chosen in rows()][:5] == [True, True, True, False, False]
    assert sum(chosen for _, chosen in rows()) == pytest.approx(1, abs=0.002)
    inside.get_by_label("temperature").evaluate(move, 2)
    flat = rows()[0][1]
    weights = [model**0.5 for model, _ in rows()[:3]]
    assert flat == pytest.approx(weights[0] / sum(weights), abs=0.01)
    inside.get_by_label("top-p").evaluate(move, 0.05)
    assert [chosen > 0 for _, chosen in rows()].count(True) == 1
    n = small_translator.config.vocab_size
    assert inside.get_by_text(f"1 of {n} tokens can be chosen. Entropy: 0.00 bits.").count() == 1


def test_a_text_file_is_translated_line_by_line(small_translator, tabs, file, tmp_path):
    source = tmp_path / "lines.txt"
    source.write_bytes(b"The black cat.\r\n\r\nA man saw dogs!\n")
    tab = opened(tabs, file)
    tab.get_by_text("Files", exact=True).click()
    tab.set_input_files("#file", source)
    link = tab.locator("a[download]")
    link.wait_for()
    assert link.get_attribute("download") == "lines.de.txt"
    with tab.expect_download() as download:
        link.click()
    content = download.value.path().read_bytes().decode()
    lines = ["The black cat.", "", "A man saw dogs!"]
    first, _, third = (translated(small_translator, line) for line in lines)
    assert content == f"{first}\r\n\r\n{third}\n"


def test_the_domain_is_chosen(small_translator, tabs, file, tmp_path):
    tab = opened(tabs, file)
    typed(tab, TRAINED[0])
    domain = tab.get_by_label("Domain")
    assert domain.locator("option").all_text_contents() == ["—", "law"]
    domain.select_option("law")
    tagged = small_translator(TRAINED[0], precision="int8", tag="law")
    assert tagged != translated(small_translator, TRAINED[0])
    until(tab, "(text) => document.querySelector('.output').textContent === text", tagged)
    tab.get_by_role("button", name="Look inside").click()
    tag = tab.frame_locator("iframe").get_by_text("<tag:law>").first
    tag.wait_for()
    tab.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    tab.get_by_role("button", name="Copy a link to this view").click()
    until(tab, "window.copied")
    other = tabs(tab.evaluate("window.copied"), OWN)
    other.frame_locator("iframe").get_by_text("<tag:law>").first.wait_for()
    assert other.get_by_label("Domain").input_value() == "law"
    until(other, "(text) => document.querySelector('.output').textContent === text", tagged)
    domain.select_option("")
    tag.wait_for(state="detached")
    domain.select_option("law")
    tab.get_by_text("Files", exact=True).click()
    source = tmp_path / "line.txt"
    source.write_text(TRAINED[0])
    tab.set_input_files("#file", source)
    with tab.expect_download() as download:
        tab.locator("a[download]").click()
    assert download.value.path().read_text() == tagged


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("a.txt", b"\xff\xfe\x00", "not in UTF-8"), ("a.docx", b"PK", "translates .txt only")],
)
def test_a_file_that_cannot_be_translated_is_said(tabs, file, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    tab = opened(tabs, file)
    tab.get_by_text("Files", exact=True).click()
    tab.set_input_files("#file", tmp_path / name)
    tab.get_by_text(message).wait_for()


@pytest.mark.parametrize("change", ["short", "cut", "changed"])
def test_a_damaged_file_is_said(tabs, file, tmp_path, change):
    text = file.read_text(encoding="utf-8")
    start = text.index('id="model" hidden>') + 1000
    replaced = "B" if text[start] == "A" else "A"
    damaged = tmp_path / "damaged.html"
    changed = {"short": text[:start], "cut": text[:start] + text[start + 400 :]}
    damaged.write_text(changed.get(change, text[:start] + replaced + text[start + 1 :]), encoding="utf-8")
    opened(tabs, damaged).get_by_text("The file is damaged").wait_for()


def test_a_browser_without_webassembly_is_told_which_work(browser, file):
    tab = browser.new_page()
    tab.add_init_script("delete globalThis.WebAssembly")
    tab.goto(file.as_uri())
    tab.get_by_text("no WebAssembly").wait_for()
    tab.close()


def test_storage_that_is_refused_is_done_without(small_translator, browser, file):
    tab = browser.new_page()
    refused = "Object.defineProperty(window, name, { value: null })"
    tab.add_init_script(f"for (const name of ['localStorage', 'sessionStorage']) {refused}")
    tab.goto(file.as_uri())
    typed(tab, "The black cat.")
    assert tab.locator(".output").text_content() == translated(small_translator, "The black cat.")
    tab.close()


def test_nothing_is_wider_than_a_phone(tabs, file):
    tab = opened(tabs, file, width=390, scheme="dark")
    typed(tab, TEXT)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_labels_of_the_residual_stream_are_not_scaled_down_on_a_phone(tabs, file):
    tab = opened(tabs, file, width=390)
    typed(tab, "The black cat.")
    tab.get_by_role("button", name="Look inside").click()
    inside = tab.frame_locator("iframe")
    chart = inside.locator("svg.stream").first
    chart.wait_for()
    assert chart.evaluate("(node) => node.getScreenCTM().a") == 1
    assert inside.locator("html").evaluate("(node) => node.scrollWidth <= innerWidth")


def test_hostile_text_is_shown_as_text(tabs, file):
    tab = opened(tabs, file)
    hostile = "<img src=x onerror=alert(1)> <script>alert(2)</script> </textarea>"
    typed(tab, hostile)
    assert tab.locator(".translator img, .translator script").count() == 0


@pytest.fixture(scope="module")
def web_site(small_translator, tmp_path_factory):
    """A folder of `--split` on a server, and its address."""
    folder = tmp_path_factory.mktemp("site")
    for name, content in site(small_translator, "model").items():
        (folder / name).write_bytes(content)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_page_of_a_web_site_loads_its_model(small_translator, tabs, web_site):
    folder, address = web_site
    assert '<xmp id="model" hidden></xmp>' in (folder / "index.html").read_text(encoding="utf-8")
    tab = tabs(address, (*OWN, address))
    tab.wait_for_selector(".translator")
    typed(tab, "The black cat.")
    assert tab.locator(".output").text_content() == translated(small_translator, "The black cat.")


@pytest.mark.parametrize("change", ["changed", "short", "long", "none"])
def test_a_model_file_that_is_not_that_of_its_page_is_said(tabs, web_site, change):
    folder, address = web_site
    content = (folder / "model.bin").read_bytes()
    middle = len(content) // 2
    others = {
        "changed": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "short": content[:-1],
        "long": content + b"x",
    }
    if change == "none":
        (folder / "model.bin").unlink()
    else:
        (folder / "model.bin").write_bytes(others[change])
    try:
        tab = tabs(address, (*OWN, address), expected="404" if change == "none" else None)
        message = "beside its file model.bin" if change == "none" else "The file is damaged"
        tab.get_by_text(message).wait_for()
    finally:
        (folder / "model.bin").write_bytes(content)


def test_a_page_of_a_web_site_on_a_disk_says_what_it_needs(tabs, web_site):
    folder, _ = web_site
    tab = tabs((folder / "index.html").as_uri(), OWN, expected="model.bin")
    tab.get_by_text("beside its file model.bin").wait_for()
