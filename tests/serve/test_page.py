"""The page in Chromium, with a real server; skipped without playwright or Chromium (CI has both)."""

import gzip
import json

import pytest

from glassformer.serve.web import page as served_page

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]
TEXT = "The cat sat on the mat. Where are you going?\nA dog."
LONG = "Where are you going with that book?"
HOSTILE = "<img src=x onerror=alert(1)> <script>alert(2)</script> </textarea><b>bold</b>."


@pytest.fixture
def opened(tabs, server):
    """A function that opens the page."""

    def open_page(*, locale="en-US", **options):
        own = f"http://127.0.0.1:{server.port}/"
        page = tabs(own, (own, "data:", "blob:"), locale=locale, **options)
        page.wait_for_selector(".translator")
        return page

    return open_page


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
    until(page, "document.querySelector('.output .sentence') && !document.querySelector('.waiting')")


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


def asked(page):
    """The lists of sentences that the page asks the server to translate, as they come."""
    found = []

    def listen(request):
        if request.url.endswith("/translate"):
            found.append(json.loads(request.post_data)["q"])

    page.on("request", listen)
    return found


def changed(**fields):
    """A handler that changes fields of the answers of the server."""

    def handle(route):
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), **fields})

    return handle


def test_only_sentences_that_changed_are_sent(opened):
    page = opened()
    found = asked(page)
    typed(page, TEXT)
    typed(page, TEXT.replace("dog", "cat"))
    typed(page, TEXT)
    assert found == [["The cat sat on the mat.", "Where are you going?", "A dog."], ["A cat."]]


def test_sentences_do_not_end_at_abbreviations(opened):
    page = opened()
    found = asked(page)
    typed(page, "Mr. Old met Dr. J. Mann on 3. May. It was late, e.g. dark... or not! (Yes.) No")
    assert found == [["Mr. Old met Dr. J. Mann on 3. May.", "It was late, e.g. dark... or not!", "(Yes.)", "No"]]


def test_sentences_of_other_scripts_end_at_their_marks(opened):
    page = opened()
    found = asked(page)
    sentences = ["「本当？」と彼は聞いた。", "“好的。”", "他说。", "すごい！！", "行こう。", "यह घर है।", "वह गया। "]
    typed(page, "「本当？」と彼は聞いた。“好的。”他说。すごい！！行こう。\nयह घर है। वह गया। ")
    assert found == [[sentence.strip() for sentence in sentences]]


@pytest.mark.parametrize(
    ("text", "translations", "expected"),
    [
        ("こんにちは。元気ですか。\nはい。", ["Hello.", "How are you?", "Yes."], "Hello. How are you?\nYes."),
        ("Hello. How are you?\nYes.", ["こんにちは。", "元気ですか。", "はい。"], "こんにちは。元気ですか。\nはい。"),
    ],
)
def test_sentences_have_the_space_of_the_script_of_the_translation(opened, text, translations, expected):
    page = opened(routes={"**/translate": changed(translatedText=translations, words=[[], [], []])})
    typed(page, text)
    assert page.locator(".output").text_content() == expected


def test_the_last_translation_is_shown_until_there_is_a_new_one(opened):
    page = opened()
    typed(page, LONG)
    before = page.locator(".output").text_content()
    page.route("**/translate", lambda route: None)  # no answer
    page.locator(".mirror textarea").press("End")
    page.keyboard.type(" My")
    assert page.locator(".waiting.skeleton").all_text_contents() == [""]
    page.fill(".mirror textarea", LONG[:-6])
    assert page.locator(".waiting").all_text_contents() == [before]


@pytest.fixture
def refuse_once():
    """A handler of routes that answers the first request as a busy server does."""
    refused = []

    def handle(route):
        if refused:
            route.fallback()
        else:
            refused.append(route)
            route.fulfill(status=503, headers={"Retry-After": "1"}, json={"error": "busy"})

    return handle


def test_a_busy_server_is_asked_again(opened, refuse_once):
    page = opened(routes={"**/translate": refuse_once}, expected="503")
    page.fill(".mirror textarea", LONG)
    page.wait_for_selector("text=trying again in 1 s")
    page.wait_for_selector(".word")
    assert page.locator(".translator .status").first.text_content() == ""


def test_a_form_asks_a_busy_server_again(opened, refuse_once):
    page = opened(routes={"**/models/sentiment": refuse_once}, expected="503")
    page.get_by_role("button", name="sentiment").click()
    form = page.locator(".form:visible")
    form.locator("textarea").first.fill("The cat.")
    form.get_by_text("Run").click()
    page.wait_for_selector("text=trying again in 1 s")
    page.wait_for_selector(".form:visible [role=meter]")
    assert form.locator(".status").text_content() == ""
    assert form.get_by_role("button", name="Stop").count() == 0


def test_what_was_refused_for_want_of_a_key_is_asked_again_with_it(opened):
    def settings(route):
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "keyRequired": True})

    def refuse_without_key(route):
        if route.request.headers.get("authorization") == "Bearer k":
            route.fallback()
        else:
            route.fulfill(status=403, json={"error": "API key, please"})

    routes = {"**/frontend/settings": settings, "**/translate": refuse_without_key}
    page = opened(routes=routes, expected="403")
    page.fill(".mirror textarea", LONG)
    page.wait_for_selector("text=API key, please")
    page.get_by_label("API key").fill("k")
    page.keyboard.press("Enter")
    page.wait_for_selector(".word")
    assert page.locator(".translator .status").first.text_content() == ""


def test_uncertain_words_have_their_probability_as_a_tooltip(opened, server):
    page = opened(routes={"**/translate": changed(words=[[["a", 0.9], ["b", 0.25]]], translatedText=["a b"])})
    typed(page, "The cat.")
    assert page.locator(".word.uncertain").all_text_contents() == ["b"]
    assert page.locator(".word.uncertain").get_attribute("title") == "Uncertain: probability 0.25"


def test_words_with_a_probability_are_found_beside_those_without(opened, server):
    words = [["Le", 0.9], ["chat", 0.2], ["a", 0.9], ["dormi", 0.1]]
    page = opened(routes={"**/translate": changed(words=[words], translatedText=["- LE CHAT {0} dormi"])})
    typed(page, "- THE CAT {0} slept.")
    assert page.locator(".word.uncertain").all_text_contents() == ["CHAT", "dormi"]


def test_no_menu_opens_after_one_has_typed_on(opened):
    page = opened()
    typed(page, TEXT)
    held = []

    def hold(route):
        held.append(route) if "alternatives" in route.request.post_data_json else route.fallback()

    page.route("**/translate", hold)
    page.locator(".word").first.click()
    until(page, "document.querySelector('.output').getAttribute('aria-busy') === 'true'")
    page.press(".mirror textarea", "End")
    page.keyboard.type(" A")
    for route in held:
        route.fallback()
    until(page, "document.querySelector('.output').getAttribute('aria-busy') === null")
    assert len(held) == 2
    assert page.locator(".menu").count() == 0
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"


def test_the_keys_of_a_mac_are_named(browser, server):
    for platform, keys in (("MacIntel", "Ctrl + Alt + S"), ("Linux x86_64", "Alt + S")):
        page = browser.new_page()
        page.add_init_script(f"Object.defineProperty(Navigator.prototype, 'platform', {{ get: () => '{platform}' }})")
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.wait_for_selector(".translator")
        found = page.locator("dialog kbd").all_text_contents()
        assert [key for key in found if key.endswith("+ S")] == [keys]
        assert "Alt + ↓" in found
        assert page.get_by_label("Swap languages").get_attribute("title").endswith(f"({keys})")
        page.close()


def test_markup_in_outputs_of_models_stays_text(opened):
    fields = {"translatedText": [HOSTILE], "missing": [[HOSTILE]], "continuations": [{"text": HOSTILE}]}
    page = opened(routes={"**/translate": changed(**fields)})
    typed(page, "The cat.")
    assert page.locator(".output").text_content() == HOSTILE
    page.locator(".word").nth(1).click()
    page.wait_for_timeout(300)
    assert page.locator("body img, body b img, .output b").count() == 0


def test_there_is_one_menu_however_often_one_clicks(opened):
    page = opened()
    typed(page, LONG)
    page.evaluate("[1, 0, 0].forEach((i) => document.querySelectorAll('.word')[i].click())")
    page.wait_for_selector(".menu li:focus")
    page.wait_for_timeout(500)
    assert page.locator(".menu").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".menu").count() == 0
    assert page.evaluate("document.activeElement.classList.contains('word')")


def test_the_translation_is_copied(opened):
    page = opened()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    typed(page, LONG)
    expected = page.locator(".output").text_content()
    for without_clipboard in (False, True):  # as on a page at http://… of another machine
        page.evaluate("navigator.clipboard.writeText('')")
        if without_clipboard:
            page.evaluate("window.kept = navigator.clipboard")
            page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.get_by_role("button", name="Copy").click()
        page.wait_for_selector("text=Copied")
        copied = page.evaluate("(window.kept ?? navigator.clipboard).readText()")
        assert copied.strip() == expected.strip()


def test_a_file_that_is_dropped_is_translated(opened):
    page = opened()
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["The cat.\\n"], "b.txt", { type: "text/plain" }));
          for (const type of ["dragover", "drop"]) {
            document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
          }
        }"""
    )
    page.get_by_role("link", name="Download b.txt").wait_for()
    assert page.locator(".dropping").count() == 0


def test_language_detection_is_offered_where_a_model_has_it(opened, server):
    def without(route):
        models = [{**model, "features": []} for model in route.fetch().json()]
        route.fulfill(json=models)

    assert opened().locator("option[value=auto]").count() == 1
    page = opened(routes={"**/models": without})
    assert page.locator("option[value=auto]").count() == 0
    typed(page, LONG)


def term(page, row, source, target):
    """Fill a row of the table of terms."""
    for field, text in zip((2 * row, 2 * row + 1), (source, target), strict=True):
        page.locator(".glossary td input").nth(field).fill(text)


def test_rows_of_the_glossary_that_are_not_terms_are_named(opened):
    page = opened()
    page.get_by_text("Glossary").click()
    term(page, 0, "cat", "Kater")
    term(page, 1, "dog", "")
    assert "Row 2" in page.inner_text(".glossary .problem")
    term(page, 1, "dog", "Hund")
    assert page.inner_text(".glossary .problem") == ""


def test_of_a_long_glossary_the_first_terms_are_used_and_all_are_kept(opened):
    page = opened()
    rows = [("cat", "Kater"), *((f"word{i}", f"Wort{i}") for i in range(505))]
    text = "".join("\t".join(row) + "\n" for row in rows).encode()
    page.set_input_files("#glossary-file", {"name": "a.tsv", "mimeType": "text/plain", "buffer": text})
    typed(page, "The cat sat.")
    until(page, "document.querySelector('.output').textContent.includes('Kater')")
    assert page.text_content(".glossary .problem") == "Only the first 500 terms are used."
    page.reload()
    until(page, "document.querySelector('.glossary summary')?.textContent === 'Glossary (506)'")


def test_a_glossary_of_another_encoding_is_read_or_named(opened):
    page = opened()
    text = "mouse\tMäuse\r\ncat\tKater\r\n"
    page.set_input_files("#glossary-file", {"name": "a.txt", "mimeType": "text/plain", "buffer": text.encode("cp1252")})
    until(page, "document.querySelector('.glossary .problem').textContent.includes('not in UTF-8')")
    assert page.text_content(".glossary summary") == "Glossary"
    page.set_input_files("#glossary-file", {"name": "a.txt", "mimeType": "text/plain", "buffer": text.encode("utf-16")})
    until(page, "document.querySelector('.glossary summary').textContent === 'Glossary (2)'")
    assert page.locator(".glossary td input").nth(1).input_value() == "Mäuse"


def test_half_of_a_character_is_not_sent(opened):
    def short(route):
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "charLimit": 10})

    page = opened(routes={"**/frontend/settings": short})
    found = asked(page)
    page.fill(".mirror textarea", "The cats \U0001f389\U0001f389")
    until(page, "document.querySelector('.word')")
    assert found == [["The cats"]]


def test_codes_of_languages_may_have_hyphens(opened):
    def more(route):
        response = route.fetch()
        rows = response.json()
        if route.request.url.endswith("/models"):
            rows.append({**next(row for row in rows if row["id"] == "en-de"), "id": "x", "target": "pt-BR"})
        else:
            next(row for row in rows if row["code"] == "en")["targets"].append("pt-BR")
        route.fulfill(response=response, json=rows)

    page = opened(routes={"**/languages": more, "**/models": more})
    page.get_by_label("Target language").select_option("pt-BR")
    page.reload()
    until(page, "document.querySelector('.languages')")
    assert page.locator(".languages option:checked").evaluate_all("(all) => all.map((x) => x.value)") == ["en", "pt-BR"]
    assert page.url.endswith("#en-pt-BR")


def test_a_link_leaves_its_languages_in_the_address(tabs, server):
    own = f"http://127.0.0.1:{server.port}/"
    page = tabs(f"{own}#en-de&q=The%20cat.", (own, "data:", "blob:"))
    until(page, "document.querySelector('.mirror textarea')?.value === 'The cat.'")
    until(page, "location.hash === '#en-de'")
    page.wait_for_timeout(100)
    assert page.url == f"{own}#en-de"


def test_words_are_those_that_the_server_numbers(opened):
    text = "a\x1eb c\x85d\ufeffe\xa0f\u3000g"
    page = opened(routes={"**/translate": changed(translatedText=[text])})
    typed(page, "A dog.")
    assert page.locator(".word").all_text_contents() == text.split()


def test_words_that_belong_together_are_highlighted(opened, server):
    page = opened()
    text = LONG  # a sentence of which the random model makes several words
    typed(page, text)
    alignment = server.translate(text, align=True).json["alignment"]
    source, target = alignment[-1]
    page.locator(".word").nth(target).hover()
    until(page, "word => [...CSS.highlights.get('source')].map(String).join() === word", text.split()[source])
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
    assert page.get_by_role("button", name="Correct", exact=True).count() == 0  # one editor
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
    term(page, 0, "cat", "Katzentier")
    typed(page, "The cat sat.")
    assert "Katzentier" in page.inner_text(".output")


def test_a_file_is_translated(opened, server):
    page = opened()
    page.get_by_role("tab", name="Files").click()
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
    page.wait_for_selector(".form:visible [role=meter]")
    page.get_by_role("button", name="tagger").click()
    page.fill(".form:visible textarea", HOSTILE)
    page.locator(".form:visible").get_by_text("Run").click()
    page.wait_for_selector(".form:visible .tagged")
    assert page.inner_text(".tagged").count("<script>") <= 1
    assert page.locator(".form:visible img").count() == 0


@pytest.mark.parametrize("model", ["sentiment", "tagger"])
def test_a_form_says_that_a_text_was_cut(opened, model):
    page = opened()
    page.get_by_role("button", name=model).click()
    note = page.locator(".form:visible .notice", has_text="its end was removed")
    for text, state in (("The cat sat. " * 80, "attached"), ("The cat sat.", "detached")):
        page.fill(".form:visible textarea", text)
        page.locator(".form:visible").get_by_text("Run").click()
        note.wait_for(state=state)


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
    assert page.get_by_role("button", name="Traduction").get_attribute("aria-current") == "page"
    assert page.locator(".languages option:checked").all_text_contents() == ["Anglais", "Allemand"]
    assert page.evaluate("document.documentElement.lang") == "fr"
    page.get_by_role("button", name="English").click()
    page.wait_for_selector("text=Glossary")


def test_the_page_is_small_and_its_policy_names_its_script():
    html, policy = served_page()
    assert len(gzip.compress(html.encode())) < 60_000
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
