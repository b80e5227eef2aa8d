"""What people do on the page: long texts, files, glossary, corrections; in Chromium, with a real server."""

import ast
import io
import json
import subprocess
import sys

import docx
import pytest

from tests.serve.models import running
from tests.serve.test_page import LONG, TEXT, asked, changed, opened, pytestmark, term, typed, until

__all__ = ["opened", "pytestmark"]
MANY = " ".join(f"{LONG[:-1]} {i}? The {i} small cats, which are old, sleep in the garden." for i in range(150))
WORD_COUNT = "document.querySelectorAll('.output .word').length"


def translations(texts, suffix="!"):
    """An answer of the server that translates each text to itself with a suffix."""
    return {"translatedText": [f"{text}{suffix}" for text in texts]}


def echo(route):
    """A handler that answers requests for translations at once, without the model."""
    body = json.loads(route.request.post_data)
    route.fulfill(json=translations(body["q"]) if isinstance(body["q"], list) else {"translatedText": body["q"]})


def two_directions(route):
    """A handler that adds the direction from German to English, which has no model, to the languages."""
    rows = route.fetch().json()
    route.fulfill(json=[{**row, "targets": ["en", "de"]} for row in rows])


def drop(page, *names):
    """Drop files on the page."""
    page.evaluate(
        """names => {
          const data = new DataTransfer();
          for (const name of names) data.items.add(new File(["The cat.\\n\\nA dog.\\n"], name));
          for (const type of ["dragover", "drop"]) {
            document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
          }
        }""",
        list(names),
    )


def held(page, pattern="**/translate"):
    """Let requests wait; the result is a list of their routes."""
    routes = []
    page.route(pattern, lambda route: routes.append(route))
    return routes


# Texts


def test_a_swap_during_a_translation_keeps_the_text(opened):
    page = opened(routes={"**/languages": two_directions})
    routes = held(page)
    page.fill(".mirror textarea", TEXT)
    until(page, "document.querySelectorAll('.waiting').length === 3")
    page.get_by_role("button", name="Swap languages").click()
    assert page.input_value(".mirror textarea") == TEXT
    page.route("**/translate", echo)
    echo(routes[-1])
    until(page, "document.querySelector('.output .sentence') && !document.querySelector('.waiting')")
    assert "…" not in page.inner_text(".output")
    page.get_by_role("button", name="Swap languages").click()  # of a whole translation
    until(page, "document.querySelector('.mirror textarea').value.startsWith('The cat sat on the mat.!')")


def test_the_text_is_translated_after_a_restart_of_the_server_without_a_key_press(opened, tabs, folder):
    with running(folder, models=("en-de",)) as first:
        own = f"http://127.0.0.1:{first.port}/"
        page = tabs(own, (own, "data:", "blob:"), locale="en-US", expected="ERR_CONNECTION_REFUSED")
        page.wait_for_selector(".translator")
        typed(page, "The cat.")
    page.fill(".mirror textarea", LONG)
    page.wait_for_selector("text=trying again in")
    with running(folder, models=("en-de",), port=first.port):
        page.wait_for_selector(".word")
        assert page.locator(".translator .status").first.text_content() == ""


def test_waits_grow_to_a_minute_with_a_button_for_another_try(opened):
    page = opened(routes={"**/translate": lambda route: route.abort()}, expected="ERR_FAILED")
    found = asked(page)
    page.clock.install()
    page.fill(".mirror textarea", "The cat.")
    for seconds in (2, 4, 8, 16, 32, 60, 60):
        page.wait_for_selector(f"text=trying again in {seconds} s")
        assert page.get_by_role("button", name="Try again").count() == (seconds >= 8)
        n = len(found)
        page.locator(".mirror textarea").press("End")  # no key hides what is waited for
        page.keyboard.type(" ")
        page.clock.fast_forward(1000 * seconds - 500)
        assert page.locator(f"text=trying again in {seconds} s").count() == 1
        assert len(found) == n
        with page.expect_request("**/translate"):
            page.clock.fast_forward(1000)
    page.wait_for_selector("text=trying again in 60 s")
    page.unroute("**/translate")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".word")


def test_a_text_in_the_target_language_switches_the_target(opened):
    page = opened(routes={"**/languages": two_directions})
    page.route("**/translate", lambda route: route.fulfill(json={
        **translations(json.loads(route.request.post_data)["q"]),
        "detectedLanguage": [{"language": "de", "confidence": 90}] * len(json.loads(route.request.post_data)["q"]),
    }))  # fmt: skip
    page.get_by_label("Source language").select_option("auto")
    page.get_by_label("Target language").select_option("de")
    typed(page, "Die Katze.")
    until(page, "document.querySelectorAll('select')[1].value === 'en'")
    assert page.locator("select option:checked").first.text_content() == "Detected: German"
    assert page.url.endswith("#auto-en")


def test_a_long_text_has_skeletons_and_a_count_of_sentences(opened):
    page = opened()
    routes = held(page)
    page.fill(".mirror textarea", MANY)
    until(page, "document.querySelectorAll('.skeleton').length === 300")
    assert page.locator(".progress").text_content() == "0 of 300 sentences"
    echo(routes[0])
    until(page, "document.querySelector('.progress').textContent === '20 of 300 sentences'")
    assert page.locator(".skeleton").count() == 280
    page.route("**/translate", echo)
    for route in routes[1:]:
        echo(route)
    until(page, "document.querySelector('.progress').textContent === ''")
    assert page.locator(".skeleton").count() == 0


def test_a_key_press_in_a_long_text_sends_and_draws_one_sentence(opened):
    page = opened()
    page.route("**/translate", echo)
    typed(page, MANY)
    assert page.evaluate(WORD_COUNT) > 2000
    found = asked(page)
    page.evaluate("""() => {
      window.touched = 0;
      new MutationObserver((records) => {
        for (const { addedNodes, removedNodes } of records) window.touched += addedNodes.length + removedNodes.length;
      }).observe(document.querySelector(".translator"), { childList: true, subtree: true });
    }""")
    area = page.locator(".mirror textarea")
    middle = MANY.index("75 small")
    area.evaluate("(area, at) => { area.focus(); area.setSelectionRange(at, at); }", middle)
    page.keyboard.type("very ")
    until(
        page, "document.querySelector('.output').textContent.includes('very 75') && !document.querySelector('.waiting')"
    )
    assert {len(texts) for texts in found} == {1}
    assert page.evaluate("window.touched") < 200


def test_words_are_one_stop_of_the_tab_key(opened):
    page = opened()
    page.route("**/translate", echo)
    typed(page, MANY)
    assert page.locator(".output [tabindex='0']").count() == 1
    page.locator(".output [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.word')[1]")
    page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.classList.contains('word')")


def test_the_words_at_the_caret_are_highlighted_when_the_translation_comes(opened):
    page = opened(routes={"**/translate": changed(alignment=[[[6, 0]]])})
    typed(page, LONG)
    assert page.locator(".word.on").count() == 1
    assert "on" in page.locator(".word").first.get_attribute("class")


def test_the_bars_stay_visible_while_scrolling(opened):
    page = opened()
    page.route("**/translate", echo)
    typed(page, MANY)
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 3000)
    until(page, "scrollY > 2000")
    for selector in (".languages", ".pane:last-child > .buttons"):
        box = page.locator(selector).bounding_box()
        assert box["y"] >= -1
        assert box["y"] + box["height"] <= 901
    assert page.get_by_role("button", name="Copy").evaluate(
        """node => {
          const box = node.getBoundingClientRect();
          return document.elementFromPoint(box.x + 5, box.y + 5) === node;
        }"""
    )


def test_the_text_is_there_after_going_back(opened):
    page = opened(expected="404")  # the other page has no icon
    typed(page, LONG)
    page.evaluate("location.href = location.origin + '/frontend/settings'")
    page.wait_for_selector("text=charLimit")
    page.go_back()
    until(page, "text => document.querySelector('.mirror textarea')?.value === text", LONG)
    until(page, f"{WORD_COUNT} > 0")


def test_texts_from_right_to_left_have_their_direction_and_language(opened):
    def arabic(route):
        rows = route.fetch().json()
        route.fulfill(json=[*rows, {"code": "ar", "name": "Arabic", "targets": ["de"]}])

    page = opened(routes={"**/languages": arabic, "**/translate": echo})
    page.get_by_label("Source language").select_option("ar")
    typed(page, "نامت القطة. شربت الماء.")
    for selector, language in ((".mirror textarea", "ar"), (".copy", "ar"), (".output", "de")):
        node = page.locator(selector)
        assert (node.get_attribute("lang"), node.get_attribute("dir")) == (language, "auto")
        assert node.evaluate("node => node.matches(':dir(rtl)')")
    page.get_by_role("button", name="Correct").click()
    assert page.locator(".edit").evaluate("node => node.matches(':dir(rtl)')")


def test_targets_have_44_pixels_on_a_touch_screen(opened):
    page = opened(width=390, has_touch=True, is_mobile=True)
    typed(page, LONG)
    page.locator(".word").first.tap()
    page.wait_for_selector(".menu li:focus")
    small = """() => [...document.querySelectorAll("button, select, summary, input, [role=option], label.switch")]
      .map((node) => [node, (node.closest(".switch") ?? node).getBoundingClientRect()])
      .filter(([node, box]) => box.width && node.checkVisibility() && (box.height < 44 || box.width < 44))
      .map(([node]) => node.outerHTML)"""
    assert page.evaluate(small) == []
    page.keyboard.press("Escape")
    page.get_by_text("Glossary").tap()
    page.get_by_role("button", name="Code").tap()
    assert page.evaluate(small) == []
    page.keyboard.press("Escape")
    for name in ("sentiment", "lm"):
        page.get_by_role("button", name=name).tap()
        assert page.evaluate(small) == []


# Files


def test_dropped_files_have_progress_and_errors_of_their_own(opened):
    page = opened(expected="400")
    drop(page, "a.txt", "b.exe", "c.txt")
    rows = page.locator(".files li")
    page.get_by_role("link", name="Download a.txt").wait_for()
    page.get_by_role("link", name="Download c.txt").wait_for()
    assert rows.locator("b").all_text_contents() == ["a.txt", "b.exe", "c.txt"]
    assert rows.locator(".status").nth(0).text_content() == "Translated"
    assert ".exe" in rows.locator(".status.problem").text_content()
    assert rows.locator("button", has_text="Try again").count() == 1
    assert page.locator(".files progress").count() == 0


def test_a_file_shows_how_many_of_its_sentences_are_translated(opened):
    page = opened(routes={"**/translate_file/progress/*": lambda route: route.fulfill(json={"done": 34, "total": 290})})
    routes = held(page, "**/translate_file")
    drop(page, "a.txt", "b.txt")
    page.wait_for_selector("text=34 of 290 sentences")
    assert page.locator(".files progress").first.evaluate("bar => [bar.value, bar.max]") == [34, 290]
    assert page.locator(".files .status").nth(1).text_content() == "Waiting"
    page.unroute("**/translate_file")
    routes[0].continue_()
    page.get_by_role("link", name="Download b.txt").wait_for()


def test_a_file_becomes_a_translation_memory(opened):
    page = opened()
    page.get_by_role("tab", name="Files").click()
    page.get_by_label("Result").select_option("tmx")
    drop(page, "a.txt")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download a.txt").click()
    assert download.value.suggested_filename.endswith(".tmx")
    assert "<seg>The cat.</seg>" in open(download.value.path()).read()


def test_the_glossary_is_used_for_a_packed_file_whose_language_is_detected(opened):
    """Its language cannot be detected by its bytes."""
    file, document = io.BytesIO(), docx.Document()
    document.add_paragraph("The cat sat.")
    document.save(file)
    page = opened(routes={"**/detect": lambda route: route.fulfill(json=[{"language": "de", "confidence": 90}])})
    page.get_by_text("Glossary").click()
    term(page, 0, "cat", "Katzentier")
    page.get_by_label("Source language").select_option("auto")
    page.get_by_label("Target language").select_option("de")
    page.get_by_role("tab", name="Files").click()
    page.set_input_files("#file", {"name": "a.docx", "mimeType": "application/zip", "buffer": file.getvalue()})
    with page.expect_download() as download:
        page.get_by_role("link", name="Download a.docx").click()
    assert "Katzentier" in docx.Document(download.value.path()).paragraphs[0].text


# Glossary and translation memory


def test_the_terms_and_the_memory_of_the_server_are_used_when_they_are_chosen(opened):
    page = opened()
    typed(page, "The cat is in the memory. The cat.")
    assert "Gedächtnis" not in page.inner_text(".output")
    page.get_by_label("Translation memory").select_option("old")
    until(page, "document.querySelector('.recalled')?.textContent === 'Die Katze hat ein Gedächtnis.'")
    title = "From the translation memory, 100% equal: The cat is in the memory."
    assert page.get_attribute(".recalled", "title") == title
    page.get_by_label("Terms of the server").select_option("animals")
    until(page, "document.querySelector('.output').textContent.includes('Kater')")
    page.reload()
    page.wait_for_selector(".recalled")
    assert page.get_by_label("Terms of the server").input_value() == "animals"
    page.get_by_role("tab", name="Files").click()
    drop(page, "a.txt")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download a.txt").click()
    assert "Kater" in open(download.value.path()).read()


def test_the_domain_of_the_model_is_used_when_it_is_chosen(opened, server):
    page = opened()
    text = "The cat sat on the mat."
    typed(page, text)
    page.get_by_label("Domain").select_option("law")
    tagged = server.post("/translate", {"q": text, "source": "en", "target": "de", "tag": "law"}).json["translatedText"]
    assert tagged != server.post("/translate", {"q": text, "source": "en", "target": "de"}).json["translatedText"]
    until(page, "(text) => document.querySelector('.output').textContent === text", tagged)
    page.get_by_role("button", name="Look inside").click()
    page.frame_locator("dialog iframe").get_by_text("<tag:law>").first.wait_for()


def test_two_tabs_keep_the_terms_of_each_other(opened):
    one = opened()
    two = one.context.new_page()
    two.goto(one.url)
    for page in (one, two):
        page.get_by_text("Glossary").click()
    term(two, 0, "house", "")  # is being typed
    term(one, 0, "cat", "Kater")
    until(two, "document.querySelector('.glossary summary').textContent === 'Glossary (1)'")
    assert two.locator(".glossary td input").nth(2).input_value() == "house"
    term(two, 1, "house", "Haus")
    until(one, "document.querySelector('.glossary summary').textContent === 'Glossary (2)'")
    assert one.evaluate("localStorage.getItem('glossary.en-de')") == '[["cat","Kater"],["house","Haus"]]'


def test_lines_of_a_table_are_terms(opened):
    page = opened()
    page.get_by_text("Glossary").click()
    page.evaluate("""() => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text", "cat\\tKater\\r\\ndog\\tHund | Hündchen\\n");
      const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
      document.querySelector(".glossary td input").dispatchEvent(event);
    }""")
    assert page.locator(".glossary summary").text_content() == "Glossary (2)"
    page.set_input_files(
        "#glossary-file", {"name": "t.tsv", "mimeType": "text/plain", "buffer": b"house\tHaus\nhome = Heim\n"}
    )
    until(page, "document.querySelector('.glossary summary').textContent === 'Glossary (4)'")
    fields = [field.input_value() for field in page.locator(".glossary td input").all()]
    assert fields == ["cat", "Kater", "dog", "Hund | Hündchen", "house", "Haus", "home", "Heim", "", ""]
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert open(download.value.path()).read() == "cat\tKater\ndog\tHund | Hündchen\nhouse\tHaus\nhome\tHeim\n"


def test_terms_of_the_former_glossary_are_taken_over_once(opened):
    page = opened()
    page.evaluate("localStorage.setItem('glossary', 'cat = Kater\\nno term\\ndog=Hund')")
    page.reload()
    page.get_by_text("Glossary (2)").click()
    assert "earlier version" in page.inner_text(".glossary .problem")
    assert page.evaluate("localStorage.getItem('glossary.en-de')") == '[["cat","Kater"],["dog","Hund"]]'
    page.reload()
    page.get_by_text("Glossary (2)").click()
    assert page.inner_text(".glossary .problem") == ""


# Alternatives and corrections


def correct(page, text):
    page.get_by_role("button", name="Correct", exact=True).click()
    page.fill(".edit", text)
    page.get_by_role("button", name="Save").click()


def test_a_correction_is_undone_after_a_reload(opened):
    page = opened()
    typed(page, TEXT)
    before = page.locator(".output").text_content()
    correct(page, "Ganz anders.")
    page.reload()
    page.wait_for_selector(".sentence.corrected")
    page.get_by_role("button", name="Undo").click()
    until(page, "(text) => document.querySelector('.output').textContent === text", before)
    assert not page.get_by_role("button", name="Undo").is_visible()


def test_keys_of_an_input_method_do_not_end_the_editor(opened):
    page = opened()
    typed(page, TEXT)
    page.get_by_role("button", name="Correct", exact=True).click()
    page.fill(".edit", "Ganz")
    press = "(field, init) => field.dispatchEvent(new KeyboardEvent('keydown', { ...init, bubbles: true }))"
    for key in ("Enter", "Escape"):
        page.locator(".edit").evaluate(press, {"key": key, "isComposing": True})
    page.locator(".edit").evaluate(press, {"key": "Enter", "keyCode": 229})  # Safari
    assert page.input_value(".edit") == "Ganz"
    page.press(".edit", "Enter")
    page.wait_for_selector(".sentence.corrected")


def test_nothing_is_swapped_or_copied_while_a_translation_is_edited(opened):
    page = opened()
    typed(page, TEXT)
    page.evaluate("() => { navigator.clipboard.writeText = async () => { window.isCopied = true; }; }")
    page.get_by_role("button", name="Correct", exact=True).click()
    page.press(".edit", "Alt+C")
    assert page.evaluate("window.isCopied === undefined")
    page.press(".edit", "Enter")
    page.press(".mirror textarea", "Control+Alt+C")  # AltGr
    assert page.evaluate("window.isCopied === undefined")
    page.press(".mirror textarea", "Alt+C")
    until(page, "window.isCopied")


def test_a_corrected_sentence_is_marked_and_the_correction_is_undone(opened):
    page = opened()
    typed(page, TEXT)
    before = page.locator(".output").text_content()
    correct(page, "Ganz anders.")
    assert page.locator(".sentence.corrected").all_text_contents() == ["Ganz anders."]
    assert page.locator(".corrected").get_attribute("title") == "Corrected"
    page.get_by_role("button", name="Undo").click()
    assert page.locator(".corrected").count() == 0
    assert page.locator(".output").text_content() == before
    assert page.get_by_role("button", name="Undo").count() == 0
    assert "has stored" in page.locator(".translator .status").first.text_content()


def test_saving_without_a_change_stores_nothing(opened, folder):
    page = opened()
    typed(page, "The old man.")
    stored = folder / "corrections" / "corrections.en-de.jsonl"
    before = stored.read_text() if stored.exists() else ""
    correct(page, page.locator(".output").text_content())
    assert page.get_by_role("button", name="Download corrections").count() == 0
    assert page.locator(".corrected").count() == 0
    page.wait_for_timeout(300)
    assert (stored.read_text() if stored.exists() else "") == before


def test_another_translation_of_the_whole_sentence_is_chosen(opened, server):
    page = opened()
    typed(page, LONG)
    others = server.translate(LONG, alternatives=3).json["alternatives"]
    page.locator(".word").first.click()
    page.wait_for_selector(".menu li:focus")
    options = page.locator(".menu .sentence")
    shown = [text.strip() for text in options.all_text_contents()]
    assert shown == [text.strip() for text in others if text != page.locator(".output").text_content()] != []
    options.first.click()
    until(page, "text => document.querySelector('.output').textContent.trim() === text", shown[0])


# The request as code


def test_the_request_as_code_runs(opened, server):
    page = opened()
    text = 'It\'s "the" cat, $HOME `x` \\n.\nA dog.'
    page.get_by_text("Glossary").click()
    term(page, 0, "dog", "Hündchen's")
    typed(page, text)
    page.get_by_role("button", name="Code").click()
    curl, python = page.locator("dialog pre").all_text_contents()
    expected = server.translate(text, terms=[["dog", "Hündchen's"]]).json
    for command, read in (
        (["bash", "-c", f"{curl} --silent --show-error"], json.loads),
        ([sys.executable, "-c", python], ast.literal_eval),
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert read(done.stdout) == expected


def test_the_request_of_a_form_as_code_runs(opened):
    page = opened()
    page.get_by_role("button", name="sentiment").click()
    form = page.locator(".form:visible")
    form.locator("textarea").first.fill("The cat's here.")
    form.get_by_role("button", name="Code").click()
    for i, text in enumerate(page.locator("dialog pre").all_text_contents()):
        command = ["bash", "-c", f"{text} --silent"] if i == 0 else [sys.executable, "-c", text]
        assert '"score"' in subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.replace("'", '"')


# Forms


@pytest.mark.parametrize(
    ("inputs", "labels", "body"),
    [
        ([], ["Text", "Second text, for a model of text pairs"], "a"),
        (["text"], ["Text"], "a"),
        (["text", "text_pair"], ["First text", "Second text"], {"text": "a", "text_pair": "b"}),
    ],
)
def test_a_classifier_has_the_fields_that_it_was_trained_with(opened, inputs, labels, body):
    def handle(route):
        route.fulfill(json=[{**model, "inputs": inputs} for model in route.fetch().json()])

    page = opened(routes={"**/models": handle})
    page.get_by_role("button", name="sentiment").click()
    form = page.locator(".form:visible")
    assert form.locator("label").all_text_contents() == labels
    form.locator("textarea").first.fill("a")
    if len(inputs) == 2:
        form.locator("textarea").last.fill("b")
    with page.expect_request("**/models/sentiment") as request:
        form.get_by_text("Run").click()
    assert json.loads(request.value.post_data)["inputs"] == body
    form.locator("[role=meter]").first.wait_for()
