"""The page in Chromium, with a real server; skipped without playwright or Chromium (CI has both)."""

import gzip
import json
import os

import pytest

playwright = pytest.importorskip("playwright.sync_api")

from glassformer.serve.web import page as served_page
from tests.inspection.test_browser import CHROMIUM, FLAGS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists(CHROMIUM), reason="needs Chromium"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
TEXT = "The cat sat on the mat. Where are you going?\nA dog."
LONG = "Where are you going with that book?"
HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script> </textarea><b>bold</b>."


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, server):
    """A function that opens the page. At the end there were no errors, no dialogs and no requests to other origins."""
    contexts, problems = [], []

    def open_page(*, width=1280, scheme="light", locale="en-US"):
        viewport = {"width": width, "height": 900}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, locale=locale)
        contexts.append(context)
        page = context.new_page()
        own = f"http://127.0.0.1:{server.port}/"
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on(
            "request", lambda request: request.url.startswith((own, "data:", "blob:")) or problems.append(request.url)
        )
        page.goto(own)
        page.wait_for_selector(".translator")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems


def until(page, expression, argument=None):
    """Wait until an expression is true; `wait_for_function` needs eval, which the policy of the page forbids."""
    for _ in range(200):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not true: {expression}")


def typed(page, text):
    """Type a text, and wait for its translation."""
    page.fill(".mirror textarea", text)
    until(page, "document.querySelector('.output [data-part]') && !document.querySelector('.waiting')")


def words(page):
    return [word.strip() for word in page.locator(".word").all_text_contents()]


def test_the_translation_appears_while_one_types(opened, server):
    page = opened()
    typed(page, TEXT)
    sentences = ["The cat sat on the mat.", "Where are you going?", "A dog."]
    found = server.translate(sentences).json["translatedText"]
    assert page.locator(".output").text_content() == f"{found[0]} {found[1]}\n{found[2]}"
    assert TEXT not in page.url
    assert page.url.endswith("#en-de")


def test_words_that_belong_together_are_highlighted(opened, server):
    page = opened()
    text = LONG  # a sentence of which the random model makes several words
    typed(page, text)
    alignment = server.translate(text, align=True).json["alignment"]
    source, target = alignment[-1]
    page.locator(".word").nth(target).hover()
    assert "on" in page.locator(".copy span").nth(source).get_attribute("class")
    page.locator(".word").nth(0).focus()
    page.keyboard.press("ArrowRight")
    assert "on" in page.locator(".word").nth(1).get_attribute("class")


def test_an_alternative_is_chosen_with_the_keyboard_alone(opened):
    page = opened()
    page.keyboard.type(LONG)
    page.wait_for_selector(".word")
    page.locator(".mirror textarea").focus()
    for _ in range(9):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('word')"):
            break
    first = words(page)[0]
    page.keyboard.press("Alt+ArrowDown")
    page.wait_for_selector(".menu li:focus")
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate("document.activeElement.querySelector('b').textContent")
    page.keyboard.press("Enter")
    until(page, "word => document.querySelector('.word').textContent === word", chosen)
    assert words(page)[0] == chosen != first


def test_a_correction_is_kept_on_the_server(opened, folder):
    page = opened()
    typed(page, "The old dog.")
    page.get_by_role("button", name="Correct").click()
    page.fill(".edit", "Der alte Hund.")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=kept for training")
    assert " ".join(words(page)) == "Der alte Hund."
    lines = (folder / "corrections" / "corrections.en-de.jsonl").read_text().splitlines()
    assert json.loads(lines[-1]) == {"src": "The old dog.", "tgt": "Der alte Hund."}
    with page.expect_download() as download:
        page.get_by_role("button", name="Download corrections (1)").click()
    assert json.loads(open(download.value.path()).read()) == {"src": "The old dog.", "tgt": "Der alte Hund."}


def test_terms_of_the_glossary_are_in_the_translation(opened):
    page = opened()
    page.get_by_text("Glossary").click()
    page.fill("#glossary", "cat = Katzentier")
    typed(page, "The cat sat.")
    assert "Katzentier" in page.inner_text(".output")


def test_a_file_is_translated(opened, server):
    page = opened()
    page.get_by_text("Translate a file").click()
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"The cat.\n\nA dog.\n"})
    link = page.get_by_role("link", name="Download a.txt")
    with page.expect_download() as download:
        link.click()
    first, second = server.translate(["The cat.", "A dog."]).json["translatedText"]
    assert open(download.value.path()).read() == f"{' '.join(first.split())}\n\n{' '.join(second.split())}\n"


def test_markup_in_texts_stays_text(opened):
    page = opened()
    typed(page, HOSTILE)
    assert page.locator(".translator img, .translator script, .output b").count() == 0
    page.get_by_role("button", name="sentiment").click()
    page.fill(".form:visible textarea", HOSTILE)
    page.locator(".form:visible").get_by_text("Run").click()
    page.wait_for_selector(".form:visible meter")
    page.get_by_role("button", name="tagger").click()
    page.fill(".form:visible textarea", HOSTILE)
    page.locator(".form:visible").get_by_text("Run").click()
    page.wait_for_selector(".form:visible .tagged")
    assert page.inner_text(".tagged").count("<script>") <= 1
    assert page.locator(".form:visible img").count() == 0


def test_generated_text_is_streamed(opened, server):
    page = opened()
    page.get_by_role("button", name="lm").click()
    form = page.locator(".form:visible")
    form.locator("textarea").fill("The cat")
    form.get_by_label("Maximum number of tokens").fill("7")
    form.get_by_label("Temperature").fill("0")
    form.get_by_text("Run").click()
    body = {"model": "lm", "prompt": "The cat", "max_tokens": 7, "temperature": 0}
    expected = server.post("/v1/completions", body).json["choices"][0]["text"]
    until(page, "text => document.querySelector('.generated')?.textContent === text", expected)


def test_look_inside_shows_the_inspection(opened):
    page = opened()
    typed(page, "The cat.")
    page.get_by_role("button", name="Look inside").click()
    frame = page.frame_locator("dialog iframe")
    frame.get_by_role("heading", name="glassformer inspect").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.wide", state="detached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_windows_have_no_horizontal_scrolling(opened, scheme):
    page = opened(width=320, scheme=scheme)
    typed(page, TEXT)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_role("button", name="sentiment").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_interface_is_french_where_the_browser_is(opened):
    page = opened(locale="fr-FR")
    assert page.get_by_role("button", name="Traduction").is_visible()
    assert page.evaluate("document.documentElement.lang") == "fr"
    page.get_by_role("button", name="English").click()
    page.wait_for_selector("text=Glossary")


def test_the_page_is_small_and_its_policy_names_its_script():
    html, policy = served_page()
    assert len(gzip.compress(html.encode())) < 60_000
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
